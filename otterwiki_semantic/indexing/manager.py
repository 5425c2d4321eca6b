"""Keep the serving index up to date with HEAD, and rebuild it when its recipe changes or its files are damaged.

Three jobs run in the background, at most one of each: a sync brings the serving generation to HEAD, the mirror fills ChromaDB
from it, and a rebuild builds another generation. A failed job is logged, shown in the status, and retried.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import CatalogCorruptError, SemanticError
from otterwiki_semantic.core.heap import trim_heap
from otterwiki_semantic.core.records import RebuildStatus, SearchOptions
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Telemetry
from otterwiki_semantic.indexing.mirror_job import MirrorJob
from otterwiki_semantic.indexing.previous_index import PreviousIndex
from otterwiki_semantic.indexing.promotion import QualityGate
from otterwiki_semantic.indexing.rebuild import RebuildJob
from otterwiki_semantic.indexing.recipe import IndexRecipe, ModelStatus
from otterwiki_semantic.indexing.scheduler import Scheduler
from otterwiki_semantic.indexing.serving_index import ServingIndex
from otterwiki_semantic.indexing.sync import Stopped
from otterwiki_semantic.indexing.sync_job import SyncJob
from otterwiki_semantic.search import query_in_languages, search_chunks
from otterwiki_semantic.storage import Generation, GenerationStore

_WAKE_SECONDS = 0.05
"""A save calls several hooks before it returns: a single sync shortly after covers all of them and delays no user."""
_LOOK_SECONDS = 0.25
_TRIM_SECONDS = 60.0
"""The shortest time between two trims of the heap: each takes a millisecond, in which searches may wait for memory."""
_ANY_QUERY = "a question"
_SYNC = "sync"

log = logging.getLogger(__name__)


class IndexManager:
    """The serving generation, and the jobs that sync, mirror and replace it."""

    def __init__(
        self,
        repository: Repository,
        generations: GenerationStore,
        model: ModelStatus,
        gate: QualityGate,
        interval: float,
        recipe_of: Callable[[Generation], IndexRecipe],
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        """`interval` is the longest time between two syncs in seconds. For `recipe_of` see `PreviousIndex`."""
        self.model, self.gate = model, gate
        self._generations = generations
        self._interval = interval
        self.index = index = ServingIndex(repository, generations, model, telemetry)
        self.scheduler = scheduler = Scheduler()
        self.syncs = SyncJob(index)
        self.previous = PreviousIndex(index, recipe_of)
        self.rebuilds = RebuildJob(index, self.previous, self.syncs, scheduler, gate, self._after_rebuild)
        self.mirroring = MirrorJob(index, scheduler, self._tidy, self.mark_corrupt)
        self.on_synced: Callable[[], None] = lambda: None
        self._trim_cooldown = Cooldown(_TRIM_SECONDS)

    def start(self) -> None:
        """Open the serving generation, if there is one, and start the jobs."""
        serving = self._open_current()
        if serving is not None and serving.catalog.is_current:
            with suppress(SemanticError):  # reported by the sync
                self.syncs.indexer.leave_out_excluded(serving.catalog)
        self.index.set(serving)
        if serving is not None:
            self.previous.generation = self._generations.open_previous(serving)
        self.scheduler.run_in(0, _SYNC, self._sync)
        self.scheduler.start()

    def stop(self, timeout: float) -> None:
        """Stop the work at the next step, and close the files."""
        if self.index.is_stopping:
            return
        self.index.stop()
        self.index.loader.close()
        self.scheduler.stop(timeout, _SYNC)
        has_ended = self.index.changing.acquire(timeout=timeout)
        for generation in (self.index.generation, self.previous.generation):
            if generation is not None:
                generation.close()
        if has_ended:
            self.index.changing.release()

    @property
    def serving(self) -> Generation | None:
        """The serving generation."""
        return self.index.generation

    def stable_generation(self) -> Generation | None:
        """Return the serving generation if it equals HEAD and no rebuild is running."""
        return self.serving if self.index.equals_head() and not self.rebuilds.tracker.is_running else None

    def check_catalog(self) -> None:
        """Check the serving catalog in the background; the next sync discards it if it is damaged."""
        self.scheduler.run_in(0, "check", self._check_catalog)

    def wake(self) -> None:
        """Request a sync, which starts shortly."""
        self.scheduler.run_within(_WAKE_SECONDS, _SYNC, self._sync)

    def wait_until_head(self, timeout: float) -> None:
        """Wait up to `timeout` seconds until the index equals the current HEAD or a later one.

        If many pages would still lack vectors by then, wait for the keyword index only.
        """
        end, index, syncs = time.monotonic() + timeout, self.index, self.syncs
        with index.changed:
            wanted = syncs.begun + 1
            if index.equals_head():
                return
            if not syncs.wake_cooldown.is_active:
                self.scheduler.run_within(0, _SYNC, self._sync)
            while (left := end - time.monotonic()) > 0 and syncs.ended < wanted and not index.is_stopping:
                if not index.is_worth_waiting(left):
                    return
                index.changed.wait(min(left, _LOOK_SECONDS))  # the estimate for the vectors changes without a notification

    def refresh_pages(self, paths: Collection[str]) -> RebuildStatus:
        """Request a sync that indexes these pages again although they are unchanged; return the job."""
        job = self.syncs.refresh_pages(paths)
        self.wake()
        return job

    def job(self, job: str) -> RebuildStatus:
        """Return a job; `JobNotFoundError` if the id is unknown or has expired."""
        rebuild = self.rebuilds.tracker.status
        return rebuild if rebuild.job == job else self.syncs.jobs.find(job)

    def roll_back(self, record: Callable[[Generation, Generation], None]) -> Generation:
        """Serve the previous generation: see `PreviousIndex.roll_back`. Also raises `RebuildRunningError`."""
        self.rebuilds.tracker.check_idle()
        with self.index.changing:
            self.rebuilds.tracker.check_idle()
            return self.previous.roll_back(record)

    def mark_corrupt(self, generation: Generation) -> None:
        """Mark a generation with a corrupt catalog, for the next sync to discard."""
        self.index.corrupt = generation
        self.wake()

    def mark_keyword_index_damaged(self, generation: Generation) -> None:
        """Rebuild a generation whose keyword index is damaged; until then its vectors answer."""
        if self.index.damaged_keywords is not generation:
            self.index.damaged_keywords = generation
            self.scheduler.run_in(0, "repair", self.rebuilds.request_if_unfit)

    def _open_current(self) -> Generation | None:
        """Open the serving generation, even one of another recipe if at least its keywords can be searched.

        One that cannot be searched is kept until another is complete, for users who return to the version that built it.
        """
        generation = self._generations.open_current()
        if generation is not None and not self._can_serve(generation):
            generation.close()
            return None
        if generation is not None and self.model.recipe.matches(generation):
            self._generations.refresh_settings(generation)
        if generation is None or generation.catalog.meta("commit") is not None:
            self.previous.remove_others(generation)
        return generation

    def _can_serve(self, generation: Generation) -> bool:
        if self.model.recipe.matches(generation):
            return True
        if not generation.catalog.is_current and generation.catalog.rule("exclude") != self.index.repository.exclude:
            log.warning("the index is of another version and has other pages than SEMANTIC_EXCLUDE leaves; it is built again")
            return False
        try:
            query, scale = query_in_languages(_ANY_QUERY, generation.languages), self.model.recipe.scale(generation)
            with generation.catalog.snapshot():
                search_chunks(generation, query, lambda: None, SearchOptions(), scale)
            return generation.catalog.meta("commit") is not None
        except SemanticError as error:
            log.warning(
                "the index is of another version; it cannot be searched, and is kept until another one is complete: %s", error
            )
            return False

    # In the background

    def _sync(self) -> None:
        try:
            retry = self.syncs.run()
        except Stopped:
            return
        self.scheduler.run_within(self._interval if retry is None else retry, _SYNC, self._sync)
        self.rebuilds.request_if_unfit()
        self._compact()
        if not self._trim_cooldown.is_active:
            trim_heap()
            self._trim_cooldown.start()
        if retry is None and (serving := self.serving) is not None and not serving.mirror.is_whole:
            self.mirroring.request(serving)
        self.scheduler.run_in(0, "follow-up", self.on_synced)

    def _tidy(self, serving: Generation) -> None:
        self.previous.tidy(serving, is_rebuilding=self.rebuilds.tracker.is_running)

    def _after_rebuild(self) -> None:
        if isinstance(self.rebuilds.tracker.error, CatalogCorruptError):
            self._check_catalog()
        if self.serving is not None:
            self.mirroring.request(self.serving)  # what was replaced is removed only when no rebuild runs
        self.wake()

    def _check_catalog(self) -> None:
        serving = self.serving
        if serving is None:
            return
        try:
            serving.catalog.check()
        except CatalogCorruptError as error:
            log.warning("%s", error)
            self.mark_corrupt(serving)
        except SemanticError as error:
            log.warning("the catalog was not checked: %s", error)

    def _compact(self) -> None:
        try:
            with self.index.changing:
                serving = self.serving
                if serving is not None and serving.catalog.is_current and not self.index.is_stopping:
                    serving.compact()
        except SemanticError as error:
            log.warning("unused space was not returned to the disk: %s", error)
            if isinstance(error, CatalogCorruptError):
                self._check_catalog()
