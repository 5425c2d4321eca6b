"""What is kept for whoever watches over the index: figures for Prometheus, and slow searches in the log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from otterwiki_semantic.config import Settings
from otterwiki_semantic.errors import CatalogError
from otterwiki_semantic.keeper import Keeper
from otterwiki_semantic.records import Answer, IndexStatus, SearchOptions
from otterwiki_semantic.repository import Repository
from otterwiki_semantic.slow_searches import SlowSearches
from otterwiki_semantic.watching import UNWATCHED, IndexState, Watcher

_MOST_BEHIND = 1_000


class Monitoring:
    """Gathers it. `watcher` is what the parts of the index are to tell of their work."""

    def __init__(self, settings: Settings, repository: Repository) -> None:
        self.watcher = _watcher() if settings.metrics else UNWATCHED
        self._repository = repository
        self._slow_searches = SlowSearches(settings.slow_search)
        self._commits_behind = lru_cache(1)(self._count_behind)

    def searched(self, answers: Sequence[Answer], options: SearchOptions, seconds: float) -> None:
        """Take the answers of a request, and how long it took."""
        self.watcher.searched(answers, options, seconds)
        self._slow_searches.searched(answers, options, seconds)

    def text(self, status: IndexStatus, keeper: Keeper, cache_hits: int, cache_misses: int) -> str:
        """Give the figures in Prometheus's text format: see `IndexState`. `MetricsError` if none are kept."""
        unfinished, index = 0, status.index
        with suppress(CatalogError):
            unfinished = keeper.serving.catalog.unfinished if keeper.serving else 0
        behind = self._commits_behind(index.commit, index.head) if index.error is None else None
        return self.watcher.text(IndexState(status, unfinished, keeper.equals_head(), behind, cache_hits, cache_misses))

    def _count_behind(self, commit: str | None, head: str | None) -> int | None:
        """Count the commits of HEAD that the index lacks; at least one if the two differ, as after HEAD was set back."""
        if commit == head or head is None:
            return 0
        count = self._repository.commits_between(commit, head, _MOST_BEHIND)
        return count if count is None else max(1, count)


def _watcher() -> Watcher:
    """Give who keeps figures; where the library for that is not installed, one that keeps none."""
    try:
        from otterwiki_semantic.metrics import Metrics
    except ImportError:
        return UNWATCHED
    return Metrics()
