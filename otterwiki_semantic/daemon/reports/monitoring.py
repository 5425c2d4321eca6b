"""What is kept for whoever watches over the index: figures for Prometheus, and slow searches in the log."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import CatalogError
from otterwiki_semantic.core.records import Answer, IndexStatus, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, IndexState, Telemetry, logfmt
from otterwiki_semantic.indexing import IndexManager

_MOST_BEHIND = 1_000


class Monitoring:
    """Gathers it. `watcher` is what the parts of the index are to tell of their work."""

    def __init__(self, settings: Settings, repository: Repository) -> None:
        self.watcher = _watcher() if settings.metrics else NO_TELEMETRY
        self._repository = repository
        self._slow_searches = SlowSearches(settings.slow_search)
        self._commits_behind = lru_cache(1)(self._count_behind)

    def searched(self, answers: Sequence[Answer], options: SearchOptions, seconds: float) -> None:
        """Take the answers of a request, and how long it took."""
        self.watcher.record_search(answers, options, seconds)
        self._slow_searches.searched(answers, options, seconds)

    def text(self, status: IndexStatus, keeper: IndexManager, cache_hits: int, cache_misses: int) -> str:
        """Give the figures in Prometheus's text format: see `IndexState`. `MetricsError` if none are kept."""
        unfinished, index = 0, status.index
        with suppress(CatalogError):
            unfinished = keeper.serving.catalog.unfinished if keeper.serving else 0
        behind = self._commits_behind(index.commit, index.head) if index.error is None else None
        return self.watcher.render(IndexState(status, unfinished, keeper.equals_head(), behind, cache_hits, cache_misses))

    def _count_behind(self, commit: str | None, head: str | None) -> int | None:
        """Count the commits of HEAD that the index lacks; at least one if the two differ, as after HEAD was set back."""
        if commit == head or head is None:
            return 0
        count = self._repository.commits_between(commit, head, _MOST_BEHIND)
        return count if count is None else max(1, count)


def _watcher() -> Telemetry:
    """Give who keeps figures; where the library for that is not installed, one that keeps none."""
    try:
        from otterwiki_semantic.daemon.reports.prometheus import Metrics
    except ImportError:
        return NO_TELEMETRY
    return Metrics()


LINES_A_MINUTE = 10
_MINUTE = 60.0

log = logging.getLogger(__name__)


class SlowSearches:
    """Logs the searches that take `milliseconds` or longer, at most ten in a minute; then says how many were left out."""

    def __init__(self, milliseconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._milliseconds = milliseconds
        self._clock = clock
        self._lock = threading.Lock()
        self._minute_began = -math.inf
        self._lines = 0
        self._left_out = 0

    def searched(self, answers: Sequence[Answer], options: SearchOptions, seconds: float) -> None:
        """Look at the answers of a request that took so long; each of several questions is taken for an equal share of it."""
        milliseconds = 1000 * seconds / len(answers)
        if milliseconds < self._milliseconds:
            return
        left_out = self._leave()
        if left_out is None:
            return
        facts = logfmt(
            "slow_search",
            milliseconds=round(milliseconds, 1),
            mode=options.mode.value,
            n=options.n,
            questions=len(answers),
            results=sum(len(answer.results) for answer in answers),
            degraded=any(answer.degraded for answer in answers),
            draft=not options.counts,
            left_out=left_out,
        )
        log.info("a search took %.0f ms; %s", milliseconds, facts)

    def _leave(self) -> int | None:
        """Give how many were left out since the last line, if there is room for another one in this minute; None if not."""
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
