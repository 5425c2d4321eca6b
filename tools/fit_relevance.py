"""Fit the floor below which a passage is not about the question, for the bundled model, and print its error rates.

Two wikis are asked: the demo's pages and this project's documents. What one of them answers the other does not, and there are
questions that neither does. The floor is set so that 5 % of the answerable questions are flagged.

Usage::

    python tools/fit_relevance.py
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from otterwiki_semantic.core.records import SearchOptions  # noqa: E402
from otterwiki_semantic.core.settings import Settings  # noqa: E402
from otterwiki_semantic.daemon.engine import IndexEngine  # noqa: E402
from otterwiki_semantic.search.relevance import FLOOR  # noqa: E402
from tests.support.live_wiki import eventually, make_repository  # noqa: E402

_FLAGGED_ANSWERABLE = 0.05
_BUILD_SECONDS = 1_800.0


@dataclass(frozen=True)
class Asked:
    """How relevant a question's best result is in a wiki, and whether the wiki answers it."""

    wiki: str
    relevance: float
    is_answerable: bool


def main() -> None:
    """Fit, and print."""
    demo, docs = (json.loads((ROOT / "tests" / "data" / f"{name}_questions.json").read_text()) for name in ("demo", "docs"))
    nowhere = [entry["query"] for entry in demo if not entry["relevant"]]
    own = {
        "demo": [entry["query"] for entry in demo if entry["relevant"]],
        "docs": [entry["query"] for entry in docs],
    }
    pages = {
        "demo": ROOT / "demo" / "pages",
        "docs": ROOT / "docs",
    }
    asked: list[Asked] = []
    for wiki, directory in pages.items():
        with indexed(directory) as index:
            elsewhere = [*nowhere, *own["docs" if wiki == "demo" else "demo"]]
            asked += [Asked(wiki, best_relevance(index, question), is_answerable=True) for question in own[wiki]]
            asked += [Asked(wiki, best_relevance(index, question), is_answerable=False) for question in elsewhere]
    answerable = sorted(entry.relevance for entry in asked if entry.is_answerable)
    floor = math.floor(1000 * answerable[int(_FLAGGED_ANSWERABLE * len(answerable))]) / 1000
    for name, value in (("fitted", floor), ("in use", FLOOR)):
        print(f"floor {value} ({name})")
        for wiki in pages:
            print(f"  {wiki}: {rates([entry for entry in asked if entry.wiki == wiki], value)}")
        print(f"  both: {rates(asked, value)}")


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


def rates(asked: list[Asked], floor: float) -> str:
    """Say how many of either kind are flagged as not answered."""
    counts = [sum(entry.is_answerable is kind for entry in asked) for kind in (False, True)]
    flagged = [sum(entry.is_answerable is kind and entry.relevance < floor for entry in asked) for kind in (False, True)]
    return (
        f"flagged are {flagged[0]} of {counts[0]} unanswerable questions ({flagged[0] / counts[0]:.1%})"
        f" and {flagged[1]} of {counts[1]} answerable ones ({flagged[1] / counts[1]:.1%})"
    )


if __name__ == "__main__":
    main()
