"""Keep the serving index up to date with HEAD, and rebuild it when its recipe changes or its files are damaged.

Two jobs run in the background, at most one of each: a sync brings the serving generation to HEAD, a rebuild builds another one
next to it. A job that fails is logged, shown in the status, and retried automatically.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.pages import FRONT_MATTER
from otterwiki_semantic.core.backoff import Backoff, Cooldown
from otterwiki_semantic.core.errors import (
    CatalogCorruptError,
    CatalogError,
    IndexUnavailableError,
    RebuildRunningError,
    RollbackError,
    SemanticError,
)
from otterwiki_semantic.core.records import Freshness, RebuildStatus, SearchOptions
from otterwiki_semantic.core.settings import EXCLUDE, MAX_PAGE_BYTES
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Failure, Telemetry
from otterwiki_semantic.indexing.freshness import FreshnessMonitor
from otterwiki_semantic.indexing.page_loader import PageLoader
from otterwiki_semantic.indexing.progress import ProgressTracker, announced, now
from otterwiki_semantic.indexing.promotion import PACE, QualityGate
from otterwiki_semantic.indexing.rebuild import RebuildJob
from otterwiki_semantic.indexing.recipe import IndexRecipe, ModelStatus
from otterwiki_semantic.indexing.scheduler import Scheduler
from otterwiki_semantic.indexing.sync import Indexer, Stopped, SyncResult
from otterwiki_semantic.indexing.sync_history import SyncHistory, log_sync
from otterwiki_semantic.search import query_in_languages, search_chunks
from otterwiki_semantic.storage import Generation, GenerationStore

_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 60.0
_RETRY_UNFINISHED_SECONDS, _MAX_RETRY_UNFINISHED_SECONDS = 60.0, 3600.0
"""When pages that the model failed on are tried again."""
_MAX_RETRY_UNREACHABLE_SECONDS = 300.0
"""The same for a model whose server cannot be reached: pages are not to blame."""
_PUSH_SECONDS, _PAUSE_SECONDS = 0.25, 0.1
"""How long ChromaDB is filled before HEAD is looked at again, and the pause between two turns."""
_QUIET_SECONDS, _PUSHED_SECONDS = 1.0, 30.0
"""How long after a change of the index ChromaDB is filled, and the longest time that further changes put this off."""
_WAKE_COOLDOWN_SECONDS = 1.0
"""How long after a sync that failed waiting searches do not ask for another one."""
_LOOK_SECONDS = 0.25
"""How often a search that waits for HEAD looks whether it has waited long enough."""
_MEASURED_CHUNKS = 100
"""The chunks of a sync from which on its pace is recorded."""
_ANY_QUERY = "a question"

log = logging.getLogger(__name__)


class IndexManager:
    """The serving generation, and the jobs that sync and replace it. `on_synced` is called in the background after syncs."""

    def __init__(
        self,
        repository: Repository,
        generations: GenerationStore,
        recipe: IndexRecipe,
        model: ModelStatus,
        gate: QualityGate,
        interval: float,
        telemetry: Telemetry = NO_TELEMETRY,
        on_synced: Callable[[], None] | None = None,
        recipe_of: Callable[[Generation], IndexRecipe] | None = None,
    ) -> None:
        """`recipe_of` returns the recipe of a generation that was made with other settings."""
        self._repository = repository
        self._generations = generations
        self._recipe = recipe
        self._model = model
        self._telemetry = telemetry
        self._on_synced = on_synced
        self._recipe_of = recipe_of
        self._stopping = threading.Event()
        should_stop = self._stopping.is_set
        self._loader = PageLoader(repository, recipe.embedder, generations.data_dir, recipe.languages)
        self.indexer = Indexer(repository, recipe, should_stop, telemetry, self._loader)
        self.rebuilds = RebuildJob(repository, generations, recipe, model, gate, should_stop, telemetry, self._loader)
        self._jobs = self.rebuilds.tracker.jobs
        self.progress = ProgressTracker()
        self.history = SyncHistory(self.indexer, self._commit, telemetry)
        self._freshness = FreshnessMonitor(repository)
        self._scheduler = Scheduler(self._sync, interval)
        self._unfinished_backoff = Backoff(_RETRY_UNFINISHED_SECONDS, _MAX_RETRY_UNFINISHED_SECONDS)
        self._failure_backoff = Backoff(_RETRY_SECONDS, _MAX_RETRY_SECONDS)
        self._wake_cooldown = Cooldown(_WAKE_COOLDOWN_SECONDS)
        self.last_sync: str | None = None
        """When a sync last succeeded (ISO 8601)."""
        self.error: Exception | None = None
        """Why the last sync failed; None once one has succeeded."""
        self._changing = threading.Lock()
        """Held while the serving generation is synced or replaced."""
        self._changed = threading.Condition()
        """Guards and announces the changes of what follows."""
        self.serving: Generation | None = None
        """The generation that serves."""
        self.previous: Generation | None = None
        """The generation that it replaced, with another recipe; None: there is none to return to."""
        self._quiet = Cooldown(_QUIET_SECONDS)
        self._pushed_lately = Cooldown(_PUSHED_SECONDS)
        self._has_replaced = True
        """Whether there may be files of a generation that this one replaced."""
        self._is_completing = False
        """Whether a rebuild embeds what the serving generation lacks, which serves since its words are complete."""
        self._has_rolled_back = False
        """Whether another generation is to serve when the index is opened again, which is soon."""
        self._begun = self._ended = 0
        """The numbers of the last sync that began, and of the last one that succeeded."""
        self._pages_to_refresh: set[str] = set()
        self._page_jobs: list[RebuildStatus] = []
        """The jobs that wait for these pages."""
        self._corrupt: Generation | None = None
        self._damaged_keywords: Generation | None = None
        """The generation whose keyword index was last found to be damaged, and which still serves."""

    def start(self) -> None:
        """Open the serving generation, if there is one, and start the jobs."""
        serving = self._open_current()
        if serving is not None and serving.catalog.is_current:
            with suppress(SemanticError):  # the sync reports it
                self.indexer.leave_out_excluded(serving.catalog)
        self._set_serving(serving)
        if serving is not None:
            self.previous = self._generations.open_previous(serving)
        self._quiet.start()
        self._pushed_lately.start()
        self._scheduler.start()
        if serving is not None:
            self._scheduler.submit(self._check_catalog)

    def stop(self, timeout: float) -> None:
        """Stop the work between two steps, and close the files."""
        if self.is_stopping:
            return
        self._stopping.set()
        self._loader.close()
        self._scheduler.stop(timeout)
        has_ended = self._changing.acquire(timeout=timeout)
        for generation in (self.serving, self.previous):
            if generation is not None:
                generation.close()
        if has_ended:
            self._changing.release()

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def _set_serving(self, generation: Generation | None) -> None:
        with self._changed:
            self.serving = generation
            self._changed.notify_all()

    @property
    def embedded_texts(self) -> int:
        """Chunks embedded since this object was created."""
        return self.indexer.embedding.texts + self.rebuilds.indexer.embedding.texts

    def wake(self) -> None:
        """Ask for a sync in a moment."""
        self._scheduler.wake()

    def reschedule_background(self, seconds: float, work: Callable[[], None], slot: str = "background") -> None:
        """Run some work in the background after a pause; see `Scheduler.reschedule_background`."""
        self._scheduler.reschedule_background(seconds, work, slot)

    def pause(self, seconds: float) -> None:
        """Let work in the background rest. Errors: `Stopped` as soon as `stop` is called."""
        if self._stopping.wait(seconds):
            raise Stopped

    def refresh_pages(self, paths: Collection[str]) -> RebuildStatus:
        """Ask for a sync that indexes these pages again although they are unchanged; return the job."""
        job = self._jobs.begin(RebuildStatus(pages_total=len(paths)))
        with self._changed:
            self._pages_to_refresh.update(paths)
            self._page_jobs.append(job)
        self.wake()
        return job

    def job(self, job: str) -> RebuildStatus:
        """Return a job; `JobNotFoundError` if there is none with this id, or no longer."""
        rebuild = self.rebuilds.tracker.status
        return rebuild if rebuild.job == job else self._jobs.find(job)

    def mark_corrupt(self, generation: Generation) -> None:
        """Let the next sync discard a generation whose catalog was found to be corrupt."""
        self._corrupt = generation
        self.wake()

    def mark_keyword_index_damaged(self, generation: Generation) -> None:
        """Rebuild a generation whose keyword index was found to be damaged; until then its vectors answer."""
        if self._damaged_keywords is not generation:
            self._damaged_keywords = generation
            self._scheduler.submit(self._rebuild_if_unfit)

    def wait_until_head(self, timeout: float) -> None:
        """Wait up to `timeout` seconds until the index equals HEAD as it is now, or what HEAD has become since.

        Only words are waited for if the vectors of many pages are still to be embedded by then.
        """
        end = time.monotonic() + timeout

        def is_over() -> bool:
            is_enough = self._freshness.wait_is_over(self.serving, end - time.monotonic())
            return is_enough or self._ended >= wanted or self.is_stopping

        with self._changed:
            wanted = self._begun + 1
            if self.equals_head():
                return
            if not self._wake_cooldown.is_active:
                self._scheduler.retry_in(0)
            while not is_over() and (left := end - time.monotonic()) > 0:
                self._changed.wait(min(left, _LOOK_SECONDS))  # how long the vectors take changes without a notice

    def wait_for_successor(self, generation: Generation, timeout: float) -> Generation | None:
        """Wait up to `timeout` seconds for the generation that replaces this one; None if none does."""
        with self._changed:
            self._changed.wait_for(lambda: self.serving not in {None, generation} or self.is_stopping, timeout)
        return None if self.serving is generation else self.serving

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def equals_head(self) -> bool:
        """Whether the serving generation equals HEAD now."""
        return self._freshness.equals_head(self.serving)

    def stable_generation(self) -> Generation | None:
        """Return the serving generation if it equals HEAD and no other is being built."""
        return self.serving if self.equals_head() and not self.rebuilds.tracker.is_running else None

    def freshness(self, generation: Generation | None) -> Freshness:
        """Return which commit a generation equals, and what is pending."""
        return self._freshness.freshness(generation)

    def excluded_pages(self, generation: Generation) -> dict[str, str]:
        """Return the pages that are left out, by path, each with what excludes it. Errors: those of git and the catalog."""
        head = self._repository.head() if self._repository.exclude else None
        by_setting = self._repository.excluded_pages(head) if head else ()
        return dict.fromkeys(generation.catalog.excluded_blobs(), FRONT_MATTER) | dict.fromkeys(by_setting, EXCLUDE)

    def _commit(self) -> str | None:
        return self.serving.catalog.meta("commit") if self.serving else None

    def _open_current(self) -> Generation | None:
        """Open the generation that serves; one of another recipe also serves, if its keywords at least can be searched.

        One that cannot is kept until another is complete, for users who return to the version that made it.
        """
        generation = self._generations.open_current()
        if generation is not None and not self._can_serve(generation):
            generation.close()
            return None
        if generation is not None and self._recipe.matches(generation):
            self._generations.refresh_settings(generation)
        if generation is None or generation.catalog.meta("commit") is not None:
            self._remove_others(generation)
        return generation

    def _remove_others(self, serving: Generation | None) -> None:
        """Remove what nobody needs besides the serving generation; an interrupted build of the present recipe stays."""
        is_outdated = serving is not None and not self._recipe.matches(serving)
        self._generations.remove_others(serving, self._recipe.fingerprint if is_outdated else "")

    def _can_serve(self, generation: Generation) -> bool:
        if self._recipe.matches(generation):
            return True
        if not generation.catalog.is_current and generation.catalog.exclude != self._repository.exclude:
            log.warning("the index is of another version and has other pages than SEMANTIC_EXCLUDE leaves; it is built again")
            return False
        try:
            query, scale = query_in_languages(_ANY_QUERY, generation.languages), self._recipe.scale(generation)
            with generation.catalog.snapshot():
                search_chunks(generation, query, lambda: None, SearchOptions(), scale)
            return generation.catalog.meta("commit") is not None
        except SemanticError as error:
            log.warning(
                "the index is of another version; it cannot be searched, and is kept until another one is complete: %s", error
            )
            return False

    def _create_first(self) -> Generation:
        """Create a generation where there is none; it serves at once, while it fills up."""
        generation = self._generations.create(self._recipe.embedder, self._recipe.profile, self._recipe.languages)
        self._generations.set_current(generation)
        self._set_serving(generation)
        return generation

    def _check_catalog(self) -> None:
        """Read the whole catalog once: a corrupt part might otherwise be found much later."""
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

    def _sync(self) -> None:
        with self._changed:
            self._begun += 1
        try:
            with self._changing, self.history.recording():
                self._sync_serving(self.progress)
            self._succeed()
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 - the job's outermost frame: nothing above would report it
            self._fail(error)
        finally:
            with self._changed:
                self._ended = self._ended if self.error else self._begun
                self._changed.notify_all()
        self._rebuild_if_unfit()
        self._compact()
        if self._on_synced is not None:
            self.reschedule_background(0, self._on_synced)

    def _sync_serving(self, progress: ProgressTracker) -> None:
        """Bring the serving generation to HEAD; discard a corrupt or missing one, and start a new one."""
        self._model.refresh()
        with self._jobs.syncing() as jobs, self._freshness.syncing(progress):
            try:
                self._bring_to_head(self.serving or self._create_first(), progress, jobs)
            except CatalogCorruptError as error:
                if self.is_stopping:
                    raise
                log.warning("the index is damaged and is built again: %s", error)
                self._telemetry.record_failure(Failure.CATALOG)
                corrupt = self.serving
                self._set_serving(None)
                if corrupt is not None:
                    corrupt.destroy()
                self._bring_to_head(self._create_first(), progress, jobs)

    def _bring_to_head(self, generation: Generation, progress: ProgressTracker, jobs: list[RebuildStatus]) -> None:
        """Bring a generation to HEAD; `jobs` gets those whose pages are read again."""
        if generation is self._corrupt or not generation.catalog.is_in_place:
            raise CatalogCorruptError(f"{generation.catalog.path} is damaged, or has gone")
        is_being_replaced = generation is self._damaged_keywords and self.rebuilds.tracker.is_running
        is_left_to_rebuild = self._is_completing and progress is not self.rebuilds.tracker.progress
        if is_left_to_rebuild or is_being_replaced or self._has_rolled_back or not generation.catalog.is_current:
            return
        if not self._generations.is_current(generation):
            self._generations.set_current(generation)
        is_whole = False
        while not is_whole:
            jobs += self._invalidate_pages(generation)
            is_whole = self._sync_once(generation, progress)
        if not (self._quiet.is_active and self._pushed_lately.is_active):
            self._push(generation)

    def _sync_once(self, generation: Generation, progress: ProgressTracker) -> bool:
        """Bring a generation to HEAD; return whether it is there, and not stopped early for newer changes."""
        start, is_first = time.perf_counter(), generation.catalog.meta("commit") is None
        embed = self._recipe.matches_vectors(generation)
        plan = self.indexer.plan(generation.catalog, embed=embed, retry_unfinished=embed and self._unfinished_backoff.is_due)
        if plan is None:
            return True
        self._quiet.start()
        with announced(progress, is_build=is_first, indexed=self._indexed):
            result = self.indexer.sync(generation, plan, progress, self._notify, lambda: bool(self._pages_to_refresh))
        self._notify()
        if result.is_whole:
            self._record(generation, result, time.perf_counter() - start)
            self._has_replaced |= is_first
        return result.is_whole

    def _push(self, generation: Generation) -> None:
        """Fill ChromaDB for a moment; once its collection is complete, what it replaced is removed."""
        self._pushed_lately.start()
        generation.mirror.push(_PUSH_SECONDS, self.indexer.check_stop)
        if self._has_replaced and generation.mirror.is_whole and not self.rebuilds.tracker.is_running:
            if self.previous is not None:
                self.previous.mirror.start_collection()
                self._generations.remove_collections(self.previous)
            self._remove_others(generation)
            self._has_replaced = False
            if self.previous is not None and not self.previous.catalog.is_in_place:
                self._forget_previous()
        if self.previous is not None:
            self._follow(self.previous, generation)

    def run_in_background(self, work: Callable[[], None]) -> None:
        """Run some work in the background now."""
        self._scheduler.submit(work)

    def _follow(self, previous: Generation, serving: Generation) -> None:
        """Bring the previous generation to HEAD by words; only vectors that the serving one has are taken over.

        What changed is embedded if it serves again. One whose recipe is not known for certain stays as it is until then.
        """
        try:
            if self._recipe_of is None or previous.catalog.commit == serving.catalog.commit:
                return
            recipe = self._recipe_of(previous)
            if not recipe.matches(previous):
                return
            loader = self._loader.with_model(recipe.embedder, recipe.languages)
            indexer = Indexer(self._repository, recipe, self._stopping.is_set, loader=loader)
            shared = serving.catalog if previous.vector_fingerprint == serving.vector_fingerprint else None
            plan = indexer.plan(previous.catalog, embed=False, previous=shared)
            if plan is not None:
                indexer.sync(previous, plan, ProgressTracker())
        except SemanticError as error:
            log.warning("the index that was replaced cannot follow the wiki, and is removed: %s", error)
            self._forget_previous()

    def _forget_previous(self) -> None:
        previous, self.previous = self.previous, None
        self._generations.set_previous(None)
        if previous is not None:
            previous.destroy()

    def roll_back(self, record: Callable[[Generation, Generation], None]) -> Generation:
        """Let the previous generation serve when the index is opened again, and keep the serving one; return the previous one.

        `record` is called with both before anything is changed. Errors: `RollbackError` if there is none, or if that cannot be
        written; `RebuildRunningError`.
        """
        self.rebuilds.tracker.check_idle()
        with self._changing:
            self.rebuilds.tracker.check_idle()
            previous, serving = self.previous, self.serving
            if previous is None or serving is None or not (previous.catalog.is_current and previous.catalog.is_in_place):
                raise RollbackError("there is no earlier index to return to: none of another model or profile was replaced")
            try:
                record(previous, serving)
                self._generations.set_previous(serving)
                self._generations.set_current(previous)
            except OSError as error:
                with suppress(OSError):
                    self._generations.set_current(serving)
                    self._generations.set_previous(previous)
                raise RollbackError(f"the rollback cannot be written to the data directory: {error}") from error
            self._has_rolled_back = True
            log.warning("the index %s is to serve again, in place of %s", previous.name, serving.name)
            return previous

    def _indexed(self) -> tuple[int, int] | None:
        """Return the numbers of pages and chunks that can be found; None if it equals no commit, or that cannot be said."""
        with suppress(CatalogError):
            if self.serving is not None and not self.serving.catalog.is_changing:
                counts = self.serving.catalog.counts()
                return counts.pages, counts.chunks
        return None

    def _invalidate_pages(self, generation: Generation) -> list[RebuildStatus]:
        """Let the sync read pages again, and return the jobs that wait for them.

        Pages with problems are also read again, if the limits are other ones than before.
        """
        with self._changed:
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
            with self._changed:
                self._pages_to_refresh |= paths
                self._page_jobs += jobs
            raise
        return jobs

    def _record(self, generation: Generation, result: SyncResult, seconds: float) -> None:
        log_sync(generation, seconds, result.pages)
        if result.chunks >= _MEASURED_CHUNKS:
            pace = (seconds - result.embedding_seconds) / result.chunks
            generation.catalog.set_meta(PACE, f"{pace:.6f}")
        is_unreachable = self.indexer.embedding.is_resting
        if generation.catalog.unfinished:
            self._unfinished_backoff.failed(_MAX_RETRY_UNREACHABLE_SECONDS if is_unreachable else None)
        else:
            self._unfinished_backoff.reset()

    def _succeed(self) -> None:
        self.last_sync, self.error = now(), None
        self._failure_backoff.reset()
        if self.equals_head():
            self._telemetry.record_up_to_date()
        serving = self.serving
        if serving is not None and not serving.mirror.is_whole and serving.catalog.is_current:
            self._scheduler.sync_within(serving.mirror.retry_in + max(_PAUSE_SECONDS, self._quiet.remaining))

    def _fail(self, error: Exception) -> None:
        if self.is_stopping:
            return
        self.error = error
        unforeseen = None if isinstance(error, SemanticError | OSError) else error
        log.error("the index could not be brought up to date: %s", error, exc_info=unforeseen)
        self._scheduler.retry_in(self._failure_backoff.failed())
        self._wake_cooldown.start()

    def _compact(self) -> None:
        """Return unused space of the serving generation to the disk; no answer waits for it."""
        try:
            with self._changing:
                serving = self.serving
                if serving is None or self.is_stopping or not serving.catalog.is_current:
                    return
                serving.compact()
                if not (serving.mirror.is_current or serving.mirror.retry_in or self.error):
                    self._scheduler.sync_within(_QUIET_SECONDS)
        except SemanticError as error:
            log.warning("unused space was not returned to the disk: %s", error)
            if isinstance(error, CatalogCorruptError):
                self._check_catalog()

    def reindex(self, *, full: bool = False) -> RebuildStatus:
        """Start a rebuild: a `full` one, as for a damaged keyword index, reads every page again. Errors: `RebuildJob.begin`."""
        serving = self.serving
        self.rebuilds.begin(serving, full=full or (serving is not None and serving is self._damaged_keywords))
        self._scheduler.submit(self._rebuild)
        return self.rebuilds.tracker.status

    def _rebuild_if_unfit(self) -> None:
        """Start a rebuild if the serving generation has another recipe, or its keyword index is damaged."""
        serving = self.serving
        if serving is None or self.is_stopping:
            return
        try:
            is_damaged = serving is self._damaged_keywords
            if self.rebuilds.tracker.may_start and (is_damaged or self.rebuilds.is_outdated(serving)):
                self.reindex()
        except RebuildRunningError:
            return
        except Exception as error:  # noqa: BLE001 - the job's outermost frame: nothing above would report it
            log.warning("the index has to be built again, and cannot be now: %s", error)
            self.rebuilds.tracker.put_off(serving, error)

    def _rebuild(self) -> None:
        with self.rebuilds.tracker.running():
            self._rebuild_and_promote()
        if isinstance(self.rebuilds.tracker.error, CatalogCorruptError):
            self._check_catalog()

    def _rebuild_and_promote(self) -> None:
        """Build another generation and let it serve; an index that was never built is only brought to HEAD."""
        with self._changing, self.history.recording():
            serving = self.serving
            if serving is None or serving.catalog.meta("commit") is None:
                self._sync_serving(self.rebuilds.tracker.progress)
                return
        with announced(self.rebuilds.tracker.progress, is_build=True, indexed=self._indexed):
            self._promote(self._rebuild_next_to(serving), serving)
        if self._is_completing:
            try:
                with self._changing, self.history.recording():
                    self._sync_serving(self.rebuilds.tracker.progress)
            finally:
                self._is_completing = False

    def _rebuild_next_to(self, serving: Generation) -> Generation:
        """Return a new generation; the previous one, brought to HEAD, if its recipe is wanted again."""
        with self._changing:
            kept = self.previous if self.previous is not None and self._recipe.matches(self.previous) else None
            if kept is not None:
                self.previous = None
        try:
            return self.rebuilds.rebuild(serving, kept)
        except BaseException:
            if kept is not None:
                self.previous = kept
            raise

    def _promote(self, new: Generation, serving: Generation) -> None:
        """Let a new generation replace the serving one, unless that is gone in the meantime."""
        try:
            with self._changing:
                if self.is_stopping or self._has_rolled_back:
                    raise Stopped
                if self.serving is not serving or not new.catalog.is_in_place:
                    raise IndexUnavailableError("the serving index was replaced while another one was being built")
                is_kept = not self._recipe.matches(serving) and serving.catalog.is_current and bool(serving.settings)
                if is_kept:
                    self._generations.set_previous(serving)
                self._generations.set_current(new)
                self._is_completing = new.catalog.is_changing
                self._set_serving(new)
        except BaseException:
            new.destroy()
            raise
        self._corrupt = self._damaged_keywords = None
        log.info("a new index serves: %s", new.name)
        if is_kept:
            serving.mirror.close()
            with self._changing:
                before, self.previous = self.previous, serving
            if before is not None:
                before.destroy()
        else:
            serving.close()
        self._has_replaced = True
        self.wake()
