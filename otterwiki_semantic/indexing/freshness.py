"""The freshness of an index: the commit that it equals, and how far it is behind HEAD."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import RepositoryError, SemanticError
from otterwiki_semantic.core.records import Freshness
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.sync import changed_pages
from otterwiki_semantic.storage import Generation


class FreshnessMonitor:
    """Compares an index with HEAD."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._progress: ProgressTracker | None = None
        self._pending_between = lru_cache(1)(self._count_pending)

    @contextmanager
    def syncing(self, progress: ProgressTracker) -> Iterator[None]:
        """Take what is pending from the progress of the sync in the block."""
        self._progress = progress
        try:
            yield
        finally:
            self._progress = None
            self._pending_between.cache_clear()

    def equals_head(self, generation: Generation | None) -> bool:
        """Whether an index equals HEAD now."""
        with suppress(SemanticError):
            return generation is not None and generation.catalog.commit == self._repository.head()
        return False

    def wait_is_over(self, generation: Generation | None, seconds: float) -> bool:
        """Whether an index equals HEAD, or stores all of its pages and lacks more vectors than are embedded in `seconds`."""
        if self.equals_head(generation):
            return True
        progress = self._progress
        with suppress(SemanticError):
            if generation is not None and progress is not None and generation.catalog.stored_commit == self._repository.head():
                left = progress.snapshot().seconds_left
                return left is None or left > seconds
        return False

    def freshness(self, generation: Generation | None) -> Freshness:
        """Return which commit an index equals, and what is pending; with an `error` if git cannot read HEAD."""
        commit = generation.catalog.meta("commit") if generation else None
        try:
            head = self._repository.head()
            is_changing = generation is not None and generation.catalog.is_changing
            if head == commit and not is_changing:
                return Freshness(commit, head, generation.catalog.unfinished if generation else 0)
            progress = self._progress
            if is_changing and progress is not None and progress.snapshot().pages_total:
                return Freshness(commit, head, progress.pages_left, progress=progress.snapshot())
            return Freshness(commit, head, self._pending_between(generation, commit, head))
        except RepositoryError as error:
            return Freshness(commit, None, 0, str(error))

    def _count_pending(self, generation: Generation | None, _commit: str | None, head: str | None) -> int:
        if generation is None:
            return len(self._repository.page_blobs(head)) if head else 0
        changed, removed = changed_pages(self._repository, generation.catalog, head)
        return len(changed) + len(removed) + len(generation.catalog.pending.pages())
