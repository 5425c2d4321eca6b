"""An engine in this process: what searches see at its start, while it follows HEAD, and after damage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from otterwiki_semantic.core.records import RebuildState, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.storage import Generation
from tests.support.engines import generation_of, opened
from tests.support.live_wiki import commit, eventually, is_settled


@pytest.fixture
def index(settings: Settings) -> Iterator[IndexEngine]:
    made = opened(settings)
    yield made
    made.close()


def paths(index: IndexEngine, query: str, n: int = 3) -> list[str]:
    return [hit.path for hit in index.search([query], SearchOptions(n, 1))[0].results]


def test_searches_for_several_questions_leave_room_for_one(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths(index, "vegetables", 1) == ["garden"], "its vector is known now"
    embed, going_on = index.embedder.embed_queries, Event()

    def embed_later(texts: Sequence[str]) -> Matrix:
        going_on.wait(60)
        return embed(texts)

    monkeypatch.setattr(index.embedder, "embed_queries", embed_later)
    with ThreadPoolExecutor(4) as readers:
        asked = [readers.submit(index.search, [f"radiator {n}", f"lamp {n}"], SearchOptions(1)) for n in range(3)]
        for _ in range(20):
            assert readers.submit(paths, index, "vegetables", 1).result(20) == ["garden"]
        assert not any(one.done() for one in asked)
        going_on.set()
    assert all(each.result() for each in asked)


def test_an_answer_says_which_commit_it_equals(settings: Settings, index: IndexEngine) -> None:
    before = index.search(["x"], SearchOptions(1, 1))[0].index
    assert (before.commit, before.pending_pages) == (before.head, 0)
    head = commit(settings.repository, {"new.md": "# New\n\nnew\n", "garden.md": "# Garden\n\nother\n", "home.md": None})
    after = index.search(["x"], SearchOptions(1, 1))[0].index
    assert (after.commit, after.head, after.pending_pages) == (before.commit, head, 3)


def test_the_interval_finds_what_nobody_told(settings: Settings) -> None:
    index = opened(Settings(settings.repository, settings.data_dir, sync_interval=1, pages=()))
    commit(settings.repository, {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    eventually(lambda: paths(index, "insects that make honey", 1) == ["bees"])
    index.close()


def test_what_searches_need_is_loaded_before_anybody_searches(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    opened(settings).close()
    index = opened(settings)
    assert isinstance(index.embedder, BundledModel)
    model = index.embedder
    eventually(lambda: model._opened is not None)
    assert index._searcher.queries.cache_hits_and_misses == (0, 0), "nobody has searched"
    job = index.reindex(full=True).job
    assert job is not None
    eventually(lambda: index.job(job).state is RebuildState.DONE)
    eventually(lambda: index._manager.serving is not None and index._warm == index._manager.serving.name)
    index.close()
    index._warm = ""
    index._follow_up()
    assert caplog.messages == [], "a stop in the middle is no failure"


def test_searches_do_not_wait_until_everything_is_loaded(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(settings).close()
    going_on = Event()
    monkeypatch.setattr(Generation, "warm_up", lambda _: going_on.wait(60))
    index = IndexEngine(settings)
    index.start()
    assert paths(index, "vegetables", 1) == ["garden"]
    assert not going_on.is_set()
    going_on.set()
    index.close()


def only_directory(settings: Settings) -> Path:
    (directory,) = (settings.data_dir / "generations").iterdir()
    return directory


@pytest.mark.parametrize("damage", ["catalog", "chroma", "chroma gone", "pointer", "everything"])
def test_a_damaged_index_mends_itself(settings: Settings, damage: str) -> None:
    import shutil

    opened(settings).close()
    directory = only_directory(settings)
    (chroma,) = directory.glob("chroma-*")
    match damage:
        case "catalog":
            (directory / "catalog.sqlite3").write_bytes(b"garbage" * 1000)
        case "chroma":
            (chroma / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
        case "chroma gone":
            shutil.rmtree(chroma)
        case "pointer":
            (settings.data_dir / "current").write_text("nowhere\n")
        case _:
            shutil.rmtree(settings.data_dir / "generations")
    index = opened(settings)
    assert paths(index, "vegetables", 1) == ["garden"]
    assert index.status().vectors == index.status().chunks == 6
    if damage.startswith("chroma"):
        assert index.status().embedded_texts == 0
    index.close()


def test_catalog_and_chroma_damaged_together_are_built_again(settings: Settings) -> None:
    opened(settings).close()
    directory = only_directory(settings)
    (chroma,) = directory.glob("chroma-*")
    content = bytearray((directory / "catalog.sqlite3").read_bytes())
    content[4096 * 2 : -4096] = b"\xff" * len(content[4096 * 2 : -4096])
    (directory / "catalog.sqlite3").write_bytes(content)
    (chroma / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
    index = opened(settings)
    assert paths(index, "vegetables", 1) == ["garden"]
    index.close()


def test_a_wiki_whose_texts_have_equal_vectors_is_rebuilt(settings: Settings) -> None:
    unknown = {f"key{i}.md": f"---\ntitle: Key\n---\n{'0123456789abcdef' * 9}{i:06}\n" for i in range(40)}
    commit(settings.repository, unknown)
    index = opened(settings)
    index.reindex()
    eventually(lambda: index.status().rebuild.state is not RebuildState.RUNNING)
    assert index.status().rebuild.error is None
    index.close()


def test_searches_go_on_while_broken_chroma_is_filled_again(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = generation_of(index)
    monkeypatch.setattr(serving, "_exact_up_to", 0)
    before = index.search(["vegetables"], SearchOptions(5, 2))[0].results
    broken = serving.mirror.store
    broken.close()
    after = index.search(["vegetables"], SearchOptions(5, 2))[0].results
    assert [hit.path for hit in after] == [hit.path for hit in before]
    assert index.status().status == "ready", "the index equals HEAD, and searches see all of it"
    eventually(lambda: is_settled(index.status()))
    assert serving.mirror.store is not broken
    assert not Path(broken.place).exists()
    assert serving.mirror.store.count() == index.status().vectors
    assert index.search(["vegetables"], SearchOptions(5, 2))[0].results[0].path == "garden"


def test_closing_in_the_midst_of_a_build_keeps_what_is_done(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(settings.repository, {f"p{i}.md": f"# Page {i}\n\nNumber {i} is a page of its own.\n" for i in range(80)})
    first, embed = IndexEngine(settings), BundledModel.embed

    def embed_until_closed(model: BundledModel, texts: Sequence[str]) -> Matrix:
        if first.status().vectors:
            first._manager.index._stopping.wait(90)
        return embed(model, texts)

    monkeypatch.setattr(BundledModel, "embed", embed_until_closed)
    first.start()
    eventually(lambda: first.status().vectors > 0)
    first.close()
    monkeypatch.undo()
    second = opened(settings)
    assert 0 < second.status().embedded_texts < 86
    assert second.status().chunks == 86
    second.close()


def test_a_rebuild_of_an_index_that_is_not_built_yet_is_its_first_build(settings: Settings) -> None:
    index = IndexEngine(settings)
    index.start()
    index.reindex()
    eventually(lambda: index.status().rebuild.state is not RebuildState.RUNNING)
    assert index.status().rebuild.state is RebuildState.DONE
    assert index.status().embedded_texts == index.status().chunks == 6
    index.close()


def test_what_a_broken_rebuild_left_is_removed(settings: Settings) -> None:
    opened(settings).close()
    left = settings.data_dir / "generations" / "left-over"
    left.mkdir()
    opened(settings).close()
    assert not left.exists()


def test_a_search_of_an_index_that_is_up_to_date_reads_no_tree(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    index.search(["radiator"], SearchOptions())

    def fail(_commit: str) -> None:
        raise AssertionError("the tree was read")

    monkeypatch.setattr(index._manager.index.repository, "pages", fail)
    assert index.search(["radiator", "garden"], SearchOptions())[1].results


def test_a_sync_that_fails_is_tried_again_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index = IndexEngine(Settings(tmp_path / "nowhere", tmp_path / "index", sync_interval=3600, pages=()))
    index.start()

    def failures() -> list[float]:
        return [record.created for record in caplog.records if "could not be brought up to date" in record.getMessage()]

    eventually(lambda: len(failures()) >= 2)
    index.close()
    first, second = failures()[:2]
    assert second - first > 0.9
