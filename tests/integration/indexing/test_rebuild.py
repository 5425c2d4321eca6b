"""Another model, other chunks, another schema: the old index answers until the new one is whole, and good enough."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from otterwiki_semantic.content import PageFile
from otterwiki_semantic.content.chunking import ByteCounter, Profile
from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.core.chunk_profiles import profile_named
from otterwiki_semantic.core.errors import ModelError, RebuildRefusedError
from otterwiki_semantic.core.records import Answer, IndexStatus, Mode, Page, RebuildState, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.indexing.page_loader import PageLoader
from otterwiki_semantic.indexing.promotion import check_complete
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.indexing.sync import Indexer
from otterwiki_semantic.storage.catalog import Catalog
from otterwiki_semantic.storage.chroma.mirror import MirrorState
from otterwiki_semantic.storage.generation import Generation, GenerationStore
from tests.support.chunks import read_page
from tests.support.engines import generation_of
from tests.support.live_wiki import commit, eventually, is_settled, make_repository
from tests.support.syncing import sync
from tests.support.tiny_models import write_onnx

PAGES = 70
Open = Callable[..., IndexEngine]


def page(number: int) -> str:
    return f"# Page {number}\n\nThis page, the one with the number {number}, tells about the machine called unit{number}.\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository and its index, to be copied."""
    place = tmp_path_factory.mktemp("built")
    make_repository(place / "repository", {f"p{number:03}.md": page(number) for number in range(PAGES)})
    index = IndexEngine(Settings(place / "repository", place / "index", sync_interval=3600, pages=()))
    index.start()
    eventually(lambda: is_ready(index))
    index.close()
    return place


@pytest.fixture
def place(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


@pytest.fixture
def opened(place: Path, opened: Callable[[Settings], IndexEngine]) -> Open:
    def start(**settings: object) -> IndexEngine:
        return opened(Settings(place / "repository", place / "index", sync_interval=3600, pages=(), **settings))  # type: ignore[arg-type]

    return start


@pytest.fixture
def index(opened: Open) -> IndexEngine:
    """The index, once it is ready."""
    made = opened()
    eventually(lambda: is_ready(made))
    return made


def is_ready(index: IndexEngine) -> IndexStatus | None:
    status = index.status()
    return status if is_settled(status) and status.rebuild.state is not RebuildState.RUNNING else None


def ask(index: IndexEngine, query: str, mode: Mode = Mode.HYBRID) -> Answer:
    return index.search([query], SearchOptions(3, 1, mode))[0]


def note(place: Path, **facts: str) -> str:
    """Change what the serving catalog says about itself; gives the generation's name."""
    (path,) = (place / "index" / "generations").glob("*/catalog.sqlite3")
    catalog = Catalog(path)
    for name, value in facts.items():
        catalog.set_meta(name, value)
    catalog.close()
    return path.parent.name


@pytest.mark.parametrize(
    ("changed", "embedded"),
    [
        ({"fingerprint": "other chunks"}, 0),
        ({"fingerprint": "another model", "recipe": "another model"}, PAGES),
        ({"fingerprint": "another schema", "schema": "1"}, 0),
    ],
    ids=["chunks", "model", "schema"],
)
def test_the_old_index_answers_until_the_new_one_is_whole(
    place: Path, opened: Open, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], embedded: int
) -> None:
    asked = threading.Event()
    at_the_end_of_a_build(monkeypatch, lambda: asked.wait(60))
    old = note(place, **changed)
    index = opened()
    seen: set[str | None] = set()
    while (before := index.status()).generation == old:
        answer = ask(index, "unit67")
        assert answer.results[0].path == "p067"
        seen.add(answer.degraded)
        if before.rebuild.state is RebuildState.RUNNING:
            asked.set()
        current = index.status()
        assert current.generation != old or current.pages == PAGES
    assert any("another model" in (why or "") for why in seen) is ("recipe" in changed)
    status = eventually(lambda: is_ready(index))
    assert status.generation != old
    assert (status.pages, status.embedded_texts) == (PAGES, embedded)
    assert status.rebuild.estimate is not None
    assert status.rebuild.estimate.texts == PAGES, "as many as there may be"
    assert ask(index, "unit67").degraded is None
    left = {path.name for path in (place / "index" / "generations").iterdir()}
    assert left <= {status.generation, old}, "one can return to it"


