"""Pages and headings that a text may mean which is still being typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from otterwiki_semantic.core.records import Filters, PageUrls, Suggestion, SuggestionKind, SuggestRequest
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.engines import opened
from tests.support.live_wiki import commit, eventually, make_repository

PAGES: dict[str, str | bytes] = {
    "backup.md": "---\naliases: [safety copy]\ntags: [ops]\n---\n# Backups\n\nEvery night.\n\n"
    "## Restore a backup\n\nAsk.\n\n## Éclair\n\nx\n",
    "ops/backup-plan.md": "# The plan\n\n## Weekly backup\n\nOn Sunday.\n",
    "ops/off-site.md": "# Off-site backup\n\nIn the cellar of a friend.\n",
    "strasse.md": "# Straßenkarte München\n\nDer Weg.\n",
    "identifiers.md": "# Names\n\n## TargetWords\n\nA count.\n",
    "jp.md": "# 東京の地図\n\n地図です。\n",
    "animal.md": "# Zebra\n\nSee [backup](/backup) and [[Backup]].\n",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexEngine]:
    place = tmp_path_factory.mktemp("suggest")
    made = opened(Settings(make_repository(place / "repository", PAGES), place / "index", map=False))
    yield made
    made.close()


def found(index: IndexEngine, query: str, n: int = 8, **filters: object) -> tuple[Suggestion, ...]:
    asked = SuggestRequest(query, n, Filters(**filters))  # type: ignore[arg-type]
    return index.suggest(asked, PageUrls("/")).suggestions


def labels(index: IndexEngine, query: str, **filters: object) -> list[tuple[str, str]]:
    return [(each.path, each.section) for each in found(index, query, 8, **filters)]


def test_pages_come_before_sections_and_better_names_before_others(index: IndexEngine) -> None:
    assert labels(index, "backup") == [
        ("backup", ""),
        ("ops/off-site", ""),
        ("ops/backup-plan", ""),
        ("ops/backup-plan", "Weekly backup"),
        ("backup", "Restore a backup"),
    ]


def test_a_heading_may_be_told_by_its_page(index: IndexEngine) -> None:
    assert labels(index, "plan weekly") == [("ops/backup-plan", "Weekly backup")]


def test_later_words_of_identifiers_are_found(index: IndexEngine) -> None:
    assert labels(index, "words") == [("identifiers", "TargetWords")]


def test_words_may_be_in_any_order_and_the_last_one_unfinished(index: IndexEngine) -> None:
    assert labels(index, "backup rest") == [("backup", "Restore a backup")]
    assert labels(index, "rest") == [("backup", "Restore a backup")]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("safety c", "backup"),
        ("strassenk", "strasse"),
        ("MUNCHEN", "strasse"),
        ("地図", "jp"),
        ("東京", "jp"),
        ("OFF-SITE", "ops/off-site"),
        ("offsite", "ops/off-site"),
    ],
)
def test_spellings_and_scripts(index: IndexEngine, query: str, path: str) -> None:
    assert labels(index, query)[0][0] == path


@pytest.mark.parametrize("query", ["bakcup", "backpu", "zebrq", "strassenkatre"])
def test_typing_errors_are_forgiven(index: IndexEngine, query: str) -> None:
    assert labels(index, query)
    assert labels(index, query)[0][0] in {"backup", "animal", "strasse"}


def test_what_fits_is_marked(index: IndexEngine) -> None:
    (first,) = found(index, "eclai")
    assert (first.kind, first.anchor, first.url) == (SuggestionKind.SECTION, "eclair", "/backup#eclair")
    assert first.ranges == ((0, 5),)
    (map_,) = found(index, "munch")
    assert map_.title[slice(*map_.ranges[0])] == "Münch"


def test_filters_leave_pages_out(index: IndexEngine) -> None:
    assert {path for path, _ in labels(index, "backup", path="ops/")} == {"ops/off-site", "ops/backup-plan"}
    assert {path for path, _ in labels(index, "backup", tags=("ops",))} == {"backup"}


def test_without_a_query_the_newest_pages_come_first(index: IndexEngine) -> None:
    assert {path for path, _ in labels(index, "")} == {path.removesuffix(".md") for path in PAGES}
    assert len(found(index, "", 2)) == 2


@pytest.mark.parametrize("query", ["?!", "x" * 10_000, "' OR 1=1 --", "%_", "\0", "(", "[[", " ".join(["backup"] * 500)])
def test_odd_queries_are_answered(index: IndexEngine, query: str) -> None:
    assert len(found(index, query)) <= 8


def wait_until(index: IndexEngine, head: str) -> None:
    eventually(lambda: index.status().index.commit == head)


def test_edits_are_followed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", PAGES)
    index = opened(Settings(repository, tmp_path / "index", map=False))
    assert labels(index, "zebra") == [("animal", "")]
    for number in range(12):  # more changes than texts are kept
        head = commit(repository, {"animal.md": f"# Giraffe {number}\n\n## Neck {number}\n\nLong.\n"})
        index.notify()
        wait_until(index, head)
        assert labels(index, "zebra") == []
        assert labels(index, "giraffe") == [("animal", "")]
        assert labels(index, "neck") == [("animal", f"Neck {number}")]
    head = commit(repository, {"animal.md": None})
    index.notify()
    wait_until(index, head)
    assert labels(index, "giraffe") == []
    index.close()
