"""Many pages at once: all are found by their words first, and by meaning as their passages are embedded."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from threading import Condition, Event

import pytest

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.records import Answer, Mode, Progress, RebuildState, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.sync_job import SyncJob
from otterwiki_semantic.storage import StoredVector
from otterwiki_semantic.storage.vector_table import VectorTable
from tests.support.live_wiki import commit, eventually, head_of, is_settled, make_repository

PAGES = 80
LINKED = "p079"
STEP, FIRST = 4, 2
"""Passages that are embedded at a time, and how many times that is done at first, from which the model's speed is known."""


def page(number: int) -> str:
    return f"# Page {number}\n\nThis page tells about the machine called unit{number}. It is {'very ' * (number % 10)}old.\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    pages = {f"p{number:03}.md": page(number) for number in range(PAGES)}
    pages |= {f"links{number}.md": f"# Links {number}\n\nSee [the last one](/{LINKED}).\n" for number in range(3)}
    repository = make_repository(tmp_path / "repository", pages)
    return Settings(repository, tmp_path / "index", sync_interval=3600, pages=())


class HeldModel:
    """Has the bundled model embed as many steps of `STEP` passages as the test allows, and notes what it embeds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        self.fails = False
        self.free = "no passage"
        """How passages begin that are always embedded."""
        self._allowed: float = FIRST
        self._changed = Condition()
        embed = BundledModel.embed

        def embed_if_allowed(model: BundledModel, texts: Sequence[str]) -> Matrix:
            passages = [text for text in texts if text.startswith("[")]
            self.texts += passages
            if passages and not any(text.startswith(self.free) for text in passages):
                self._take()
            if self.fails:
                raise ModelError("it is down")
            return embed(model, texts)

        monkeypatch.setattr(BundledModel, "embed", embed_if_allowed)
        monkeypatch.setattr("otterwiki_semantic.indexing.sync._TEXTS_PER_STEP", STEP)
        monkeypatch.setattr("otterwiki_semantic.indexing.sync._MAX_VECTORS", 2 * STEP)
        monkeypatch.setattr("otterwiki_semantic.indexing.sync._PAGES_PER_BATCH", 8)
        monkeypatch.setattr("otterwiki_semantic.indexing.sync_job._RETRY_UNFINISHED_SECONDS", 0.0)

    def allow(self, steps: float = math.inf) -> None:
        with self._changed:
            self._allowed += steps
            self._changed.notify_all()

    def hold(self) -> None:
        with self._changed:
            self._allowed = FIRST

    def _take(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._allowed > 0, 90)
            self._allowed -= 1


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> HeldModel:
    return HeldModel(monkeypatch)


@pytest.fixture
def index(settings: Settings, model: HeldModel) -> Iterator[IndexEngine]:
    made = IndexEngine(settings)
    made.start()
    yield made
    model.allow()
    made.close()


def ask(index: IndexEngine, query: str, mode: Mode = Mode.HYBRID) -> Answer:
    return index.search([query], SearchOptions(1, 1, mode))[0]


def found_by_words(index: IndexEngine) -> Progress | None:
    progress = ask(index, "unit3").index.progress
    return progress if progress and progress.pages_by_words == progress.pages_total == PAGES + 3 else None


def is_whole(index: IndexEngine) -> bool:
    return is_settled(index.status()) and index.status().index.pending_pages == 0


def test_all_pages_are_found_by_words_before_their_passages_are_embedded(index: IndexEngine, model: HeldModel) -> None:
    progress = eventually(lambda: found if (found := found_by_words(index)) and found.chunks_done else None)
    assert progress.chunks_done < progress.chunks_total == PAGES + 3
    assert progress.seconds_left
    answer = ask(index, "unit60")
    assert (answer.results[0].path, answer.degraded, answer.index.commit) == ("p060", None, None)
    assert answer.results[0].similarity is None
    assert 0 < answer.index.pending_pages < PAGES
    assert "all 83 pages by words" in answer.index.progress.describe()  # type: ignore[union-attr]
    model.allow()
    eventually(lambda: is_whole(index))
    answer = ask(index, "unit60")
    assert answer.results[0].similarity is not None
    assert (answer.index.progress, answer.index.pending_pages) == (None, 0)
    assert sorted(model.texts) == sorted(set(model.texts)), "each passage is embedded once"


def test_a_page_is_pending_until_it_has_its_vectors(tmp_path: Path, model: HeldModel, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = "\n".join(f"## Part {number}\n\n{'It is old and heavy. ' * 20}\n" for number in range(3))
    repository = make_repository(tmp_path / "long", {f"p{number}.md": f"# Page {number}\n\n{parts}" for number in range(6)})
    engine = IndexEngine(Settings(repository, tmp_path / "long-index", pages=()))
    pending: list[int] = []
    add = VectorTable.add

    def note_and_add(table: VectorTable, vectors: Sequence[StoredVector]) -> None:
        pending.append(engine.status().index.pending_pages)
        add(table, vectors)

    monkeypatch.setattr(VectorTable, "add", note_and_add)
    model.allow()
    with closing(engine):
        engine.start()
        eventually(lambda: is_whole(engine))
    assert len(pending) > 2
    assert min(pending) > 0


def test_a_page_that_many_link_to_is_embedded_before_others(index: IndexEngine, model: HeldModel) -> None:
    model.allow()
    eventually(lambda: is_whole(index))
    places = {text.partition("]")[0]: place for place, text in enumerate(model.texts)}
    first_batch = 8
    assert places["[Page 79"] == first_batch


def test_a_page_that_is_opened_comes_next(index: IndexEngine, model: HeldModel) -> None:
    eventually(lambda: found_by_words(index))
    index.related("p041", 3)
    embedded = len(model.texts)
    model.allow()
    eventually(lambda: is_whole(index))
    place = next(place for place, text in enumerate(model.texts) if text.startswith("[Page 41]"))
    assert place < embedded + 64 + 8


def test_a_commit_is_indexed_at_once_while_pages_are_embedded(settings: Settings, index: IndexEngine, model: HeldModel) -> None:
    eventually(lambda: found_by_words(index))
    model.free = "[Radiators]"
    commit(settings.repository, {"fresh.md": "# Radiators\n\nBleed them in autumn, or they gurgle all winter.\n"})
    index.notify()
    model.allow(2)

    def fresh() -> Answer | None:
        answer = ask(index, "heating makes a bubbling noise", Mode.SEMANTIC)
        return answer if answer.results[0].path == "fresh" else None

    answer = eventually(fresh)
    assert answer.index.progress, "the rest is not waited for"
    model.allow()
    eventually(lambda: is_whole(index))
    assert index.status().index.commit == head_of(settings.repository)


def test_what_was_embedded_outlives_a_restart(settings: Settings, index: IndexEngine, model: HeldModel) -> None:
    model.allow(6)
    eventually(lambda: (progress := found_by_words(index)) and progress.chunks_done > 30)
    index.close(0.1)
    assert len(model.texts) < PAGES
    model.allow()
    again = IndexEngine(settings)
    again.start()
    eventually(lambda: is_whole(again))
    again.close()
    assert len(set(model.texts)) == PAGES + 3
    assert len(model.texts) <= PAGES + 3 + 3 * STEP, "at most one batch and the steps under way were lost"


def test_pages_whose_passages_the_model_fails_on_are_pending_until_it_works(index: IndexEngine, model: HeldModel) -> None:
    eventually(lambda: found_by_words(index))
    model.fails = True
    model.allow()
    eventually(lambda: index.status().status == "ready_by_words")
    status = index.status()
    assert 0 < status.index.pending_pages < PAGES
    assert any("found by keywords only" in problem.message for problem in status.problems)
    assert ask(index, "unit60").results[0].path == "p060"
    eventually(lambda: is_settled(index.status()), why="ChromaDB holds the vectors that there are")
    model.fails = False
    index.notify()
    eventually(lambda: is_whole(index))
    assert index.status().vectors == PAGES + 3


def test_with_another_model_words_are_complete_and_meaning_follows(
    settings: Settings, index: IndexEngine, model: HeldModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.allow()
    eventually(lambda: is_whole(index))
    index.close()
    may_embed, sync = Event(), SyncJob.sync

    def sync_if_allowed(job: SyncJob, progress: ProgressTracker, *, by_rebuild: bool = False) -> None:
        assert not by_rebuild or may_embed.wait(90)
        sync(job, progress, by_rebuild=by_rebuild)

    monkeypatch.setattr(SyncJob, "sync", sync_if_allowed)
    old = (settings.data_dir / "current").read_text().strip()
    with closing(sqlite3.connect(settings.data_dir / "generations" / old / "catalog.sqlite3")) as catalog, catalog:
        catalog.execute("UPDATE meta SET value = 'another model' WHERE name IN ('fingerprint', 'recipe')")
    model.hold()
    model.allow(8)
    changed = IndexEngine(settings)
    changed.start()
    try:
        eventually(lambda: changed.status().generation != old)
        rebuild = changed.status().rebuild
        answer = ask(changed, "unit60")
        assert (answer.results[0].path, answer.degraded) == ("p060", None)
        assert answer.index.progress
        assert answer.index.pending_pages == PAGES + 3 - rebuild.pages_done > 0
        assert (rebuild.state, rebuild.pages_by_words) == (RebuildState.RUNNING, PAGES + 3)
        may_embed.set()
        commit(settings.repository, {"fresh.md": "# Fresh\n\nA page about gurgling radiators.\n"})
        model.free = "[Fresh]"
        changed.notify()
        model.allow(2)
        eventually(lambda: ask(changed, "gurgling radiators").results[0].path == "fresh")
        model.allow()
        eventually(lambda: is_whole(changed) and changed.status().rebuild.state is RebuildState.DONE)
        assert changed.status().vectors == PAGES + 4
    finally:
        may_embed.set()
        changed.close()
