"""The scheduler of background work: syncs, rebuilds, and their follow-ups."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

Work = Callable[[], None]

log = logging.getLogger(__name__)


class Scheduler:
    """Run work in named slots, one task at a time in each, on threads of their own.

    A task that becomes due while its slot is busy runs afterwards, once.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, tuple[float, Work]] = {}
        """The task that waits in each slot, and when it is due on the monotonic clock."""
        self._running: set[str] = set()
        self._is_stopped = False

    def start(self) -> None:
        """Start running tasks that are due."""
        threading.Thread(target=self._start_due, name="scheduler", daemon=True).start()

    def run_in(self, seconds: float, slot: str, work: Work) -> None:
        """Run a task after a pause, replacing a waiting one in the same slot."""
        with self._changed:
            if not self._is_stopped:
                self._waiting[slot] = time.monotonic() + seconds, work
                self._changed.notify_all()

    def run_within(self, seconds: float, slot: str, work: Work) -> None:
        """Run a task after a pause, or at the time of a task that already waits in the same slot, if that is earlier."""
        with self._changed:
            if slot not in self._waiting or time.monotonic() + seconds < self._waiting[slot][0]:
                self.run_in(seconds, slot, work)

    def is_running(self, slot: str) -> bool:
        """Whether a task is running in a slot."""
        return slot in self._running

    def stop(self, timeout: float, slot: str) -> None:
        """Start no more tasks, and wait up to `timeout` seconds for the one in a slot."""
        with self._changed:
            self._is_stopped = True
            self._waiting.clear()
            self._changed.notify_all()
            self._changed.wait_for(lambda: slot not in self._running, timeout)

    def _start_due(self) -> None:
        with self._changed:
            while not self._is_stopped:
                idle = {slot: due for slot, (due, _) in self._waiting.items() if slot not in self._running}
                for slot in [slot for slot, due in idle.items() if due <= time.monotonic()]:
                    del idle[slot]
                    self._running.add(slot)
                    arguments = slot, self._waiting.pop(slot)[1]
                    threading.Thread(target=self._run, args=arguments, name=slot, daemon=False).start()
                self._changed.wait(max(0.0, min(idle.values()) - time.monotonic()) if idle else None)

    def _run(self, slot: str, work: Work) -> None:
        try:
            work()
        except Exception:
            log.exception("work in the background failed: %s", slot)
        finally:
            with self._changed:
                self._running.discard(slot)
                self._changed.notify_all()
