"""How far a build or a sync is, told by the thread that works and read by those that ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from otterwiki_semantic.content import PageFile
from otterwiki_semantic.core.records import Progress


class ProgressTracker:
    """Counts pages, chunks and bytes; foretells the rest from the bytes that remain."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.copied(0, 0)

    def copied(self, pages: int, chunks: int) -> None:
        """Start counting with so many pages and chunks done already, as those are that a new index copies."""
        with self._lock:
            self._copied_pages, self._copied_chunks = pages, chunks
        self.begin((), 0)

    def begin(self, files: Sequence[PageFile], removed: int) -> None:
        """Start counting: these files are to be indexed, and `removed` pages have gone; besides what was copied."""
        with self._lock:
            self._started = time.monotonic()
            self._pages_total = len(files) + removed
            self._pages_done = removed
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
        """Count chunks whose vectors are there."""
        with self._lock:
            self._chunks_done += count

    def pages_indexed(self, count: int) -> None:
        """Count pages that can be found."""
        with self._lock:
            self._pages_done += count

    @property
    def pages_left(self) -> int:
        """Pages not indexed yet."""
        with self._lock:
            return self._pages_total - self._pages_done

    def snapshot(self) -> Progress:
        """Give the state now."""
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
