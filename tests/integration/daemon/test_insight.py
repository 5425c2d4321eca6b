"""What administrators are told of the index: through the index itself, the process that owns it, and the wiki."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from otterwiki_semantic.cli.evaluate.runs import measure
from otterwiki_semantic.core.errors import PageNotFoundError
from otterwiki_semantic.core.records import Mode, SearchOptions, SyncRecord
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.reports.search_log import NAME
from otterwiki_semantic.indexing import sync_job
from otterwiki_semantic.search.evaluation import JudgedQuery
from tests.support.engines import opened, wait_until_equal
from tests.support.live_wiki import LiveWiki, commit, eventually, head_of, make_repository

NONSENSE = "zyxwv qwertz blorp"


@pytest.fixture
def index(settings: Settings) -> Iterator[IndexEngine]:
    made = opened(replace(settings, search_log=True))
    eventually(lambda: made.insight().syncs)  # it is listed when it has ended
    yield made
    made.close()


def synced(index: IndexEngine) -> None:
    """Let one more sync end."""
    ended = index._manager.syncs.ended
    index.notify()
    eventually(lambda: index._manager.syncs.ended > ended)


def newest(index: IndexEngine) -> SyncRecord:
    return index.insight().syncs[0]


# Syncs


def test_a_sync_is_listed_with_what_it_did(settings: Settings, index: IndexEngine) -> None:
    (first,) = index.insight().syncs
    assert (first.pages, first.chunks, first.error) == (5, 6, None)
    assert first.commit == head_of(settings.repository)
    assert 0 < first.seconds < 60
    head = commit(settings.repository, {"bees.md": "# Bees\n\nHives.\n", "garden.md": "# Garden\n\nWeeds.\n", "home.md": None})
    index.notify()
    eventually(lambda: len(index.insight().syncs) == 2)
    second, last = index.insight().syncs
    assert last == first
    assert (second.commit, second.pages, second.chunks, second.error, second.times) == (head, 3, 2, None, 1)
    finished = datetime.fromisoformat(second.finished)
    assert timedelta(0) <= datetime.now(UTC) - finished < timedelta(minutes=1)
    assert second.finished >= first.finished


def test_a_sync_that_changes_no_page_is_not_listed(settings: Settings, index: IndexEngine) -> None:
    before = index.insight().syncs
    synced(index)
    commit(settings.repository, {"picture.png": b"png"})
    synced(index)
    assert wait_until_equal(index).index.commit == head_of(settings.repository)
    assert index.insight().syncs == before


def test_a_sync_that_fails_is_listed_once_with_its_error(settings: Settings, index: IndexEngine) -> None:
    git = settings.repository / ".git"
    git.rename(git.with_name("away"))
    index.notify()
    eventually(lambda: newest(index).times >= 2)
    failed, first = index.insight().syncs
    assert failed.error is not None
    assert str(settings.repository) in failed.error
    assert (failed.pages, failed.chunks, failed.commit) == (0, 0, first.commit)
    git.with_name("away").rename(git)
    commit(settings.repository, {"bees.md": "# Bees\n\nHives.\n"})
    eventually(lambda: newest(index).error is None)
    assert [sync.error for sync in index.insight().syncs] == [None, failed.error, None]


def test_the_last_20_syncs_are_kept(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sync_job._KEPT_SYNCS == 20
    monkeypatch.setattr(sync_job, "_KEPT_SYNCS", 3)
    heads = []
    with closing(opened(settings)) as index:
        for number in range(5):
            heads.append(commit(settings.repository, {"counter.md": f"# Counter\n\nIt stands at {number}.\n"}))
            index.notify()
            eventually(lambda: newest(index).commit == heads[-1])
        assert [sync.commit for sync in index.insight().syncs] == heads[:1:-1]


# What it takes


def test_the_disk_is_told_as_the_system_counts_it(settings: Settings, index: IndexEngine) -> None:
    def equals_what_is_there() -> bool:
        with suppress(FileNotFoundError):  # the sync that has just ended is still tidying up
            files = [path.stat() for path in settings.data_dir.rglob("*") if path.is_file()]
            return index.insight().disk_bytes == pytest.approx(sum(file.st_blocks * 512 for file in files), rel=0.2)
        return False

    eventually(equals_what_is_there)
    told = index.insight()
    assert told.free_bytes == pytest.approx(shutil.disk_usage(settings.data_dir).free, rel=0.2)
    assert told.memory_bytes is not None
    assert told.memory_bytes > 20 << 20
    assert datetime.now(UTC) - datetime.fromisoformat(told.started) < timedelta(minutes=1)


# Searches


def test_searches_are_noted_and_those_that_found_nothing_by_their_text(index: IndexEngine) -> None:
    index.search(["bleeding a radiator", NONSENSE], SearchOptions())
    index.search([NONSENSE.upper()], SearchOptions(mode=Mode.KEYWORD))
    told = index.insight()
    assert told.keeps_searches
    assert sum(hour.count for hour in told.searches) == 3
    assert sum(hour.unanswered for hour in told.searches) == 2
    assert all(0 < hour.p50_ms <= hour.p95_ms < 10_000 for hour in told.searches)
    assert [(each.query, each.times) for each in told.unanswered] == [(NONSENSE.upper(), 2)]


def test_a_search_that_is_not_to_be_noted_leaves_nothing(index: IndexEngine) -> None:
    index.search(["zyx"], SearchOptions(draft=True))
    told = index.insight()
    assert (told.searches, told.unanswered) == ((), ())


def test_judged_questions_are_nobodys(index: IndexEngine) -> None:
    judged = [JudgedQuery("vegetables", ("garden",)), JudgedQuery(NONSENSE, ("garden",))]
    measure(index, judged, {"test": SearchOptions(10, 1)})
    assert index.insight().searches == ()


def test_waiting_for_a_commit_does_not_count_as_searching(settings: Settings, index: IndexEngine) -> None:
    index.search(["radiator"], SearchOptions(draft=True))
    many = {f"p{number}.md": f"# Page {number}\n\nNumber {number} is a page of its own.\n" for number in range(80)}
    head = commit(settings.repository, many)
    start = datetime.now(UTC)
    (answer,) = index.search(["number 7"], SearchOptions(wait=True, wait_seconds=30))
    whole = (datetime.now(UTC) - start).total_seconds() * 1000
    assert answer.index.commit == head
    (hour,) = index.insight().searches[-1:]
    assert hour.p95_ms < whole / 2


def test_nothing_is_noted_unless_it_was_switched_on(settings: Settings) -> None:
    index = opened(settings)
    index.search([NONSENSE], SearchOptions())
    told = index.insight()
    index.close()
    assert (told.keeps_searches, told.searches, told.unanswered) == (False, (), ())
    assert not (settings.data_dir / NAME).exists()


def test_what_was_noted_is_deleted_once_it_is_switched_off(settings: Settings) -> None:
    on = opened(replace(settings, search_log=True))
    on.search([NONSENSE], SearchOptions())
    on.close()
    assert (settings.data_dir / NAME).exists()
    opened(settings).close()
    assert list(settings.data_dir.glob(f"{NAME}*")) == []


@pytest.mark.parametrize(
    ("search_log", "trouble"), [(True, "searches are not logged: "), (False, "the earlier search log cannot be deleted: ")]
)
def test_a_file_that_cannot_be_used_is_told_and_harms_no_search(settings: Settings, search_log: bool, trouble: str) -> None:
    (settings.data_dir / NAME).mkdir(parents=True)
    index = opened(replace(settings, search_log=search_log))
    assert [answer.confident for answer in index.search(["radiator", NONSENSE], SearchOptions())] == [True, False]
    told = index.insight()
    assert (told.searches, told.unanswered) == ((), ())
    (problem,) = index.status().problems
    assert problem.message.startswith(trouble)
    assert NAME in problem.hint
    index.close()


# Through the process that owns the index, and the wiki


def test_the_owner_tells_everyone(settings: Settings) -> None:
    with closing(IndexClient(replace(settings, search_log=True))) as index:
        eventually(lambda: index.status().status == "ready" and index.status().index.pending_pages == 0)
        index.search([NONSENSE], SearchOptions())
        index.search(["zyx"], SearchOptions(draft=True))
        eventually(lambda: index.insight().syncs)
        told = index.insight()
        assert [sync.pages for sync in told.syncs] == [5]
        assert [each.query for each in told.unanswered] == [NONSENSE]
        seen = index.inspect_page("house/heating")
        assert seen.total_chunks == len(seen.chunks) > 1
        assert seen.chunks[0].neighbours[0].path != "house/heating"
        with pytest.raises(PageNotFoundError) as error:
            index.inspect_page("gardn")
        assert error.value.nearest == ("garden",)
        assert NONSENSE not in (settings.data_dir / "owner.log").read_text()


def test_the_wiki_tells_its_administrators(tmp_path: Path, handbook: dict[str, str | bytes]) -> None:
    repository = make_repository(tmp_path / "repository", handbook)
    with LiveWiki(repository, tmp_path / "index", SEMANTIC_SEARCH_LOG="yes", READ_ACCESS="ANONYMOUS") as wiki:
        wiki.wait_until_indexed()
        wiki.search("bleeding a radiator")
        wiki.api("POST", "/semantic-search", json_body={"queries": [NONSENSE, "vegetables"]})
        unlogged = {"queries": [NONSENSE], "is_logged": False}
        assert wiki.api("POST", "/semantic-search", json_body=unlogged).status == 422, "the API has no such parameter"
        eventually(lambda: wiki.api("GET", "/semantic-search/insight").json["syncs"])
        told = wiki.api("GET", "/semantic-search/insight").json
        assert sum(hour["count"] for hour in told["searches"]) == 3
        assert [each["query"] for each in told["unanswered"]] == [NONSENSE]
        assert [sync["pages"] for sync in told["syncs"]] == [5]
        for further in ("draft=1", "more=1"):
            assert wiki.get(f"/-/semantic-search/results?q=zyx&{further}").status == 200
        wiki.get("/-/semantic-search/likely?name=zyx")
        assert wiki.api("GET", "/semantic-search/insight").json["unanswered"] == told["unanswered"], "nobody asked that"
        assert wiki.get(f"/-/semantic-search?q={NONSENSE.replace(' ', '+')}").status == 200
        assert [each["times"] for each in wiki.api("GET", "/semantic-search/insight").json["unanswered"]] == [2]
        seen = wiki.api("GET", "/semantic-search/insight/House/heating.md").json
        assert seen["path"] == "house/heating"
        assert seen["url"] == "/house/heating"
        (neighbour, *_) = seen["chunks"][0]["neighbours"]
        assert neighbour["url"].startswith(f"/{neighbour['path']}")
        assert wiki.api("GET", "/semantic-search/insight", key=None).status == 401
        assert wiki.api("GET", "/semantic-search/insight/home", key=None).status == 401
        assert wiki.api("POST", "/semantic-search/insight").status == 405
