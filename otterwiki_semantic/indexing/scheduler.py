"""The background scheduler: when to sync, and the threads of everything else that runs in the background."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

_SYNC = "sync"
_THREADS = 5
_WAKE_DELAY = timedelta(milliseconds=50)
"""A save calls several hooks before its user gets an answer: one sync, a moment later, serves them all and delays nobody."""
_CLOCK_SECONDS = 5.0
_UNLIMITED = 1_000
"""APScheduler drops a run beyond this number of instances, and counts one that is about to end: the work it was for is lost."""

log = logging.getLogger(__name__)


class Scheduler:
    """Runs `sync` at an interval and when it is woken, once at a time; and other work in the background.

    Any number of wake-ups during a sync make it run once more.
    """

    def __init__(self, sync: Callable[[], None], interval: float) -> None:
        self._sync = sync
        self._running = threading.Lock()
        self._wanted = threading.Event()
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(_THREADS)},
            job_defaults={"coalesce": True, "max_instances": _UNLIMITED, "misfire_grace_time": None},
        )
        self._scheduler.add_job(self._run, "interval", seconds=interval, id=_SYNC, next_run_time=datetime.now(UTC))
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the scheduler's thread; the first sync runs at once."""
        self._scheduler.start()
        threading.Thread(target=self._watch_clock, name="clock", daemon=True).start()

    def wake(self) -> None:
        """Run a sync in a moment; another call before that changes nothing."""
        if self._wanted.is_set():
            return
        self._wanted.set()
        self._sync_at(datetime.now(UTC) + _WAKE_DELAY)

    def retry_in(self, seconds: float) -> None:
        """Run the next sync after a pause, whenever it was due."""
        self._sync_at(datetime.now(UTC) + timedelta(seconds=seconds))

    def sync_within(self, seconds: float) -> None:
        """Run the next sync after `seconds` at the latest."""
        moment = datetime.now(UTC) + timedelta(seconds=seconds)
        job = self._scheduler.get_job(_SYNC)
        if job is not None and job.next_run_time > moment:
            self._sync_at(moment)

    def _sync_at(self, moment: datetime) -> None:
        if not self._stopped.is_set():
            with suppress(JobLookupError):  # it was stopped this very moment
                self._scheduler.modify_job(_SYNC, next_run_time=moment)

    def submit(self, work: Callable[[], None]) -> None:
        """Run some work in the background now; ignored once the scheduler was stopped."""
        if not self._stopped.is_set():
            self._scheduler.add_job(work)

    def reschedule_background(self, seconds: float, work: Callable[[], None], slot: str = "background") -> None:
        """Run some work in the background after a pause, in place of what was to run in the same slot."""
        if not self._stopped.is_set():
            moment = datetime.now(UTC) + timedelta(seconds=seconds)
            self._scheduler.add_job(work, "date", run_date=moment, id=slot, replace_existing=True)

    def stop(self, timeout: float) -> None:
        """Start nothing more, and wait up to `timeout` seconds for a running sync."""
        self._stopped.set()
        self._scheduler.pause()
        self._scheduler.get_jobs()  # waits for the current round: a shutdown in the middle would end it with an error
        self._scheduler.shutdown(wait=False)
        if self._running.acquire(timeout=timeout):
            self._running.release()

    def _watch_clock(self) -> None:
        """Sync when the clock was set: the scheduler's times are those of the clock, and could be a year away."""
        offset = _clock_offset()
        while not self._stopped.wait(_CLOCK_SECONDS):
            offset, before = _clock_offset(), offset
            if abs(offset - before) > _CLOCK_SECONDS:
                log.info("the clock was set by %.0f s", offset - before)
                self.retry_in(0)

    def _run(self) -> None:
        """Sync, or let the sync that is running be followed by another one."""
        self._wanted.set()
        while self._wanted.is_set() and not self._stopped.is_set() and self._running.acquire(blocking=False):
            try:
                self._wanted.clear()
                self._sync()
            finally:
                self._running.release()


def _clock_offset() -> float:
    return time.time() - time.monotonic()
