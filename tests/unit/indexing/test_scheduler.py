"""Work of one slot runs once at a time, and none that was asked for is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from queue import SimpleQueue
from threading import Event

import pytest

from otterwiki_semantic.indexing.scheduler import Scheduler

SECONDS = 60
"""How long a test waits before it fails."""
Begun = SimpleQueue[str]


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    started = Scheduler()
    started.start()
    yield started
    started.stop(5, "sync")


def test_what_is_asked_for_during_work_makes_it_run_once_more(scheduler: Scheduler) -> None:
    begun, may_end = Begun(), Event()

    def sync() -> None:
        begun.put("sync")
        may_end.wait(SECONDS)

    scheduler.run_in(0, "sync", sync)
    assert begun.get(timeout=SECONDS) == "sync"
    for _ in range(5):
        scheduler.run_within(0, "sync", sync)
    assert begun.empty(), "one at a time"
    may_end.set()
    assert begun.get(timeout=SECONDS) == "sync"
    scheduler.run_within(0, "sync", lambda: begun.put("what comes next"))
    assert begun.get(timeout=SECONDS) == "what comes next"


def test_work_that_fails_does_not_stop_later_work(scheduler: Scheduler) -> None:
    begun = Begun()

    def sync() -> None:
        begun.put("sync")
        raise RuntimeError("it fails")

    for _ in range(2):
        scheduler.run_in(0, "sync", sync)
        assert begun.get(timeout=SECONDS) == "sync"


def test_work_takes_the_place_of_earlier_work_in_its_slot_only(scheduler: Scheduler) -> None:
    begun = Begun()
    scheduler.run_in(3600, "map", lambda: begun.put("replaced"))
    scheduler.run_in(0.3, "other", lambda: begun.put("other"))
    scheduler.run_in(0, "map", lambda: begun.put("first"))
    assert {begun.get(timeout=SECONDS) for _ in range(2)} == {"first", "other"}


def test_what_waits_is_never_put_off_by_what_may_wait_longer(scheduler: Scheduler) -> None:
    begun = Begun()
    scheduler.run_within(0.1, "sync", lambda: begun.put("early"))
    scheduler.run_within(3600, "sync", lambda: begun.put("late"))
    assert begun.get(timeout=SECONDS) == "early"


def test_a_stop_waits_for_its_slot_and_starts_nothing_more(scheduler: Scheduler) -> None:
    done: list[str] = []
    began, may_end = Event(), Event()

    def sync() -> None:
        began.set()
        may_end.wait(SECONDS)
        done.append("sync")

    scheduler.run_in(0, "sync", sync)
    assert began.wait(SECONDS)
    scheduler.stop(0.01, "sync")
    assert done == [], "it waits no longer than it may"
    may_end.set()
    scheduler.stop(SECONDS, "sync")
    scheduler.run_in(0, "sync", lambda: done.append("again"))
    assert done == ["sync"]


def test_a_clock_that_is_set_back_delays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of APScheduler and of ours is exchanged: no test may set the machine's."""
    shift = timedelta(0)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + shift

    real = time.time
    monkeypatch.setattr("otterwiki_semantic.indexing.scheduler._CLOCK_SECONDS", 0.1)
    for module in ("otterwiki_semantic.indexing.scheduler", "apscheduler.schedulers.base"):
        monkeypatch.setattr(f"{module}.datetime", Clock)
    monkeypatch.setattr("otterwiki_semantic.indexing.scheduler.time.time", lambda: real() + shift.total_seconds())
    scheduler, done = Scheduler(), Event()
    scheduler.start()
    scheduler.run_in(0.3, "sync", done.set)
    shift = timedelta(days=-400)
    assert done.wait(SECONDS)
    scheduler.stop(5, "sync")
