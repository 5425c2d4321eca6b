"""The history of syncs, in memory: for administrators, not for the index."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec import structs

from otterwiki_semantic.core.errors import CatalogError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.records import Problem, SyncRecord
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Failure, Telemetry, logfmt
from otterwiki_semantic.indexing.progress import now
from otterwiki_semantic.indexing.sync import Indexer, Stopped
from otterwiki_semantic.storage import Generation

_KEPT = 20

log = logging.getLogger(__name__)


class SyncHistory:
    """The last syncs of an indexer that changed pages, or failed. `commit` returns what the index equals."""

    def __init__(self, indexer: Indexer, commit: Callable[[], str | None], telemetry: Telemetry = NO_TELEMETRY) -> None:
        self._indexer = indexer
        self._commit = commit
        self._telemetry = telemetry
        self._records: deque[SyncRecord] = deque(maxlen=_KEPT)

    def newest_first(self) -> tuple[SyncRecord, ...]:
        """Return the records."""
        return tuple(reversed(self._records.copy()))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the sync in the block, unless it was stopped: then it continues another time."""
        indexer, start = self._indexer, time.perf_counter()
        pages, chunks = indexer.changed_pages, indexer.embedding.texts
        try:
            yield
        except Stopped:
            raise
        except Exception as failure:
            self._add(start, pages, chunks, problem(failure))
            self._telemetry.record_failure(Failure.SYNC)
            raise
        if indexer.changed_pages > pages:
            self._add(start, pages, chunks)
        self._telemetry.record_sync(time.perf_counter() - start, indexer.changed_pages - pages)

    def _add(self, start: float, pages: int, chunks: int, failure: Problem | None = None) -> None:
        indexer, seconds, commit = self._indexer, round(time.perf_counter() - start, 3), None
        with suppress(CatalogError):
            commit = self._commit()
        changed, embedded = indexer.changed_pages - pages, indexer.embedding.texts - chunks
        error, hint = (failure.message, failure.hint) if failure else (None, None)
        record = SyncRecord(now(), seconds, commit, changed, embedded, error, hint=hint)
        last = self._records[-1] if self._records else None
        if error is not None and last is not None and last.error == error:
            # A failing sync is retried every minute, and would soon push out everything else.
            self._records[-1] = structs.replace(record, times=last.times + 1)
        else:
            self._records.append(record)


def log_sync(generation: Generation, seconds: float, changed: int) -> None:
    """Log what a generation equals after a sync."""
    commit, counts = generation.catalog.meta("commit"), generation.catalog.counts()
    facts = logfmt("sync", commit=commit, pages=counts.pages, chunks=counts.chunks, changed=changed, seconds=seconds)
    log.info("index equals %s: %d pages, %d chunks; %s", commit, counts.pages, counts.chunks, facts)
