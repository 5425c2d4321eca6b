"""The progress of builds and syncs, and their timestamps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from otterwiki_semantic.content import PageFile
from otterwiki_semantic.core.records import Progress
from otterwiki_semantic.core.telemetry import ANNOUNCEMENTS

_FIRST_SECONDS, _NEXT_SECONDS = 5.0, 30.0
"""Work that takes longer is announced, and its progress from then on."""


def now() -> str:
    """Return the time in ISO 8601, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class ProgressTracker:
    """Counts pages, chunks and bytes, and estimates the remaining time from the bytes that remain. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self, copied_pages: int = 0, copied_chunks: int = 0) -> None:
        """Start to count for a new index, which begins with what is copied."""
        with self._lock:
            self._copied_pages, self._copied_chunks = copied_pages, copied_chunks
        self.begin((), 0)

    def begin(self, files: Sequence[PageFile], removed: int) -> None:
        """Start to count the files to index and the pages that were removed, in addition to what was copied."""
        with self._lock:
            self._started = time.monotonic()
            self._pages_total = len(files) + removed
            self._pages_done = removed
            self._pages_unfinished = 0
            self._bytes_total = sum(file.size for file in files)
            self._bytes_done = 0
            self._chunks_read = 0
            self._chunks_done = 0

    def page_read(self, size: int, chunks: int) -> None:
        """Count a page that was read and divided, but not yet embedded."""
        with self._lock:
            self._bytes_done += size
            self._chunks_read += chunks

    def chunks_embedded(self, count: int) -> None:
        """Count chunks that have vectors."""
        with self._lock:
            self._chunks_done += count

    def pages_indexed(self, count: int, unfinished: int = 0) -> None:
        """Count pages that can be found, of which so many lack vectors."""
        with self._lock:
            self._pages_done += count
            self._pages_unfinished += unfinished

    @property
    def pages_left(self) -> int:
        """How many pages are not indexed yet, or lack vectors."""
        with self._lock:
            return self._pages_total - self._pages_done + self._pages_unfinished

    def snapshot(self) -> Progress:
        """Return the progress now."""
        with self._lock:
            share = self._bytes_done / self._bytes_total if self._bytes_total else 1.0
            chunks_total = round(self._chunks_read / share) if share else 0
            elapsed = time.monotonic() - self._started
            left = None
            if self._pages_done >= self._pages_total:
                left = 0.0
            elif self._chunks_done and chunks_total:
                left = round(elapsed * max(chunks_total - self._chunks_done, 0) / self._chunks_done, 1)
            pages, chunks = self._copied_pages, self._copied_chunks
            return Progress(
                pages + self._pages_done, pages + self._pages_total, chunks + self._chunks_done, chunks + chunks_total, left
            )


@contextmanager
def announced(tracker: ProgressTracker, *, is_build: bool, indexed: Callable[[], tuple[int, int] | None]) -> Iterator[None]:
    """Announce the progress of the work in the block, and what is `indexed` afterwards: the numbers of pages and chunks.

    The end of a build is always announced, other work only if it takes long, and nothing if it fails.
    """
    start, ended = time.monotonic(), threading.Event()
    threading.Thread(target=_announce, args=(tracker, start, ended), name="announcing", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
    seconds, found = time.monotonic() - start, indexed()
    if found and (is_build or seconds > _FIRST_SECONDS):
        ANNOUNCEMENTS.info("search is ready: %s pages, %s chunks in %.0f s", *(f"{number:,}" for number in found), seconds)


def _announce(tracker: ProgressTracker, start: float, ended: threading.Event) -> None:
    is_first = True
    while not ended.wait(_FIRST_SECONDS if is_first else _NEXT_SECONDS):
        done = tracker.snapshot()
        if done.pages_done >= done.pages_total:
            continue
        line, seconds, unit = f"indexed {done.pages_done:,} of {done.pages_total:,} pages", done.seconds_left, "s left"
        if is_first:
            line, unit, is_first = f"indexing {done.pages_total:,} pages", "s", False
            seconds = None if seconds is None else seconds + time.monotonic() - start
        ANNOUNCEMENTS.info("%s%s", line, "" if seconds is None else f", about {seconds:.0f} {unit}")
