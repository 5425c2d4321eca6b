"""The serving generation: shared by everything that reads, changes or replaces it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.pages import FRONT_MATTER
from otterwiki_semantic.core.errors import CatalogError, RepositoryError, SemanticError
from otterwiki_semantic.core.records import Freshness
from otterwiki_semantic.core.settings import EXCLUDE
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Telemetry
from otterwiki_semantic.indexing.page_loader import PageLoader
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.recipe import ModelStatus
from otterwiki_semantic.indexing.sync import Indexer, Stopped, changed_blobs
from otterwiki_semantic.storage import Generation, GenerationStore


class ServingIndex:
    """The serving generation, if any, its distance from HEAD, and what its jobs share."""

    def __init__(
        self, repository: Repository, generations: GenerationStore, model: ModelStatus, telemetry: Telemetry = NO_TELEMETRY
    ) -> None:
        self.repository = repository
        self.generations = generations
        self.model = model
        self.telemetry = telemetry
        self.loader = PageLoader(repository, model.recipe.embedder, generations.data_dir, model.recipe.languages)
        self._stopping = threading.Event()
        self._progress: ProgressTracker | None = None
        self._pending_between = lru_cache(1)(self._count_pending)
        self._unread = lru_cache(1)(repository.unread_attachments)
        self.changing = threading.Lock()
        """Held while the generation is synced or replaced."""
        self.changed = threading.Condition()
        """Notifies of a change of the generation, or of its pages."""
        self.generation: Generation | None = None
        self.corrupt: Generation | None = None
        """The last generation with a corrupt catalog; the next sync discards it."""
        self.damaged_keywords: Generation | None = None
        """The last generation with a damaged keyword index; it still serves."""
        self.left_to_rebuild: ProgressTracker | None = None
        """The progress of the rebuild that alone may change the generation: to replace a damaged one, or to embed vectors."""
        self.has_rolled_back = False
        """Whether another generation will serve when the index is reopened, which is soon."""

    def set(self, generation: Generation | None) -> None:
        """Serve another generation."""
        with self.changed:
            self.generation = generation
            self.changed.notify_all()

    def notify(self) -> None:
        """Notify that pages of the generation have changed."""
        with self.changed:
            self.changed.notify_all()

    def wait_for_successor(self, generation: Generation, timeout: float) -> Generation | None:
        """Wait up to `timeout` seconds for the generation that replaces this one; None if none does."""
        with self.changed:
            self.changed.wait_for(lambda: self.generation not in {None, generation} or self.is_stopping, timeout)
        return None if self.generation is generation else self.generation

    def new_indexer(self) -> Indexer:
        """Return an indexer that ends when `stop` is called."""
        return Indexer(self.repository, self.model.recipe, lambda: self.is_stopping, self.telemetry, self.loader)

    # Stopping

    def stop(self) -> None:
        """Ask all work on the index to stop."""
        self._stopping.set()
        self.notify()

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def check_stop(self) -> None:
        """Raise `Stopped` if `stop` was called."""
        self.pause(0)

    def pause(self, seconds: float) -> None:
        """Pause background work. Raises `Stopped` as soon as `stop` is called."""
        if self._stopping.wait(seconds):
            raise Stopped

    # Comparison with HEAD

    @contextmanager
    def syncing(self, progress: ProgressTracker) -> Iterator[None]:
        """Report pending pages from the progress of the sync in the block."""
        self._progress = progress
        try:
            yield
        finally:
            self._progress = None
            self._pending_between.cache_clear()

    @property
    def _tracker(self) -> ProgressTracker | None:
        """The progress of what changes the generation: a rebuild, unless that replaces it, or else a sync."""
        is_replaced = self.generation is self.damaged_keywords
        return self._progress if is_replaced else self.left_to_rebuild or self._progress

    def equals_head(self) -> bool:
        """Whether the generation equals HEAD now."""
        with suppress(SemanticError):
            return self.generation is not None and self.generation.catalog.commit == self.repository.head()
        return False

    def is_worth_waiting(self, seconds: float) -> bool:
        """Whether the generation may come to equal HEAD within `seconds`; not if only too many vectors are missing."""
        if self.equals_head():
            return False
        generation, progress = self.generation, self._tracker
        with suppress(SemanticError):
            if generation is not None and progress is not None and generation.catalog.stored_commit == self.repository.head():
                left = progress.snapshot().seconds_left
                return left is not None and left <= seconds
        return True

    def freshness(self, generation: Generation | None) -> Freshness:
        """Return an index's commit and its pending pages; with an `error` if git cannot read HEAD."""
        commit = generation.catalog.meta("commit") if generation else None
        try:
            head = self.repository.head()
            is_changing = generation is not None and generation.catalog.is_changing
            if head == commit and not is_changing:
                return Freshness(commit, head, generation.catalog.unfinished if generation else 0)
            tracker = self._tracker
            progress = tracker.snapshot() if is_changing and tracker is not None else None
            if progress is not None and progress.pages_total:
                return Freshness(commit, head, progress.pages_total - progress.pages_done, progress=progress)
            return Freshness(commit, head, self._pending_between(generation, commit, head))
        except RepositoryError as error:
            return Freshness(commit, None, 0, str(error))

    def _count_pending(self, generation: Generation | None, _commit: str | None, head: str | None) -> int:
        if generation is None:
            return len(self.repository.page_blobs(head)) if head else 0
        changed, removed, _ = changed_blobs(self.repository, generation.catalog, head)
        return len(changed) + len(removed) + len(generation.catalog.vectors.pending_pages())

    def counts(self) -> tuple[int, int] | None:
        """Return the numbers of searchable pages and chunks; None if the generation equals no commit, or fails."""
        with suppress(CatalogError):
            if self.generation is not None and not self.generation.catalog.is_changing:
                counts = self.generation.catalog.counts()
                return counts.pages, counts.chunks
        return None

    def unread_attachments(self, head: str | None) -> dict[str, int]:
        """Return how many attached files of HEAD need a missing library, by extension; empty if git fails."""
        with suppress(RepositoryError):
            return self._unread(head) if head else {}
        return {}

    def excluded_pages(self, generation: Generation) -> dict[str, str]:
        """Return the excluded pages by path, each with what excludes it. Raises errors of git and the catalog."""
        head = self.repository.head() if self.repository.exclude else None
        by_setting = self.repository.excluded_pages(head) if head else ()
        return dict.fromkeys(generation.catalog.pages.excluded_blobs(), FRONT_MATTER) | dict.fromkeys(by_setting, EXCLUDE)
