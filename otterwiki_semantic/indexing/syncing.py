"""The job that keeps the serving generation equal to HEAD, and says how that goes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.backoff import Backoff, Cooldown
from otterwiki_semantic.core.errors import CatalogCorruptError, CatalogError, SemanticError
from otterwiki_semantic.core.records import RebuildStatus
from otterwiki_semantic.core.settings import MAX_PAGE_BYTES
from otterwiki_semantic.core.telemetry import Failure, Telemetry
from otterwiki_semantic.indexing.jobs import JobLog
from otterwiki_semantic.indexing.page_loader import PageLoader
from otterwiki_semantic.indexing.progress import ProgressTracker, announced, now
from otterwiki_semantic.indexing.promotion import PACE
from otterwiki_semantic.indexing.recipe import ModelStatus
from otterwiki_semantic.indexing.serving import ServingIndex
from otterwiki_semantic.indexing.sync import Indexer, Stopped, SyncResult
from otterwiki_semantic.indexing.sync_history import SyncHistory, log_sync
from otterwiki_semantic.storage import Generation, GenerationStore

_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 60.0
_RETRY_UNFINISHED_SECONDS, _MAX_RETRY_UNFINISHED_SECONDS = 60.0, 3600.0
"""When pages that the model failed on are tried again."""
_MAX_RETRY_UNREACHABLE_SECONDS = 300.0
"""The same for a model whose server cannot be reached: pages are not to blame."""
_WAKE_COOLDOWN_SECONDS = 1.0
"""How long after a sync that failed waiting searches do not ask for another one."""
_MEASURED_CHUNKS = 100
"""The chunks of a sync from which on its pace is recorded."""

log = logging.getLogger(__name__)


class SyncJob:
    """Syncs the serving generation, one at a time, and creates the first one."""

    def __init__(
        self,
        repository: Repository,
        generations: GenerationStore,
        model: ModelStatus,
        index: ServingIndex,
        loader: PageLoader,
        telemetry: Telemetry,
    ) -> None:
        self._generations = generations
        self._model = model
        self._index = index
        self._telemetry = telemetry
        self.indexer = Indexer(repository, model.recipe, lambda: index.is_stopping, telemetry, loader)
        self.progress = ProgressTracker()
        self.jobs = JobLog()
        self.history = SyncHistory(self.indexer, self._commit, telemetry)
        self.last_success: str | None = None
        """When a sync last succeeded (ISO 8601)."""
        self.error: Exception | None = None
        """Why the last sync failed; None once one has succeeded."""
        self.begun = self.ended = 0
        """The numbers of the last sync that began, and of the last one that succeeded."""
        self.wake_cooldown = Cooldown(_WAKE_COOLDOWN_SECONDS)
        """Active for a moment after a sync that failed."""
        self._unfinished_backoff = Backoff(_RETRY_UNFINISHED_SECONDS, _MAX_RETRY_UNFINISHED_SECONDS)
        self._failure_backoff = Backoff(_RETRY_SECONDS, _MAX_RETRY_SECONDS)
        self._asking = threading.Lock()
        self._pages_to_refresh: set[str] = set()
        self._page_jobs: list[RebuildStatus] = []
        """The jobs that wait for these pages."""

    def _commit(self) -> str | None:
        generation = self._index.generation
        return generation.catalog.meta("commit") if generation else None

    def refresh_pages(self, paths: Collection[str]) -> RebuildStatus:
        """Have the next sync index these pages again although they are unchanged; return the job.

        The sync also asks the model again, and embeds what it failed on, without waiting for the usual pauses.
        """
        self._model.retry()
        self.indexer.embedding.retry()
        self._unfinished_backoff.reset()
        job = self.jobs.begin(RebuildStatus(pages_total=len(paths)))
        with self._asking:
            self._pages_to_refresh.update(paths)
            self._page_jobs.append(job)
        return job

    def run(self) -> float | None:
        """Sync; return None if that succeeded, otherwise after how many seconds to try again. Errors: `Stopped`."""
        index = self._index
        with index.changed:
            self.begun += 1
        try:
            with index.changing:
                self.sync(self.progress)
            self._failure_backoff.reset()
            self.last_success, self.error = now(), None
            if index.equals_head():
                self._telemetry.record_up_to_date()
            return None
        except Stopped:
            raise
        except Exception as error:
            if index.is_stopping:
                raise Stopped from error
            self.error = error
            unforeseen = None if isinstance(error, SemanticError | OSError) else error
            log.error("the index could not be brought up to date: %s", error, exc_info=unforeseen)
            self.wake_cooldown.start()
            return self._failure_backoff.failed()
        finally:
            with index.changed:
                self.ended = self.ended if self.error else self.begun
                index.changed.notify_all()

    def sync(self, progress: ProgressTracker, *, by_rebuild: bool = False) -> None:
        """Bring the serving generation to HEAD, `by_rebuild` even one that is left to it; replace a corrupt or missing one.

        Call it while `ServingIndex.changing` is held.
        """
        self._model.refresh()
        with self.history.recording(), self.jobs.syncing() as jobs, self._index.syncing(progress):
            try:
                self._bring_to_head(self._index.generation or self._create_first(), progress, jobs, by_rebuild=by_rebuild)
            except CatalogCorruptError as error:
                if self._index.is_stopping:
                    raise
                log.warning("the index is damaged and is built again: %s", error)
                self._telemetry.record_failure(Failure.CATALOG)
                corrupt = self._index.generation
                self._index.set(None)
                if corrupt is not None:
                    corrupt.destroy()
                self._bring_to_head(self._create_first(), progress, jobs, by_rebuild=by_rebuild)

    def _create_first(self) -> Generation:
        """Create a generation where there is none; it serves at once, while it fills up."""
        recipe = self._model.recipe
        generation = self._generations.create(recipe.embedder, recipe.profile, recipe.languages)
        self._generations.set_current(generation)
        self._index.set(generation)
        return generation

    def _bring_to_head(
        self, generation: Generation, progress: ProgressTracker, jobs: list[RebuildStatus], *, by_rebuild: bool
    ) -> None:
        """Bring a generation to HEAD; `jobs` gets those whose pages are read again."""
        if generation is self._index.corrupt or not generation.catalog.is_in_place:
            raise CatalogCorruptError(f"{generation.catalog.path} is damaged, or has gone")
        is_left_to_rebuild = self._index.is_left_to_rebuild and not by_rebuild
        if is_left_to_rebuild or self._index.has_rolled_back or not generation.catalog.is_current:
            return
        if not self._generations.is_current(generation):
            self._generations.set_current(generation)
        is_whole = False
        while not is_whole:
            jobs += self._invalidate_pages(generation)
            is_whole = self._sync_once(generation, progress)

    def _sync_once(self, generation: Generation, progress: ProgressTracker) -> bool:
        """Bring a generation to HEAD; return whether it is there, and not stopped early for newer changes."""
        start, is_first = time.perf_counter(), generation.catalog.meta("commit") is None
        embed = self._model.recipe.matches_vectors(generation)
        plan = self.indexer.plan(generation.catalog, embed=embed, retry_unfinished=embed and self._unfinished_backoff.is_due)
        if plan is None:
            return True
        with announced(progress, is_build=is_first, indexed=self._index.counts):
            result = self.indexer.sync(generation, plan, progress, self._index.notify, lambda: bool(self._pages_to_refresh))
        self._index.notify()
        if result.is_whole:
            self._record(generation, result, time.perf_counter() - start)
        return result.is_whole

    def _invalidate_pages(self, generation: Generation) -> list[RebuildStatus]:
        """Let the sync read pages again, and return the jobs that wait for them.

        Pages with problems are also read again, if the limits are other ones than before.
        """
        with self._asking:
            paths, jobs = self._pages_to_refresh, self._page_jobs
            self._pages_to_refresh, self._page_jobs = set(), []
        try:
            limit = str(MAX_PAGE_BYTES)
            if generation.catalog.meta("max_page_bytes") != limit:
                paths |= {path for path, _ in generation.catalog.pages.problems()}
                generation.catalog.set_meta("max_page_bytes", limit)
            if paths:
                generation.catalog.invalidate_pages(sorted(paths))
        except CatalogError:
            with self._asking:
                self._pages_to_refresh |= paths
                self._page_jobs += jobs
            raise
        return jobs

    def _record(self, generation: Generation, result: SyncResult, seconds: float) -> None:
        log_sync(generation, seconds, result.pages)
        if result.chunks >= _MEASURED_CHUNKS:
            pace = (seconds - result.embedding_seconds) / result.chunks
            generation.catalog.set_meta(PACE, f"{pace:.6f}")
        if generation.catalog.unfinished:
            is_unreachable = self.indexer.embedding.is_resting
            self._unfinished_backoff.failed(_MAX_RETRY_UNREACHABLE_SECONDS if is_unreachable else None)
        else:
            self._unfinished_backoff.reset()