def test_what_is_saved_while_a_model_is_changed_is_found_by_its_words(place: Path, opened: Open) -> None:
    commit(place / "repository", {f"q{number:03}.md": page(1000 + number) for number in range(PAGES)})
    old = note(place, fingerprint="another model", recipe="another model")
    index = opened()
    answer = index.search(["unit1067"], SearchOptions(1, 1, wait=True, wait_seconds=30.0))[0]
    assert answer.results[0].path == "q067"
    eventually(lambda: index.status().generation != old)
    eventually(lambda: is_ready(index))
    assert index.status().index.pending_pages == 0
    assert ask(index, "unit1067", Mode.SEMANTIC).degraded is None


def test_an_index_that_goes_back_to_its_own_model_gets_the_vectors_it_lacks(place: Path, opened: Open) -> None:
    commit(place / "repository", {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    index = IndexEngine(Settings(place / "repository", place / "index", pages=()))
    generation = index._manager._open_current()
    assert generation is not None
    indexer = index._manager.syncs.indexer
    sync(indexer, generation, embed=False)
    assert generation.catalog.unfinished == 1
    assert indexer.embedding.texts == 0
    generation.close()
    index = opened()
    eventually(lambda: is_ready(index) and index.status().index.pending_pages == 0)
    assert ask(index, "insects that make honey", Mode.SEMANTIC).results[0].path == "bees"
    assert index.status().embedded_texts == 1


def test_an_index_of_a_schema_that_cannot_be_read_is_built_from_nothing(place: Path, opened: Open) -> None:
    old = note(place, fingerprint="another schema", schema="1")
    with sqlite3.connect(place / "index" / "generations" / old / "catalog.sqlite3") as connection:
        connection.execute("ALTER TABLE chunks RENAME COLUMN anchor TO something")
    connection.close()
    index = opened()
    eventually(lambda: is_ready(index))
    assert ask(index, "unit67").results[0].path == "p067"


def judged(place: Path, relevant: str) -> Path:
    path = place / "questions.json"
    asked = [{"query": f"unit{number}", "relevant": [relevant.format(number)]} for number in range(0, PAGES, 7)]
    asked = [{"query": f"unit{number}", "relevant": [relevant.format(number)]} for number in range(0, PAGES, 7)]
    path.write_text(json.dumps(asked))
    return path


def test_a_new_index_that_finds_less_does_not_serve(place: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = judged(place, "p{:03}")
    first = opened(eval_queries=questions)
    commit(place / "repository", {"other.md": "# Other\n\nSomething else.\n"})
    first.notify()
    eventually(lambda: is_ready(first) and first.status().pages == PAGES + 1)
    first.close()
    old = note(place, fingerprint="the old way")

    def load(_loader: PageLoader, files: Sequence[PageFile], profile: Profile) -> Iterator[Page]:
        return (read_page(file.path, file.blob, b"# Same", ByteCounter(), profile) for file in files)

    monkeypatch.setattr(PageLoader, "load", load)
    index = opened(eval_queries=questions)
    eventually(lambda: index.status().rebuild.state is RebuildState.FAILED)
    status: IndexStatus | None = index.status()
    assert status is not None
    assert status.rebuild.recall is not None
    assert status.rebuild.recall.before == 1.0
    assert status.rebuild.recall.after < 0.9
    assert status.generation == old
    assert [path.name for path in (place / "index" / "generations").iterdir()] == [old]
    (problem,) = status.problems
    assert "recall@10 of judged queries is 0." in problem.message
    assert "and was 1.000" in problem.message
    assert ask(index, "unit67").results[0].path == "p067"
    index.close()

    again = opened(eval_queries=questions)
    eventually(lambda: again.status().last_sync)
    assert again.status().rebuild.state is RebuildState.IDLE, "what was refused is not tried again by itself"
    assert "recall@10" in again.status().problems[0].message
    monkeypatch.undo()
    again.reindex()
    status = eventually(lambda: is_ready(again))
    assert status.rebuild.recall is not None
    assert status.rebuild.recall.after == 1.0
    assert status.generation != old
    assert status.problems == ()


def test_a_model_of_random_vectors_is_refused_although_words_find_as_much(place: Path, opened: Open) -> None:
    questions = judged(place, "p{:03}")
    first = opened(eval_queries=questions)
    eventually(lambda: first.insight().quality, why="its figures are known without its model")
    old = first.status().generation
    first.close()
    index = opened(eval_queries=questions, model=f"onnx:{write_onnx(place / 'tiny')}")
    eventually(lambda: index.status().rebuild.state is RebuildState.FAILED)
    status = index.status()
    found = status.rebuild.recall
    assert found is not None
    assert found.semantic_before is not None
    assert found.semantic_after is not None
    assert (found.before, found.after) == (1.0, 1.0)
    assert found.semantic_after < 0.5 * found.semantic_before
    assert status.generation == old
    assert "recall@10 by meaning alone of judged queries" in status.problems[0].message


# Another one made the same way


@pytest.fixture
def pages_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the pages that are read and divided, as it happens."""
    paths: list[str] = []

    original = PageLoader.load

    def load(loader: PageLoader, files: Sequence[PageFile], profile: Profile) -> Iterator[Page]:
        for page in original(loader, files, profile):
            paths.append(page.path)
            yield page

    monkeypatch.setattr(PageLoader, "load", load)
    return paths


def reindexed(index: IndexEngine, *, full: bool = False, embed: bool = False) -> IndexStatus:
    """Ask for a rebuild and wait until it serves."""
    before = index.status().generation
    index.reindex(full=full, embed=embed)
    eventually(lambda: index.status().rebuild.state is not RebuildState.RUNNING)
    status = index.status()
    assert (status.rebuild.state, status.rebuild.error) == (RebuildState.DONE, None)
    assert status.generation != before
    return status


def spoil(index: IndexEngine, statement: str) -> None:
    with closing(sqlite3.connect(generation_of(index).catalog.path)) as connection, connection:
        assert connection.execute(statement).rowcount > 0


def test_an_index_of_an_unchanged_wiki_is_copied(index: IndexEngine, pages_read: list[str]) -> None:
    status = reindexed(index)
    assert pages_read == []
    assert status.rebuild.copies
    assert (status.pages, status.chunks, status.vectors, status.embedded_texts) == (PAGES, PAGES, PAGES, 0)
    progress = status.rebuild
    assert (progress.pages_done, progress.pages_total) == (PAGES, PAGES)
    assert (progress.chunks_done, progress.chunks_total) == (PAGES, PAGES)
    for mode in Mode:
        assert ask(index, "unit67", mode).results[0].path == "p067", "before ChromaDB is filled, too"
    eventually(lambda: is_ready(index))
    assert generation_of(index).mirror.store.count() == PAGES
    assert ask(index, "unit67", Mode.SEMANTIC).results[0].path == "p067"


def test_a_full_rebuild_reads_every_page_and_embeds_nothing(index: IndexEngine, pages_read: list[str]) -> None:
    status = reindexed(index, full=True)
    assert len(pages_read) == PAGES
    assert (status.embedded_texts, status.rebuild.copies) == (0, False)
    assert status.rebuild.pages_done == PAGES
    eventually(lambda: generation_of(index).mirror.is_whole)


def test_every_passage_is_embedded_again_on_request(index: IndexEngine, pages_read: list[str]) -> None:
    status = reindexed(index, full=True, embed=True)
    assert len(pages_read) == PAGES
    assert (status.embedded_texts, status.rebuild.copies, status.vectors) == (PAGES, False, PAGES)
    assert status.rebuild.estimate is not None
    assert status.rebuild.estimate.texts == PAGES


def test_what_was_committed_meanwhile_is_in_the_copy(place: Path, index: IndexEngine, pages_read: list[str]) -> None:
    head = commit(place / "repository", {"p003.md": None, "bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    status = reindexed(index)
    assert status.index.commit == head
    assert set(pages_read) == {"bees"}
    assert status.pages == PAGES
    assert ask(index, "insects that make honey", Mode.SEMANTIC).results[0].path == "bees"
    assert "p003" not in [hit.path for hit in ask(index, "unit3").results]


def test_head_is_followed_while_chroma_is_filled(place: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.indexing.mirror_job._TURN_SECONDS", 1e-3)
    index = opened()
    eventually(lambda: is_ready(index))
    reindexed(index)
    commit(place / "repository", {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    found = index.search(["insects that make honey"], SearchOptions(1, 1, Mode.SEMANTIC, wait=True, wait_seconds=30.0))[0]
    assert found.results[0].path == "bees"
    eventually(lambda: is_ready(index))
    assert generation_of(index).mirror.store.count() == PAGES + 1


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM keywords_data WHERE id > 10",
        "DELETE FROM keywords WHERE rowid = (SELECT MIN(id) FROM chunks)",
        "DELETE FROM chunks WHERE id = (SELECT MIN(id) FROM chunks)",
        "UPDATE chunks SET text = text || '!' WHERE id = (SELECT MIN(id) FROM chunks)",
        "INSERT INTO meta VALUES ('unfinished', '1')",
    ],
    ids=["words", "lost words", "lost passage", "text", "unfinished"],
)
def test_what_is_not_sound_is_not_copied(opened: Open, pages_read: list[str], statement: str) -> None:
    index = opened()
    eventually(lambda: is_ready(index) and index._manager.syncs.last_success)
    spoil(index, statement)
    status = reindexed(index)
    assert len(pages_read) == PAGES
    assert not status.rebuild.copies
    assert (status.pages, status.chunks, status.vectors, status.embedded_texts) == (PAGES, PAGES, PAGES, 0)
    catalog = generation_of(index).catalog
    catalog.check_copy()
    assert catalog.unfinished == 0
    assert ask(index, "unit0", Mode.KEYWORD).results[0].path == "p000"


def test_a_copy_of_pages_that_are_changing_is_put_right(place: Path) -> None:
    commit(place / "repository", {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    keeper = IndexEngine(Settings(place / "repository", place / "index", pages=()))._manager
    old = keeper._open_current()
    assert old is not None
    old.catalog.begin_change("another commit")
    old.catalog.remove_pages(["p001"])
    new = keeper._generations.copy(old)
    assert new.catalog.commit is None
    assert new.mirror.state is MirrorState.UNVERIFIED
    assert sync(keeper.syncs.indexer, new, previous=old.catalog)
    assert new.catalog.commit == Repository(place / "repository").head()
    assert new.catalog.counts().pages == PAGES + 1
    assert keeper.syncs.indexer.embedding.texts == 1
    new.catalog.check_copy()
    assert list(new.path.glob("chroma-*")) == [], "it is left alone until it serves"
    check_complete(new, 0)
    new.mirror.push()
    assert new.mirror.store.count() == PAGES + 1
    for generation in (new, old):
        generation.close()


# The room it takes


def test_a_collection_with_many_dead_places_is_filled_anew(place: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.storage.chroma.mirror._MAX_TOMBSTONES", 10)
    index = opened()
    eventually(lambda: is_ready(index))
    generation = generation_of(index)
    worn, edited = generation.mirror.store, 0
    while generation.mirror.store is worn:
        assert edited < PAGES
        commit(place / "repository", {f"p{edited:03}.md": page(1000 + edited)})
        answer = index.search([f"unit{1000 + edited}"], SearchOptions(1, 1, wait=True, wait_seconds=30.0))[0]
        assert (answer.results[0].path, answer.degraded) == (f"p{edited:03}", None)
        edited += 1
        eventually(lambda: is_ready(index))
    assert edited > 10, "not for a few"
    assert generation_of(index) is generation
    assert generation.mirror.store.count() == PAGES
    assert generation.catalog.outbox.tombstones <= 1, "the last edit may have come after the replacement"
    eventually(lambda: [path.name for path in generation.path.glob("chroma-*")] == [generation.catalog.meta("chroma")])
    assert ask(index, "unit67", Mode.SEMANTIC).results[0].path == "p067"
    assert index.status().embedded_texts == edited


def test_a_judgement_file_that_cannot_be_read_keeps_the_old_index(place: Path, opened: Open) -> None:
    questions = place / "questions.json"
    questions.write_text("[]")
    index = opened(eval_queries=questions)
    eventually(lambda: is_ready(index))
    old = index.status().generation
    index.reindex()
    eventually(lambda: index.status().rebuild.state is RebuildState.FAILED)
    assert index.status().generation == old
    assert "query file" in index.status().problems[0].message


def test_a_rebuild_says_before_what_it_will_take(index: IndexEngine) -> None:
    wanted = index.reindex().estimate
    assert wanted is not None
    assert wanted.texts == 0
    assert 100_000 < wanted.disk_bytes < 20_000_000
    assert 0 < wanted.seconds < 60
    eventually(lambda: index.status().rebuild.state is RebuildState.DONE)
    assert index.status().rebuild.estimate == wanted


def test_a_rebuild_without_room_for_it_does_not_begin(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/tmp")
    monkeypatch.setattr("shutil.disk_usage", lambda _place: usage._replace(free=1000))
    with pytest.raises(RebuildRefusedError, match="0 MB are free"):
        index.reindex()
    assert index.status().rebuild.state is RebuildState.IDLE
    assert ask(index, "unit67").results[0].path == "p067"


# What can come between


def at_the_end_of_a_build(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Let something happen when the new generation is whole and about to take the other's place."""

    def check(generation: Generation, allowed: int) -> None:
        check_complete(generation, allowed)
        do()

    monkeypatch.setattr("otterwiki_semantic.indexing.rebuild.check_complete", check)


def test_a_stop_at_the_end_of_a_rebuild_keeps_the_index(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened()
    eventually(lambda: is_ready(first))
    old = first.status().generation
    at_the_end_of_a_build(monkeypatch, first._manager.index._stopping.set)
    first.reindex()
    eventually(lambda: first.status().rebuild.state is RebuildState.FAILED)
    first._manager.index._stopping.clear()
    first.close()
    index = opened()
    eventually(lambda: is_ready(index))
    assert index.status().generation == old
    assert index.status().embedded_texts == 0


def test_damage_found_at_the_end_of_a_rebuild_keeps_the_better(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = generation_of(index)

    def lose() -> None:
        index._manager.mark_corrupt(serving)
        eventually(lambda: index._manager.serving is not serving and index.status().index.pending_pages == 0)

    at_the_end_of_a_build(monkeypatch, lose)
    index.reindex()
    eventually(lambda: index.status().rebuild.state is RebuildState.FAILED)
    status = eventually(lambda: is_ready(index))
    assert (status.pages, status.vectors, status.embedded_texts) == (PAGES, PAGES, PAGES)
    assert status.problems == (), "what failed beside a generation that is gone is no problem any more"
    assert ask(index, "unit67").results[0].path == "p067"


def test_a_build_that_the_model_fails_on_does_not_serve(place: Path) -> None:
    index = IndexEngine(Settings(place / "repository", place / "index", pages=()))
    generation = index._manager._generations.create(index.embedder, Profile())
    sync(index._manager.syncs.indexer, generation, embed=False)
    with pytest.raises(ModelError, match=f"failed on {PAGES} of {PAGES} pages"):
        check_complete(generation, 0)
    check_complete(generation, PAGES)
    generation.destroy()


def test_damaged_words_are_built_again_once_there_is_room(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = generation_of(index)
    with sqlite3.connect(serving.catalog.path) as connection:
        connection.execute("DELETE FROM keywords_data WHERE id > 10")
    connection.close()
    usage = shutil.disk_usage("/tmp")
    monkeypatch.setattr("shutil.disk_usage", lambda _place: usage._replace(free=1000))
    assert "by meaning alone" in (ask(index, "unit67").degraded or "")
    eventually(lambda: index.status().problems)
    assert "0 MB are free" in index.status().problems[0].message
    monkeypatch.undo()
    index._manager.rebuilds.tracker._cooldown.stop()
    index.notify()
    eventually(lambda: index._manager.serving is not serving)
    eventually(lambda: is_ready(index))
    answer = ask(index, "unit67")
    assert (answer.results[0].path, answer.degraded) == ("p067", None)
    assert index.status().problems == ()


def test_the_status_can_be_asked_while_generations_change(index: IndexEngine) -> None:
    for _ in range(2):
        index.reindex()
        while True:
            status = index.status()
            assert status.status != "error", status.last_error
            assert status.pages == PAGES
            if status.rebuild.state is not RebuildState.RUNNING:
                break
        assert status.rebuild.state is RebuildState.DONE


def test_an_old_schema_that_cannot_go_yet_costs_nothing(place: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    note(place, fingerprint="another schema", schema="1")
    usage = shutil.disk_usage("/tmp")
    monkeypatch.setattr("shutil.disk_usage", lambda _place: usage._replace(free=1000))
    index = opened()
    eventually(lambda: index.status().problems)
    assert ask(index, "unit67").results[0].path == "p067"
    begun = index._manager.syncs.begun
    for _ in range(3):
        assert ask(index, "unit67").results[0].path == "p067"
        index._manager.index.wait_for_successor(index._manager.serving, 0.3)  # type: ignore[arg-type]
    assert index._manager.syncs.begun <= begun + 1


def test_a_build_that_was_stopped_goes_on_after_the_next_start(place: Path, opened: Open) -> None:
    model, profile = BundledModel(), profile_named("fixed", 254)
    begun = GenerationStore(place / "index").create(model, profile)
    sync(Indexer(Repository(place / "repository"), IndexRecipe(model, "fixed")), begun)
    begun.close()
    index = opened(chunks="fixed")
    eventually(lambda: is_ready(index) and index.status().generation == begun.name)
    left = {path.name for path in (place / "index" / "generations").iterdir()}
    assert left >= {begun.name}
    assert len(left) <= 2, "one can return to the one before"


def test_a_build_goes_on_when_its_failed_model_works(place: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.indexing.rebuild._RETRY_SECONDS", 3600.0)
    note(place, fingerprint="another model", recipe="another model")
    embed = BundledModel.embed

    def failing(self: BundledModel, texts: Sequence[str]) -> Matrix:
        if any(f"unit{PAGES - 1}" in text for text in texts):
            raise ModelError("the server went down in the middle")
        return embed(self, texts)

    monkeypatch.setattr(BundledModel, "embed", failing)
    # An estimate embeds a random sample.
    monkeypatch.setattr("otterwiki_semantic.indexing.promotion._seconds_per_text", lambda *_: 0.0)
    monkeypatch.setattr("otterwiki_semantic.indexing.sync._TEXTS_PER_STEP", 8)
    monkeypatch.setattr("otterwiki_semantic.indexing.rebuild.check_complete", refusing)
    index = opened(eval_queries=judged(place, "p{:03}"))  # which keep it from serving as soon as its words are stored
    eventually(lambda: index.status().rebuild.state is RebuildState.FAILED)
    done = index.status().embedded_texts
    assert done
    monkeypatch.undo()
    index.reindex()
    eventually(lambda: is_ready(index) and index.status().rebuild.state is RebuildState.DONE)
    assert index.status().embedded_texts - done < PAGES / 2, "what was embedded before is not embedded again"


def refusing(generation: Generation, _allowed: int) -> None:
    if generation.catalog.unfinished:
        raise ModelError("the model failed")
