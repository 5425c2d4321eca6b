"""The scheduler of background work: syncs, rebuilds, and their follow-ups."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

Work = Callable[[], None]

_THREADS = 12
"""More than there are slots."""
_UNLIMITED = 1_000
"""APScheduler drops a run above this number of instances, including one that is about to end, and its work would be lost."""
_CLOCK_SECONDS = 5.0

log = logging.getLogger(__name__)


class Scheduler:
    """Run work in named slots (jobs of APScheduler), one task at a time in each.

    A task requested while its slot is busy runs afterwards, once.
    """

    def __init__(self) -> None:
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(_THREADS)},
            job_defaults={"misfire_grace_time": None, "max_instances": _UNLIMITED},
        )
        self._changed = threading.Condition()
        self._running: set[str] = set()
        self._next: dict[str, Work] = {}
        """The task to run in a slot when its current work has ended."""
        self._is_stopped = threading.Event()

    def start(self) -> None:
        """Start running tasks that are due."""
        self._scheduler.start()
        threading.Thread(target=self._watch_clock, name="clock", daemon=True).start()

    def run_in(self, seconds: float, slot: str, work: Work) -> None:
        """Run a task after a pause, replacing a waiting one in the same slot."""
        with self._changed:
            self._next.pop(slot, None)
            self._run_at(datetime.now(UTC) + timedelta(seconds=seconds), slot, work)

    def run_within(self, seconds: float, slot: str, work: Work) -> None:
        """Run a task after a pause, or at the time of a task that already waits in the same slot, if that is earlier."""
        moment = datetime.now(UTC) + timedelta(seconds=seconds)
        with self._changed:
            waiting = self._scheduler.get_job(slot)
            if slot not in self._next and (waiting is None or moment < waiting.next_run_time):
                self._run_at(moment, slot, work)

    def stop(self, timeout: float, slot: str) -> None:
        """Start no more tasks, and wait up to `timeout` seconds for the one in a slot."""
        with self._changed:
            is_first = not self._is_stopped.is_set()
            self._is_stopped.set()
        if is_first and self._scheduler.running:
            self._scheduler.pause()
            self._scheduler.get_jobs()  # waits for the current round: a shutdown in the middle would end it with an error
            self._scheduler.shutdown(wait=False)
        with self._changed:
            self._changed.wait_for(lambda: slot not in self._running, timeout)

    def _run_at(self, moment: datetime, slot: str, work: Work) -> None:
        if not self._is_stopped.is_set():
            arguments = slot, work
            self._scheduler.add_job(self._run, "date", arguments, run_date=moment, id=slot, replace_existing=True)

    def _run(self, slot: str, first: Work) -> None:
        with self._changed:
            if slot in self._running:
                self._next[slot] = first
                return
            self._running.add(slot)
        work: Work | None = first
        while work is not None:
            try:
                work()
            except Exception:
                log.exception("work in the background failed: %s", slot)
            with self._changed:
                work = None if self._is_stopped.is_set() else self._next.pop(slot, None)
                if work is None:
                    self._running.discard(slot)
                    self._changed.notify_all()

    def _watch_clock(self) -> None:
        """Shift waiting tasks when the clock is set, because APScheduler uses clock times."""
        offset = _clock_offset()
        while not self._is_stopped.wait(_CLOCK_SECONDS):
            offset, before = _clock_offset(), offset
            if abs(offset - before) > _CLOCK_SECONDS:
                log.info("the clock was set by %.0f s", offset - before)
                with self._changed:
                    for job in self._scheduler.get_jobs():
                        job.modify(next_run_time=job.next_run_time + timedelta(seconds=offset - before))


def _clock_offset() -> float:
    return time.time() - time.monotonic()
