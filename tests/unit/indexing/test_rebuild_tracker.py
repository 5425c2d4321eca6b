"""The states of a rebuild."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import RebuildRefusedError, RebuildRunningError, RepositoryError
from otterwiki_semantic.core.records import Estimate, RebuildState, Recall
from otterwiki_semantic.indexing.rebuild import RebuildTracker
from otterwiki_semantic.indexing.sync import Stopped
from otterwiki_semantic.storage.generation import Generation

WANTED = Estimate(texts=3, disk_bytes=1_000_000, free_bytes=10**9, seconds=1.5)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Generation]:
    (tmp_path / "serving").mkdir()
    made = Generation(tmp_path / "serving")
    yield made
    made.close()


@pytest.fixture
def tracker() -> RebuildTracker:
    return RebuildTracker()


def test_a_rebuild_that_succeeds_is_done(tracker: RebuildTracker, serving: Generation) -> None:
    assert (tracker.status.state, tracker.may_start) == (RebuildState.IDLE, True)
    tracker.begin(serving, WANTED, copies=True)
    assert tracker.is_running
    assert not tracker.may_start
    with tracker.running():
        tracker.update(copies=False, recall=Recall(0.5, 0.75))
    status = tracker.status
    assert (status.state, status.error, status.copies, status.recall) == (RebuildState.DONE, None, False, Recall(0.5, 0.75))
    assert status.estimate == WANTED
    assert status.started is not None
    assert status.finished is not None
    assert not tracker.may_start, "none is started automatically for a while"
    assert status.job is not None
    assert tracker.jobs.find(status.job) == status
    tracker.put_off(serving, RebuildRefusedError("no room"))
    assert tracker.status.job is None
    assert tracker.jobs.find(status.job) == status, "what could not begin is another rebuild"


def test_only_one_rebuild_runs(tracker: RebuildTracker, serving: Generation) -> None:
    tracker.begin(serving, WANTED, copies=False)
    with pytest.raises(RebuildRunningError, match="has been running since"):
        tracker.check_idle()
    with pytest.raises(RebuildRunningError):
        tracker.begin(serving, WANTED, copies=False)


@pytest.mark.parametrize("error", [RepositoryError("git is gone"), ZeroDivisionError("what nobody foresaw")])
def test_a_rebuild_that_fails_says_why_and_what_to_do(
    tracker: RebuildTracker, serving: Generation, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    tracker.begin(serving, WANTED, copies=False)
    with tracker.running():
        raise error
    assert (tracker.status.state, tracker.status.error) == (RebuildState.FAILED, str(error))
    assert tracker.status.hint
    assert tracker.error_next_to(serving) is error
    assert f"the rebuild failed, the old index continues to serve: {error}" in caplog.text
    tracker.begin(serving, WANTED, copies=False)
    assert tracker.error_next_to(serving) is None


def test_a_rebuild_that_is_stopped_is_no_failure_of_its_own(tracker: RebuildTracker, serving: Generation) -> None:
    tracker.begin(serving, WANTED, copies=False)
    with tracker.running():
        raise Stopped
    assert "the index daemon was stopped" in str(tracker.status.error)


def test_a_rebuild_that_cannot_begin_is_put_off(tracker: RebuildTracker, serving: Generation, tmp_path: Path) -> None:
    tracker.put_off(serving, RebuildRefusedError("no room"))
    assert (tracker.status.state, tracker.status.error, tracker.may_start) == (RebuildState.FAILED, "no room", False)
    assert isinstance(tracker.error_next_to(serving), RebuildRefusedError)
    (tmp_path / "other").mkdir()
    other = Generation(tmp_path / "other")
    assert tracker.error_next_to(other) is None
    other.close()
