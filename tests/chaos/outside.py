"""The real owner, started, used and ended as the wiki does it, and killed at a random time while it works."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from tests.chaos.victim import Orders, Recovery, wait_until_whole, work
from tests.support.live_wiki import eventually
from tests.support.processes import owners_of

_END_SECONDS = 30.0


def kill_at_work(orders: Orders, delay: float) -> None:
    """Start the owner, let it work, and kill it so many seconds later."""
    index = _index(orders)
    try:
        index.start()
        work(index, orders)
        time.sleep(delay)  # a random time is the point of it
        _end(orders, signal.SIGKILL)
    finally:
        index.close()


def recover(orders: Orders) -> Recovery:
    """Start a new owner, wait until it says that all is well, ask it, and end it in peace."""
    index = _index(orders)
    try:
        index.start()
        recovery = wait_until_whole(index, orders.queries, orders.leaves)
        # A program that the owner starts bears its name until it is another one.
        owner = index.status().owner_pid
        eventually(lambda: _owners(orders) == [owner], _END_SECONDS, "there is just the owner that was started")
        _end(orders, signal.SIGTERM)
        last = (Path(orders.data_dir) / "owner.log").read_text().splitlines()[-1]
        assert last.endswith(": ended"), f"the owner did not end in peace: {last}"
    finally:
        index.close()
    return recovery


def _index(orders: Orders) -> IndexClient:
    return IndexClient(Settings(Path(orders.repository), Path(orders.data_dir), sync_interval=3600, pages=()), quiet=True)


def _end(orders: Orders, name: signal.Signals) -> None:
    """Send a signal to the owner, and wait for its end; it has to be there."""
    for pid in eventually(lambda: _owners(orders), _END_SECONDS, "an owner runs"):
        with suppress(ProcessLookupError):  # a program that the owner started has its files open for a moment
            os.kill(pid, name)
    eventually(lambda: not _owners(orders) and _is_let_go(Path(orders.data_dir)), _END_SECONDS, "the owner has ended")


def _owners(orders: Orders) -> list[int]:
    return owners_of(Path(orders.data_dir))


def _is_let_go(data_dir: Path) -> bool:
    """Whether no process holds the index's locks: one that dies keeps them and its socket a moment longer than its name."""
    for path in data_dir.glob("*.lock"):
        with path.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
    return True
