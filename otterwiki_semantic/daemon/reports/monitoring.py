"""Monitoring: Prometheus metrics, and a line in the log for each slow search."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import CatalogError
from otterwiki_semantic.core.records import IndexStatus, QualityRecord
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, IndexState, SearchEvent, Telemetry, logfmt
from otterwiki_semantic.indexing import IndexManager

_MOST_BEHIND = 1_000


class Monitoring:
    """Metrics and slow searches of one index."""

    def __init__(self, repository: Repository) -> None:
        self.telemetry = _telemetry()
        """The recorder for the parts of the index."""
        self._repository = repository
        self.slow_searches = SlowSearches()
        self._commits_behind = lru_cache(1)(self._count_behind)

    def metrics(
        self, status: IndexStatus, manager: IndexManager, quality: QualityRecord | None, cache_hits: int, cache_misses: int
    ) -> str:
        """Return the metrics in Prometheus's text format. Errors: `MetricsError` if none are kept."""
        unfinished, index = 0, status.index
        with suppress(CatalogError):
            unfinished = manager.serving.catalog.unfinished if manager.serving else 0
        behind = self._commits_behind(index.commit, index.head) if index.error is None else None
        is_equal = manager.index.equals_head()
        return self.telemetry.render(IndexState(status, unfinished, is_equal, behind, cache_hits, cache_misses, quality))

    def _count_behind(self, commit: str | None, head: str | None) -> int | None:
        """Return the number of commits of HEAD that are not indexed; at least 1 if the two differ, as after HEAD was reset."""
        if commit == head or head is None:
            return 0
        count = self._repository.commits_between(commit, head, _MOST_BEHIND)
        return count if count is None else max(1, count)


def _telemetry() -> Telemetry:
    """Return a Prometheus recorder, or a no-op if prometheus-client is not installed."""
    try:
        from otterwiki_semantic.daemon.reports.prometheus import PrometheusTelemetry
    except ImportError:
        return NO_TELEMETRY
    return PrometheusTelemetry()


LINES_A_MINUTE = 10
_SLOW_MILLISECONDS = 1_000
_MINUTE = 60.0

log = logging.getLogger(__name__)


class SlowSearches:
    """Log searches that take a second or longer, at most ten per minute; the next line counts those left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._minute_began = -math.inf
        self._lines = 0
        self._left_out = 0

    def record(self, search: SearchEvent) -> None:
        """Log a search if it was slow; its time is divided equally among its queries."""
        answers, options = search.answers, search.options
        milliseconds = 1000 * search.seconds / len(answers)
        if milliseconds < _SLOW_MILLISECONDS:
            return
        left_out = self._take_line()
        if left_out is None:
            return
        facts = logfmt(
            "slow_search",
            milliseconds=round(milliseconds, 1),
            mode=options.mode.value,
            n=options.size,
            questions=len(answers),
            results=sum(len(answer.results) for answer in answers),
            degraded=any(answer.degraded for answer in answers),
            draft=not search.counts,
            left_out=left_out,
            **({"request_id": search.context.request_id} if search.context.request_id else {}),
        )
        log.info("a search took %.0f ms; %s", milliseconds, facts)

    def _take_line(self) -> int | None:
        """Return the number of searches not logged since the last line, or None at the limit of this minute."""
        with self._lock:
            now = self._clock()
            if now - self._minute_began >= _MINUTE:
                self._minute_began, self._lines = now, 0
            if self._lines >= LINES_A_MINUTE:
                self._left_out += 1
                return None
            self._lines += 1
            left_out, self._left_out = self._left_out, 0
            return left_out
