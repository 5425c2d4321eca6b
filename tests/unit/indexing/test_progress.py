"""What the wiki's log says of a build."""

from __future__ import annotations

import logging
from logging.handlers import QueueHandler
from queue import SimpleQueue
from types import SimpleNamespace

import pytest

from otterwiki_semantic.content import PageFile
from otterwiki_semantic.core.telemetry import ANNOUNCEMENTS
from otterwiki_semantic.indexing import progress
from otterwiki_semantic.indexing.progress import ProgressTracker, announced


@pytest.fixture(autouse=True)
def _announcements(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "otterwiki_semantic.announcements")


def test_long_work_is_announced_with_its_progress_and_its_end(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_FIRST_SECONDS", 0.001)
    monkeypatch.setattr(progress, "_NEXT_SECONDS", 0.001)
    clock = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[-1]))
    announcements = SimpleQueue[logging.LogRecord]()
    handler = QueueHandler(announcements)
    ANNOUNCEMENTS.addHandler(handler)
    request.addfinalizer(lambda: ANNOUNCEMENTS.removeHandler(handler))

    def wait_for(message: str) -> None:
        while announcements.get(timeout=60).getMessage() != message:
            pass

    tracker = ProgressTracker()
    with announced(tracker, is_build=False, indexed=lambda: (1200, 2058)):
        tracker.begin([PageFile(f"page {number}", "blob", 10) for number in range(1200)], 0)
        wait_for("indexed 0 of 1,200 pages by words, 0% by meaning")
        assert caplog.messages[0] == "indexing 1,200 pages"
        tracker.page_read(3000, 100)
        tracker.chunks_embedded(20, seconds=2)
        tracker.pages_stored(300, lacking=300)
        wait_for("indexed 300 of 1,200 pages by words, 5% by meaning, about 38 s left")
        tracker.page_read(9000, 300)
        tracker.pages_stored(900, lacking=900)
        tracker.begin_embedding(1200, 380)
        tracker.chunks_embedded(80, seconds=8)
        wait_for("indexed all 1,200 pages by words, 25% by meaning, about 30 s left")
        clock.append(10.0)
    assert caplog.messages[-1] == "search is ready: 1,200 pages, 2,058 chunks in 10 s"


def test_the_time_left_is_that_of_reading_and_of_embedding_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[-1]))
    tracker = ProgressTracker()
    tracker.begin([PageFile(f"page {number}", "blob", 10) for number in range(4)], 0)
    assert tracker.snapshot().seconds_left is None
    clock.append(3.0)
    tracker.page_read(10, chunks=5)
    tracker.chunks_embedded(5, seconds=1)
    found = tracker.snapshot()
    assert (found.chunks_done, found.chunks_total) == (5, 20)
    assert found.seconds_left == 3 * 3.0 + 15 * 0.2


def test_copied_pages_are_counted_once_when_a_sync_continues_another() -> None:
    tracker = ProgressTracker()
    tracker.reset(100, 200)
    tracker.begin([PageFile("changed", "blob", 10)], 0, pages=90, chunks=180)
    tracker.begin_embedding(10, 20)
    found = tracker.snapshot()
    assert (found.pages_done, found.pages_total, found.chunks_done, found.chunks_total) == (90, 100, 180, 200)


def test_the_end_of_short_work_is_announced_for_a_build_only(caplog: pytest.LogCaptureFixture) -> None:
    for is_build in (False, True):
        with announced(ProgressTracker(), is_build=is_build, indexed=lambda: (5, 6)):
            assert caplog.messages == []
    assert caplog.messages == ["search is ready: 5 pages, 6 chunks in 0 s"]


def test_work_that_fails_is_not_announced_as_ready(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OSError), announced(ProgressTracker(), is_build=True, indexed=lambda: (5, 6)):  # noqa: PT011
        raise OSError
    assert caplog.messages == []
