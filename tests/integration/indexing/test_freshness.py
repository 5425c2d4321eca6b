"""Which commit an answer equals, what is pending, and waiting for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.records import Answer, RebuildState, RebuildStatus, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.base import Matrix
from tests.support.engines import generation_of
from tests.support.live_wiki import commit, eventually, git


@pytest.fixture
def index(settings: Settings) -> Iterator[IndexEngine]:
    made = IndexEngine(settings)
    made.start()
    eventually(lambda: made.status().status == "ready")
    yield made
    made.close()


def ask(index: IndexEngine, query: str, wait: float = 0.0) -> Answer:
    return index.search([query], SearchOptions(1, 1, wait=True, wait_seconds=wait))[0]


def test_a_question_can_wait_for_what_nobody_told_the_index(settings: Settings, index: IndexEngine) -> None:
    head = commit(settings.repository, {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    before = ask(index, "insects that make honey")
    assert before.index.commit != head
    assert before.index.pending_pages == 1
    answer = ask(index, "insects that make honey", wait=20)
    assert (answer.index.commit, answer.index.head, answer.index.pending_pages) == (head, head, 0)
    assert answer.results[0].path == "bees"


def test_a_question_to_an_index_that_is_equal_does_not_wait(index: IndexEngine) -> None:
    begun = index._manager.syncs.begun
    assert ask(index, "vegetables", wait=10).results[0].path == "garden"
    assert index._manager.syncs.begun == begun


def test_waiting_has_an_end(settings: Settings, index: IndexEngine) -> None:
    with index._manager.index.changing:
        head = commit(settings.repository, {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
        start = time.monotonic()
        answer = ask(index, "vegetables", wait=0.3)
        assert time.monotonic() - start >= 0.3
        assert answer.results[0].path == "garden"
        assert (answer.index.head, answer.index.pending_pages) == (head, 1)
    eventually(lambda: ask(index, "insects that make honey", wait=5).index.commit == head)


def test_a_head_that_goes_on_moving_does_not_keep_a_question_waiting(settings: Settings, index: IndexEngine) -> None:
    asked = commit(settings.repository, {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    done = threading.Event()

    def move() -> None:
        while not done.is_set():
            commit(settings.repository, {}, "and on")

    mover = threading.Thread(target=move)
    mover.start()
    answer = ask(index, "insects that make honey", wait=20)
    done.set()
    mover.join()
    assert answer.results[0].path == "bees"
    assert answer.index.commit is not None
    git(settings.repository, "merge-base", "--is-ancestor", asked, answer.index.commit)


def test_a_first_build_can_be_waited_for(settings: Settings) -> None:
    index = IndexEngine(settings)
    index.start()
    assert ask(index, "vegetables", wait=30).results[0].path == "garden"
    index.close()


def test_an_answer_is_given_though_git_cannot_be_read(settings: Settings, index: IndexEngine) -> None:
    head = ask(index, "vegetables").index.commit
    away = settings.repository.with_name("away")
    settings.repository.rename(away)
    answer = ask(index, "vegetables", wait=0.2)
    assert answer.results[0].path == "garden"
    assert (answer.index.commit, answer.index.head) == (head, None)
    assert "git cannot read" in (answer.index.error or "")
    assert "git cannot read" in (answer.degraded or "")
    index.notify()
    eventually(lambda: index.status().status == "error")
    assert "REPOSITORY" in index.status().problems[0].hint
    away.rename(settings.repository)
    eventually(lambda: index.status().status == "ready")
    assert index.status().problems == ()


def job_of(index: IndexEngine, *paths: str) -> Callable[[], RebuildStatus]:
    """Ask for pages to be read again; gives what looks at the job."""
    name = index.refresh(paths).job
    assert name is not None
    return lambda: index.job(name)


def test_pages_that_are_read_again_are_done_with_the_sync_that_reads_them(index: IndexEngine) -> None:
    eventually(lambda: "sync" not in index._manager.scheduler._running, why="a sync's last step also takes the lock")
    with index._manager.index.changing:
        first = job_of(index, "garden")
        eventually(lambda: index._manager.syncs.begun > index._manager.syncs.ended)
        second = job_of(index, "GARDEN", "home")
        assert (first().state, second().state) == (RebuildState.RUNNING, RebuildState.RUNNING)
        assert (second().pages_done, second().pages_total) == (0, 2)
    eventually(lambda: first().state is RebuildState.DONE and second().state is RebuildState.DONE)
    assert second().pages_done == 2
    assert second().finished is not None
    assert index.status().rebuild == RebuildStatus(), "no index was rebuilt"


def test_pages_that_could_not_be_read_again_fail_and_say_why(settings: Settings, index: IndexEngine) -> None:
    away = settings.repository.with_name("away")
    settings.repository.rename(away)
    failed = job_of(index, "garden")
    eventually(lambda: failed().state is RebuildState.FAILED)
    assert failed().error
    assert "REPOSITORY" in (failed().hint or "")
    away.rename(settings.repository)
    done = job_of(index, "garden")
    eventually(lambda: done().state is RebuildState.DONE)
    assert failed().state is RebuildState.FAILED


def test_an_index_on_its_way_to_another_commit_does_not_equal_the_last_one(settings: Settings, index: IndexEngine) -> None:
    """HEAD moves to another branch and back while pages are being indexed."""
    here = git(settings.repository, "rev-parse", "HEAD")
    git(settings.repository, "checkout", "-qb", "other")
    commit(settings.repository, {"garden.md": "# Garden\n\nOnly weeds grow here now.\n"})
    serving = generation_of(index)
    with index._manager.index.changing:
        serving.catalog.begin_change("the other commit")
        serving.catalog.remove_pages(["garden"])
        git(settings.repository, "checkout", "-q", "main")
        answer = ask(index, "vegetables", wait=0.1)
        assert answer.index.head == here
        assert answer.index.pending_pages == 1
        assert index.status().status == "indexing"
    assert ask(index, "vegetables", wait=20).results[0].path == "garden"
    eventually(lambda: index.status().status == "ready")


def test_pages_that_the_model_failed_on_are_pending_while_they_are_tried_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_texts: Sequence[str]) -> Matrix:
        raise ModelError("it is down")

    stored, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr("otterwiki_semantic.indexing.sync_job._RETRY_UNFINISHED_SECONDS", 0.0)
    index = IndexEngine(settings)
    assert index.status().index.pending_pages == 5
    monkeypatch.setattr(index.embedder, "embed", fail)
    index.start()
    eventually(lambda: index.status().index.pending_pages == 5 and index.status().status == "ready_by_words")
    with index._manager.index.changing:
        commit(settings.repository, {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
        assert index.status().index.pending_pages == 6
        git(settings.repository, "reset", "-q", "--hard", "HEAD~1")
    serving = generation_of(index)
    collect_garbage = serving.catalog.vectors.collect_garbage

    def pause() -> None:
        stored.set()
        may_end.wait(30)
        collect_garbage()

    monkeypatch.setattr(serving.catalog.vectors, "collect_garbage", pause)
    index.notify()
    assert stored.wait(30), "the model has failed again"
    assert index.status().index.pending_pages == 5
    may_end.set()
    index.close()


def test_a_save_runs_one_sync_and_chroma_is_filled_apart_from_it(settings: Settings, index: IndexEngine) -> None:
    serving = generation_of(index)
    eventually(lambda: serving.mirror.is_whole)
    begun = index._manager.syncs.begun
    head = commit(settings.repository, {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    index.notify()
    eventually(lambda: serving.mirror.is_whole and serving.catalog.commit == head)
    assert index._manager.syncs.begun == begun + 1
