"""Keep the serving generation equal to HEAD, and record the state and history of syncs."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from msgspec import structs

from otterwiki_semantic.core.backoff import Backoff, Cooldown
from otterwiki_semantic.core.errors import CatalogCorruptError, CatalogError, SemanticError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.records import Problem, RebuildStatus, SyncRecord
from otterwiki_semantic.core.telemetry import Failure, logfmt
from otterwiki_semantic.indexing.jobs import JobLog
from otterwiki_semantic.indexing.progress import ProgressTracker, announced, now
from otterwiki_semantic.indexing.promotion import PACE
from otterwiki_semantic.indexing.serving_index import ServingIndex
from otterwiki_semantic.indexing.sync import Stopped, SyncResult
from otterwiki_semantic.storage import Generation

_KEPT_SYNCS = 20

_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 60.0
_RETRY_UNFINISHED_SECONDS, _MAX_RETRY_UNFINISHED_SECONDS = 60.0, 3600.0
"""The pauses before pages on which the model failed are retried."""
_MAX_RETRY_UNREACHABLE_SECONDS = 300.0
"""The longest pause if the model's server cannot be reached, where pages are not to blame."""
_WAKE_COOLDOWN_SECONDS = 1.0
"""How long after a failed sync waiting searches request no other."""
_MEASURED_CHUNKS = 100
log = logging.getLogger(__name__)


