"""Syncs run once at a time, and none that was asked for is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, tzinfo
from threading import Event
from typing import Any

import pytest

from otterwiki_semantic.indexing.scheduler import Scheduler
from tests.support.live_wiki import eventually

Start = Callable[[Callable[[], None]], Scheduler]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Scheduler] = []

    def start(sync: Callable[[], None]) -> Scheduler:
        started.append(Scheduler(sync, 3600))
        started[-1].start()
        return started[-1]

    yield start
    for scheduler in started:
        scheduler.stop(5)


def test_wake_ups_during_a_sync_make_it_run_once_more(start: Start) -> None:
    begun: list[int] = []
    may_end = Event()

    def sync() -> None:
        begun.append(len(begun))
        may_end.wait(10)

    scheduler = start(sync)
    eventually(lambda: begun == [0])
    for _ in range(5):
        scheduler.wake()
    assert begun == [0], "one at a time"
    may_end.set()
    eventually(lambda: len(begun) >= 2)
    assert len(begun) <= 3


def test_a_sync_that_fails_does_not_stop_later_ones(start: Start) -> None:
    runs: list[int] = []

    def sync() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            raise RuntimeError("the first one fails")

    scheduler = start(sync)
    eventually(lambda: runs == [0])
    scheduler.wake()
    eventually(lambda: len(runs) == 2)


def test_no_run_is_lost_to_earlier_ones_that_have_not_quite_ended(start: Start) -> None:
    """APScheduler counts a run until its thread says that it has ended, which takes a while on a busy machine."""
    syncs: list[int] = []
    others: list[int] = []
    scheduler = start(lambda: syncs.append(len(syncs)))
    eventually(lambda: syncs == [0])
    executor: Any = scheduler._scheduler._lookup_executor("default")
    for job in ("sync", "background"):
        executor._instances[job] += 3
    scheduler.reschedule_background(0, lambda: others.append(len(others)))
    scheduler.wake()
    eventually(lambda: len(syncs) == 2 and others == [0], 10)
    scheduler.wake()
    eventually(lambda: len(syncs) == 3, 10)


def test_work_takes_the_place_of_earlier_work_in_its_slot_only(start: Start) -> None:
    done: list[str] = []
    scheduler = start(lambda: None)
    scheduler.reschedule_background(3600, lambda: done.append("replaced"))
    scheduler.reschedule_background(0.3, lambda: done.append("other"), "other")
    scheduler.reschedule_background(0, lambda: done.append("first"))
    eventually(lambda: done == ["first", "other"], 10)


@pytest.mark.parametrize("days", [-400, -1, 1, 400])
def test_a_clock_that_is_set_stops_no_sync(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    """The clock of APScheduler and of ours is exchanged: no test may set the machine's."""
    shift = timedelta(0)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + shift

    real = time.time
    monkeypatch.setattr("otterwiki_semantic.indexing.scheduler._CLOCK_SECONDS", 0.1)
    for module in ("otterwiki_semantic.indexing.scheduler", "apscheduler.schedulers.base", "apscheduler.triggers.interval"):
        monkeypatch.setattr(f"{module}.datetime", Clock)
    monkeypatch.setattr("otterwiki_semantic.indexing.scheduler.time.time", lambda: real() + shift.total_seconds())
    runs: list[float] = []
    jobs = Scheduler(lambda: runs.append(time.monotonic()), 0.3)
    jobs.start()
    eventually(lambda: len(runs) >= 2)
    shift = timedelta(days=days)
    before = len(runs)
    eventually(lambda: len(runs) >= before + 2, 10, "it syncs after the clock was set")
    jobs.stop(5)
