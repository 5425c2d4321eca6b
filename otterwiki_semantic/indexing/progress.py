"""The progress of builds and syncs, and their timestamps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from otterwiki_semantic.content import PageFile
from otterwiki_semantic.core.humanize import duration
from otterwiki_semantic.core.records import Progress
from otterwiki_semantic.core.telemetry import ANNOUNCEMENTS

_FIRST_SECONDS, _NEXT_SECONDS = 5.0, 30.0
"""The seconds after which work is announced, and then the interval of progress reports."""


def now() -> str:
    """Return the current time in ISO 8601, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class ProgressTracker:
    """Count stored and embedded items, and estimate the remaining time. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self, copied_pages: int = 0, copied_chunks: int = 0) -> None:
        """Start counting for a new index, which begins with copied pages and chunks."""
        with self._lock:
            self._copied_pages, self._copied_chunks = copied_pages, copied_chunks
        self.begin((), 0)

    def begin(self, files: Sequence[PageFile], removed: int, pages: int = 0, chunks: int = 0) -> None:
        """Start counting files to index and removed pages; `pages` and `chunks` have vectors from an earlier sync."""
        with self._lock:
            self._pages_before, self._chunks_before = pages, chunks
            self._started = time.monotonic()
            self._embedding_since: float | None = None
            self._pages_total = len(files) + removed
            self._pages_stored = removed
            self._pages_lacking = 0
            self._bytes_total = sum(file.size for file in files)
            self._bytes_done = 0
            self._chunks_read = self._chunks_done = self._chunks_missing = 0
            self._embedded, self._seconds = 0, 0.0

    def page_read(self, size: int, chunks: int) -> None:
        """Count a page that was read and chunked, but not yet stored."""
        with self._lock:
            self._bytes_done += size
            self._chunks_read += chunks

    def pages_stored(self, count: int, lacking: int = 0) -> None:
        """Count pages that keyword search can find; `lacking` of them lack vectors."""
        with self._lock:
            self._pages_stored += count
            self._pages_lacking += lacking

    def begin_embedding(self, pages: int, chunks: int) -> None:
        """Start counting pages and chunks that lack vectors, after all pages are stored."""
        with self._lock:
            self._embedding_since = time.monotonic()
            self._pages_lacking, self._chunks_missing = pages, chunks
            self._chunks_known = self._chunks_done
            self._pages_total = self._pages_stored = max(self._pages_total, pages)

    def chunks_embedded(self, count: int, seconds: float | None = None) -> None:
        """Count chunks that have vectors; `seconds` is the model's time, if it was used."""
        with self._lock:
            self._chunks_done += count
            if seconds is not None:
                self._embedded += count
                self._seconds += seconds

    def pages_embedded(self, count: int) -> None:
        """Count stored pages whose vectors are now complete."""
        with self._lock:
            self._pages_lacking -= count

    def end_embedding(self, lacking: int) -> None:
        """Count the pages that still lack vectors because the model failed."""
        with self._lock:
            self._pages_lacking = lacking

    def snapshot(self) -> Progress:
        """Return the current progress."""
        with self._lock:
            before = self._pages_before, self._chunks_before  # of a copy, these include what was copied
            pages, chunks = before if any(before) else (self._copied_pages, self._copied_chunks)
            total, left = self._estimate()
            return Progress(
                pages + self._pages_stored - self._pages_lacking,
                pages + self._pages_total,
                chunks + self._chunks_done,
                chunks + total,
                left,
                pages + self._pages_stored,
            )

    def _estimate(self) -> tuple[int, float | None]:
        """Return the number of chunks and the seconds left, or None while the model's speed is unknown."""
        now, pace = time.monotonic(), self._seconds / self._embedded if self._embedded else None
        if self._embedding_since is not None:
            total = self._chunks_known + self._chunks_missing
            storing: float | None = 0.0
        else:
            share = self._bytes_done / self._bytes_total if self._bytes_total else 1.0
            total = round(self._chunks_read / share) if share else 0
            storing = (now - self._started) * (1 / share - 1) if share else None
        missing = max(total - self._chunks_done, 0)
        if not missing and not storing and total:
            return total, 0.0
        known = storing is not None and (pace is not None or not missing)
        return total, round((storing or 0) + missing * (pace or 0), 1) if known else None


@contextmanager
def announced(tracker: ProgressTracker, *, is_build: bool, indexed: Callable[[], tuple[int, int] | None]) -> Iterator[None]:
    """Announce the progress of the block, and at the end of a build or of long work the pages and chunks that are `indexed`."""
    start, ended = time.monotonic(), threading.Event()
    announcing = threading.Thread(target=_announce, args=(tracker, start, ended), name="announcing", daemon=True)
    announcing.start()
    try:
        yield
    finally:
        ended.set()
        announcing.join()
    seconds, found = time.monotonic() - start, indexed()
    if found and (is_build or seconds > _FIRST_SECONDS):
        ANNOUNCEMENTS.info("search is ready: %s pages, %s chunks in %.0f s", *(f"{number:,}" for number in found), seconds)


def _announce(tracker: ProgressTracker, start: float, ended: threading.Event) -> None:
    is_first = True
    while not ended.wait(_FIRST_SECONDS if is_first else _NEXT_SECONDS):
        done = tracker.snapshot()
        if done.pages_done >= done.pages_total:
            continue
        if is_first:
            seconds = "" if done.seconds_left is None else f", about {duration(done.seconds_left + time.monotonic() - start)}"
            ANNOUNCEMENTS.info("indexing %s pages%s", f"{done.pages_total:,}", seconds)
            is_first = False
        else:
            ANNOUNCEMENTS.info("indexed %s", done.describe())
