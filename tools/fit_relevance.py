"""Fit the floor below which a passage is not about the question, for the bundled model, and print its error rates.

The demo's pages and this project's documents are asked: what one of them answers the other does not, and there are questions
that neither does. The floor is set so that 5 % of the answerable questions are flagged.

With judged wikis, directories with `pages/` and `questions.json` (see docs/quality.md), it is set so that 8 % of their
answerable questions are flagged, and each wiki is measured with the floor fitted on the others.

Usage::

    python tools/fit_relevance.py [WIKI...]
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from otterwiki_semantic.core.records import SearchOptions  # noqa: E402
from otterwiki_semantic.core.settings import Settings  # noqa: E402
from otterwiki_semantic.daemon.engine import IndexEngine  # noqa: E402
from otterwiki_semantic.search.evaluation import read_query_file  # noqa: E402
from otterwiki_semantic.search.scoring import FLOOR  # noqa: E402
from tests.support.live_wiki import eventually, make_repository  # noqa: E402

_FLAGGED_OF_OWN, _FLAGGED_OF_JUDGED = 0.05, 0.08
_BUILD_SECONDS = 1_800.0

Questions = Sequence[tuple[str, bool]]
"""Questions, and whether the wiki that is asked answers them."""


@dataclass(frozen=True)
class Asked:
    """How relevant a question's best result is in a wiki, and whether the wiki answers it."""

    wiki: str
    relevance: float
    is_answerable: bool


def main(directories: list[str]) -> None:
    """Fit, and print."""
    own = {name: ask(name, pages, questions) for name, (pages, questions) in own_wikis().items()}
    judged = {Path(each).name: ask(Path(each).name, *judged_wiki(Path(each))) for each in directories}
    for name, asked in judged.items() if len(judged) > 1 else ():
        left_out = fit([each for other, rows in judged.items() if other != name for each in rows], _FLAGGED_OF_JUDGED)
        print(f"{name}, left out: {rates(asked, left_out)}, below {left_out}")
    share = _FLAGGED_OF_JUDGED if judged else _FLAGGED_OF_OWN
    fitted = fit([each for rows in (judged or own).values() for each in rows], share)
    for label, floor in (("fitted", fitted), ("in use", FLOOR)):
        print(f"floor {floor} ({label})")
        for wikis, together in ((judged, "judged wikis"), (own, "both")):
            for name, asked in wikis.items():
                print(f"  {name}: {rates(asked, floor)}")
            if wikis:
                print(f"  {together}: {rates([each for asked in wikis.values() for each in asked], floor)}")


def own_wikis() -> dict[str, tuple[Path, Questions]]:
    """Return the pages and the questions of the demo and of the documents, by name."""
    demo, docs = (json.loads((ROOT / "tests" / "data" / f"{name}_questions.json").read_text()) for name in ("demo", "docs"))
    nowhere = [entry["query"] for entry in demo if not entry["relevant"]]
    answered = {"demo": [entry["query"] for entry in demo if entry["relevant"]], "docs": [entry["query"] for entry in docs]}
    pages = {"demo": ROOT / "demo" / "pages", "docs": ROOT / "docs"}
    found: dict[str, tuple[Path, Questions]] = {}
    for name, other in (("demo", "docs"), ("docs", "demo")):
        unanswerable = [(question, False) for question in (*nowhere, *answered[other])]
        found[name] = pages[name], [*((question, True) for question in answered[name]), *unanswerable]
    return found


def judged_wiki(directory: Path) -> tuple[Path, Questions]:
    """Return the pages and the questions of a judged wiki."""
    judged = read_query_file(directory / "questions.json")
    return directory / "pages", [(each.query, bool(each.relevant)) for each in judged]


def ask(wiki: str, pages: Path, questions: Questions) -> list[Asked]:
    """Index the pages, and ask the questions."""
    with indexed(pages) as index:
        return [Asked(wiki, best_relevance(index, question), is_answerable) for question, is_answerable in questions]


@contextmanager
def indexed(directory: Path) -> Iterator[IndexEngine]:
    """Lend an index of the pages in a directory."""
    with tempfile.TemporaryDirectory() as place:
        pages: dict[str, str | bytes] = {
            str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*.md")
        }
        index = IndexEngine(Settings(make_repository(Path(place) / "repository", pages), Path(place) / "index"))
        index.start()
        eventually(lambda: index.status().status == "ready" and index.status().index.pending_pages == 0, _BUILD_SECONDS)
        yield index
        index.close()


def best_relevance(index: IndexEngine, question: str) -> float:
    """Return the relevance of a question's best result, above a floor of 0."""
    hits = index.search([question], SearchOptions(explain=True))[0].results
    above = max((hit.explain.relevance for hit in hits if hit.explain), default=-1.0)
    return above + FLOOR


def fit(asked: Sequence[Asked], share: float) -> float:
    """Return the floor below which this share of the answerable questions is flagged, rounded down."""
    answerable = sorted(entry.relevance for entry in asked if entry.is_answerable)
    return math.floor(1000 * answerable[int(share * len(answerable))]) / 1000


def rates(asked: Sequence[Asked], floor: float) -> str:
    """Say how many of either kind are flagged as not answered."""
    counts = [sum(entry.is_answerable is kind for entry in asked) for kind in (False, True)]
    flagged = [sum(entry.is_answerable is kind and entry.relevance < floor for entry in asked) for kind in (False, True)]
    shares = [f"{part / count:.1%}" if count else "none" for part, count in zip(flagged, counts, strict=True)]
    return (
        f"flagged are {flagged[0]} of {counts[0]} unanswerable questions ({shares[0]})"
        f" and {flagged[1]} of {counts[1]} answerable ones ({shares[1]})"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
