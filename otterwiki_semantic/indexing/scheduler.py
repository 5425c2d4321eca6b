"""The scheduler of work in the background: syncs, rebuilds, and what follows from them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

Work = Callable[[], None]

log = logging.getLogger(__name__)


class Scheduler:
    """Runs work in named slots: in each one thing at a time, in a thread of its own.

    What a slot is asked for while it works runs afterwards, once. Time is monotonic: a clock that is set delays nothing.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, tuple[float, Work]] = {}
        """What is to run, by slot, and when."""
        self._running: set[str] = set()
        self._is_stopped = False

    def start(self) -> None:
        """Begin to run what is due."""
        threading.Thread(target=self._dispatch, name="scheduler", daemon=True).start()

    def run_in(self, seconds: float, slot: str, work: Work) -> None:
        """Run some work after a pause, in place of what waits in the same slot."""
        with self._changed:
            self._waiting[slot] = time.monotonic() + seconds, work
            self._changed.notify_all()

    def run_within(self, seconds: float, slot: str, work: Work) -> None:
        """Run some work after a pause, or as soon as what already waits in the same slot would have run."""
        with self._changed:
            due = time.monotonic() + seconds
            if slot not in self._waiting or due < self._waiting[slot][0]:
                self._waiting[slot] = due, work
                self._changed.notify_all()

    def is_running(self, slot: str) -> bool:
        """Whether something runs in a slot now."""
        return slot in self._running

    def stop(self, timeout: float, slot: str) -> None:
        """Start nothing more, and wait up to `timeout` seconds for the work in one slot."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: slot not in self._running, timeout)

    def _dispatch(self) -> None:
        with self._changed:
            while not self._is_stopped:
                now = time.monotonic()
                idle = {slot: due for slot, (due, _) in self._waiting.items() if slot not in self._running}
                for slot in [slot for slot, due in idle.items() if due <= now]:
                    del idle[slot]
                    _, work = self._waiting.pop(slot)
                    self._running.add(slot)
                    threading.Thread(target=self._run, args=(slot, work), name=slot, daemon=True).start()
                self._changed.wait(min(idle.values()) - now if idle else None)

    def _run(self, slot: str, work: Work) -> None:
        try:
            work()
        except Exception:
            log.exception("work in the background failed: %s", slot)
        finally:
            with self._changed:
                self._running.discard(slot)
                self._changed.notify_all()
