"""What the last syncs did, in memory: for people who look, not for the index."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from otterwiki_semantic.errors import CatalogError
from otterwiki_semantic.indexer import Indexer, Stopped
from otterwiki_semantic.insight_records import SyncRecord
from otterwiki_semantic.problems import problem
from otterwiki_semantic.rebuilding import now
from otterwiki_semantic.records import Problem

_KEPT = 20


class SyncLog:
    """The last syncs of one indexer that changed pages, or failed. `commit` tells what the index equals."""

    def __init__(self, indexer: Indexer, commit: Callable[[], str | None]) -> None:
        self._indexer = indexer
        self._commit = commit
        self._records: deque[SyncRecord] = deque(maxlen=_KEPT)

    def newest_first(self) -> tuple[SyncRecord, ...]:
        """Give the syncs."""
        return tuple(reversed(self._records.copy()))

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note the sync that is done within; one that was stopped goes on another day, and is not noted."""
        indexer, start = self._indexer, time.perf_counter()
        pages, chunks = indexer.changed_pages, indexer.embedded_texts
        try:
            yield
        except Stopped:
            raise
        except Exception as failure:
            self._add(start, pages, chunks, problem(failure))
            raise
        if indexer.changed_pages > pages:
            self._add(start, pages, chunks)

    def _add(self, start: float, pages: int, chunks: int, failure: Problem | None = None) -> None:
        indexer, seconds = self._indexer, round(time.perf_counter() - start, 3)
        changed, embedded = indexer.changed_pages - pages, indexer.embedded_texts - chunks
        error, cure = (failure.trouble, failure.cure) if failure else (None, None)
        record = SyncRecord(now(), seconds, self._equalled(), changed, embedded, error, cure=cure)
        last = self._records[-1] if self._records else None
        if error is not None and last is not None and last.error == error:
            # It is tried again every minute, and would soon be all there is to see.
            self._records[-1] = replace(record, times=last.times + 1)
        else:
            self._records.append(record)

    def _equalled(self) -> str | None:
        try:
            return self._commit()
        except CatalogError:
            return None