class SyncJob:
    """Sync the serving generation, one sync at a time, and create the first generation."""

    def __init__(self, index: ServingIndex) -> None:
        self._index = index
        self.indexer = index.new_indexer()
        self.progress = ProgressTracker()
        self.jobs = JobLog()
        self._history: deque[SyncRecord] = deque(maxlen=_KEPT_SYNCS)
        self.last_success: str | None = None
        """When a sync last succeeded (ISO 8601)."""
        self.error: Exception | None = None
        self.begun = self.ended = 0
        """The numbers of the last sync started, and of the last successful one."""
        self.wake_cooldown = Cooldown(_WAKE_COOLDOWN_SECONDS)
        self._unfinished_backoff = Backoff(_RETRY_UNFINISHED_SECONDS, _MAX_RETRY_UNFINISHED_SECONDS)
        self._failure_backoff = Backoff(_RETRY_SECONDS, _MAX_RETRY_SECONDS)
        self._asking = threading.Lock()
        self._pages_to_refresh: set[str] = set()
        self._page_jobs: list[RebuildStatus] = []

    def history(self) -> tuple[SyncRecord, ...]:
        """Return the last syncs that changed pages, or failed, newest first."""
        return tuple(reversed(self._history.copy()))

    def refresh_pages(self, paths: Collection[str]) -> RebuildStatus:
        """Index these pages, and those on which the model failed, again in the next sync, without pauses; return the job."""
        self._index.model.retry()
        self.indexer.embedding.retry()
        self._unfinished_backoff.reset()
        job = self.jobs.begin(RebuildStatus(pages_total=len(paths)))
        with self._asking:
            self._pages_to_refresh.update(paths)
            self._page_jobs.append(job)
        return job

    def run(self) -> float | None:
        """Sync; return None on success, otherwise the seconds until the next attempt. Errors: `Stopped`."""
        index = self._index
        with index.changed:
            self.begun += 1
        try:
            with index.changing:
                self.sync(self.progress)
            self._failure_backoff.reset()
            self.last_success, self.error = now(), None
            if index.equals_head():
                index.telemetry.record_up_to_date()
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

        `ServingIndex.changing` must be held.
        """
        self._index.model.refresh()
        with self._recording(), self.jobs.syncing() as jobs, self._index.syncing(progress):
            try:
                self._bring_to_head(self._index.generation or self._create_first(), progress, jobs, by_rebuild=by_rebuild)
            except CatalogCorruptError as error:
                if self._index.is_stopping:
                    raise
                log.warning("the index is damaged and is built again: %s", error)
                self._index.telemetry.record_failure(Failure.CATALOG)
                corrupt = self._index.generation
                self._index.set(None)
                if corrupt is not None:
                    corrupt.destroy()
                self._bring_to_head(self._create_first(), progress, jobs, by_rebuild=by_rebuild)

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Record the sync in the block, unless it was stopped, to be continued later."""
        start, pages, chunks = time.perf_counter(), self.indexer.changed_pages, self.indexer.embedding.texts
        try:
            yield
        except Stopped:
            raise
        except Exception as failure:
            self._add(start, pages, chunks, problem(failure))
            self._index.telemetry.record_failure(Failure.SYNC)
            raise
        changed = self.indexer.changed_pages - pages
        if changed:
            self._add(start, pages, chunks)
        self._index.telemetry.record_sync(time.perf_counter() - start, changed)

    def _add(self, start: float, pages: int, chunks: int, failure: Problem | None = None) -> None:
        seconds, commit, generation = round(time.perf_counter() - start, 3), None, self._index.generation
        with suppress(CatalogError):
            commit = generation.catalog.meta("commit") if generation else None
        changed, embedded = self.indexer.changed_pages - pages, self.indexer.embedding.texts - chunks
        error, hint = (failure.message, failure.hint) if failure else (None, None)
        record = SyncRecord(now(), seconds, commit, changed, embedded, error, hint=hint)
        last = self._history[-1] if self._history else None
        if error is not None and last is not None and last.error == error:
            # A failing sync is retried every minute, and would soon displace everything else.
            self._history[-1] = structs.replace(record, times=last.times + 1)
        else:
            self._history.append(record)

    def _create_first(self) -> Generation:
        recipe = self._index.model.recipe
        generation = self._index.generations.create(recipe.embedder, recipe.profile, recipe.languages)
        self._index.generations.set_current(generation)
        self._index.set(generation)
        return generation

    def _bring_to_head(
        self, generation: Generation, progress: ProgressTracker, jobs: list[RebuildStatus], *, by_rebuild: bool
    ) -> None:
        """Bring a generation to HEAD; `jobs` receives the jobs whose pages are read again."""
        if generation is self._index.corrupt or not generation.catalog.is_in_place:
            raise CatalogCorruptError(f"{generation.catalog.path} is damaged, or has gone")
        is_left_to_rebuild = self._index.left_to_rebuild is not None and not by_rebuild
        if is_left_to_rebuild or self._index.has_rolled_back or not generation.catalog.is_current:
            return
        if not self._index.generations.is_current(generation):
            self._index.generations.set_current(generation)
        is_whole = False
        while not is_whole:
            jobs += self._invalidate_pages(generation)
            is_whole = self._sync_once(generation, progress)

    def _sync_once(self, generation: Generation, progress: ProgressTracker) -> bool:
        """Bring a generation to HEAD; return False if the sync ended early because of newer changes."""
        start, is_first = time.perf_counter(), generation.catalog.meta("commit") is None
        embed = self._index.model.recipe.matches_vectors(generation)
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
        """Mark the requested pages to be read again; return the jobs that wait for them."""
        with self._asking:
            paths, jobs = self._pages_to_refresh, self._page_jobs
            self._pages_to_refresh, self._page_jobs = set(), []
        try:
            if paths:
                generation.catalog.invalidate_pages(sorted(paths))
        except CatalogError:
            with self._asking:
                self._pages_to_refresh |= paths
                self._page_jobs += jobs
            raise
        return jobs

    def _record(self, generation: Generation, result: SyncResult, seconds: float) -> None:
        commit, counts = generation.catalog.meta("commit"), generation.catalog.counts()
        pages, chunks = counts.pages, counts.chunks
        facts = logfmt("sync", commit=commit, pages=pages, chunks=chunks, changed=result.pages, seconds=seconds)
        log.info("index equals %s: %d pages, %d chunks; %s", commit, pages, chunks, facts)
        if result.chunks >= _MEASURED_CHUNKS:
            pace = (seconds - result.embedding_seconds) / result.chunks
            generation.catalog.set_meta(PACE, f"{pace:.6f}")
        if generation.catalog.unfinished:
            is_unreachable = self.indexer.embedding.is_resting
            self._unfinished_backoff.failed(_MAX_RETRY_UNREACHABLE_SECONDS if is_unreachable else None)
        else:
            self._unfinished_backoff.reset()
