"""A `IndexEngine` to measure with, in the process that calls, without a wiki; no other process may have the index open."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.support.report import say
from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.core.records import ChromaState, IndexStatus, RebuildState
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.storage.generation import index_fingerprint

_LOOK_SECONDS = 0.02
_SAY_SECONDS = 30.0
_HOUR = 3600.0


@contextmanager
def owned(data_dir: Path) -> Iterator[None]:
    """Hold the lock of an index, as the process that owns it does; `BlockingIOError` if another one holds it."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with (data_dir / "owner.lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextmanager
def opened(repository: Path, data_dir: Path) -> Iterator[IndexEngine]:
    """Lend the index of a repository, started; it looks at HEAD when it is told to, not by the clock."""
    with owned(data_dir):
        index = IndexEngine(Settings(repository, data_dir, sync_interval=_HOUR))
        index.start()
        try:
            yield index
        finally:
            index.close()


def wait_until_settled(index: IndexEngine, timeout: float = _HOUR) -> IndexStatus:
    """Return the status once the index equals HEAD, is made the way it is to be made, and nothing is being built.

    Long work tells how far it is. Errors: `TimeoutError` after so many seconds; `RuntimeError` when a rebuild or the model
    fails.
    """
    end, next_word = time.monotonic() + timeout, time.monotonic() + _SAY_SECONDS
    wanted = index_fingerprint(index.embedder, Profile())[:8]
    while True:
        status = index.status()
        rebuild = status.rebuild
        if rebuild.state is RebuildState.FAILED:
            raise RuntimeError(f"the index was not rebuilt: {rebuild.error}")
        is_filled = status.chroma is not None and status.chroma.state is ChromaState.READY
        is_idle = status.status == "ready" and is_filled and rebuild.state is not RebuildState.RUNNING
        if is_idle and status.index.commit == status.index.head and (status.generation or "").startswith(wanted):
            if status.index.pending_pages:
                raise RuntimeError(f"{status.index.pending_pages} pages were not embedded: {status.problems}")
            return status
        if time.monotonic() > end:
            raise TimeoutError(f"the index was not ready within {timeout:.0f} s: {status.last_error or status.status}")
        if time.monotonic() > next_word:
            next_word += _SAY_SECONDS
            _say_progress(status)
        time.sleep(_LOOK_SECONDS)


def _say_progress(status: IndexStatus) -> None:
    progress = status.rebuild if status.rebuild.state is RebuildState.RUNNING else status.progress
    left = "" if progress.seconds_left is None else f", about {progress.seconds_left / 60:.1f} minutes left"
    say(f"{progress.chunks_done:,} of about {progress.chunks_total:,} chunks{left}")
