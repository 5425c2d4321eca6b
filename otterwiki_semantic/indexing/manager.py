"""Keeps a generation serving, equal to HEAD, and made the way it is to be made; whatever happens to it.

Two jobs run in the background, one of each kind at a time: the sync brings the serving generation to HEAD, the rebuild makes
another one beside it. A job that fails is logged, shown in the status, and tried again by itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.backoff import Finishing
from otterwiki_semantic.core.errors import (
    CatalogCorruptError,
    CatalogError,
    IndexUnavailableError,
    RebuildRunningError,
    RepositoryError,
    SemanticError,
)
from otterwiki_semantic.core.records import Freshness, RebuildStatus
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Failure, Telemetry
from otterwiki_semantic.indexing.history import SyncHistory, log_sync
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.promotion import PACE, recalls
from otterwiki_semantic.indexing.rebuild import RebuildJob, now
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.indexing.scheduler import Scheduler
from otterwiki_semantic.indexing.sync import Indexer, Stopped
from otterwiki_semantic.search.evaluation import JudgedQuery
from otterwiki_semantic.storage import Generation, GenerationStore

_LONGEST_RETRY_SECONDS = 60.0
_TURN_SECONDS, _REFILL_SECONDS = 0.25, 0.1
"""How long ChromaDB is filled before HEAD is looked at again, and the pause between."""
_WAKE_AGAIN_SECONDS = 1.0
"""How long questions that wait do not ask for another sync after one that failed."""
_ENOUGH_CHUNKS = 100
"""Chunks of a sync from which on its pace tells something."""

log = logging.getLogger(__name__)


class IndexManager:
    """The generation that serves, and the jobs that keep it."""

    def __init__(
        self,
        repository: Repository,
        generations: GenerationStore,
        way: IndexRecipe,
        interval: float,
        watcher: Telemetry = NO_TELEMETRY,
    ) -> None:
        self._repository = repository
        self._generations = generations
        self._way = way
        self._watcher = watcher
        self.serving: Generation | None = None
        self._stopping = threading.Event()
        self.indexer = Indexer(repository, way.embedder, way.profile, self._stopping.is_set, _TURN_SECONDS, watcher)
        self.rebuilder = RebuildJob(repository, generations, way, self._stopping.is_set, watcher)
        self.sync_progress = ProgressTracker()
        self.syncs = SyncHistory(self.indexer, lambda: self.serving.catalog.meta("commit") if self.serving else None, watcher)
        self._changing = threading.Lock()
        """Held by whoever syncs the serving generation or puts another in its place."""
        self._damaged: Generation | None = None
        self._replaced: Generation | None = None
        """The generation whose words were last found damaged."""
        self._synced = threading.Condition()
        self._begun = self._ended = 0
        """The numbers of the last sync that began, and of the last one that succeeded."""
        self._syncing = False
        self._failures = 0
        self._wake_not_before = 0.0
        self._finishing = Finishing()
        self.last_sync: str | None = None
        self.error: Exception | None = None
        """What the last sync failed of; None once one has succeeded."""
        self.after_sync: Callable[[], None] | None = None
        """What else is to be done when a sync has succeeded, in the background."""
        self._to_read_again: set[str] = set()
        self._pending_between = lru_cache(1)(self._count_pending)
        self._jobs = Scheduler(self._sync, interval)
        self.run_in = self._jobs.run_in

    def start(self) -> None:
        """Open the serving generation, if there is one, and begin to keep it, in the background."""
        self.serving = self._open_current()
        self._jobs.start()
        if self.serving is not None:
            self._jobs.run_once(self._check_catalog)

    def stop(self, timeout: float) -> None:
        """Stop the work between two steps, and close the files."""
        if self.is_stopping:
            return
        self._stopping.set()
        self._jobs.stop(timeout)
        has_ended = self._changing.acquire(timeout=timeout)
        if self.serving is not None:
            self.serving.close()
        if has_ended:
            self._changing.release()

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping.is_set()

    def wake(self) -> None:
        """Ask for a sync in a moment."""
        self._jobs.wake()

    def read_again(self, paths: Iterable[str]) -> None:
        """Ask for a sync that reads these pages again, though they have not changed."""
        with self._synced:
            self._to_read_again.update(paths)
        self._jobs.wake()

    def report_damage(self, generation: Generation) -> None:
        """Say that a generation's catalog was found damaged: the next sync lets go of it."""
        self._damaged = generation
        self._jobs.wake()

    def replace(self, damaged: Generation) -> None:
        """Say that a generation's words were found damaged: another is built; it goes on serving by meaning meanwhile."""
        if self._replaced is not damaged:
            self._replaced = damaged
            self._jobs.run_once(self._replace_unfit)

    # How far it is

    def wait_until_head(self, timeout: float) -> None:
        """Wait, for at most so many seconds, until the index equals HEAD as it is now, or what HEAD became since."""
        with self._synced:
            wanted = self._begun + 1
            if self.equals_head():
                return
            if time.monotonic() >= self._wake_not_before:
                self._jobs.wake()
            self._synced.wait_for(lambda: self.equals_head() or self._ended >= wanted or self.is_stopping, timeout)

    def wait_for_successor(self, generation: Generation, timeout: float) -> Generation | None:
        """Give the generation that took another one's place, which may take a moment; None if none does in time."""
        with self._synced:
            self._synced.wait_for(lambda: self.serving not in {None, generation} or self.is_stopping, timeout)
        return None if self.serving is generation else self.serving

    def _tell_waiting(self) -> None:
        with self._synced:
            self._synced.notify_all()

    def equals_head(self) -> bool:
        """Whether the serving generation equals HEAD as it is now."""
        serving = self.serving
        with suppress(SemanticError):
            return serving is not None and serving.catalog.commit == self._repository.head()
        return False

    def settled(self) -> Generation | None:
        """Give the serving generation if it equals HEAD and no other is built beside it."""
        return self.serving if self.equals_head() and not self.rebuilder.is_running else None

    def freshness(self, generation: Generation | None) -> Freshness:
        """Tell which commit a generation equals, and what is pending; HEAD is None with an `error` if git cannot tell it."""
        commit = generation.catalog.meta("commit") if generation else None
        try:
            head = self._repository.head()
            is_changing = generation is not None and generation.catalog.is_changing
            if head == commit and not is_changing:
                return Freshness(commit, head, generation.catalog.unfinished if generation else 0)
            if is_changing and self._syncing and self.sync_progress.snapshot().pages_total:
                return Freshness(commit, head, self.sync_progress.pages_left)
            return Freshness(commit, head, self._pending_between(generation, commit, head))
        except RepositoryError as error:
            return Freshness(commit, None, 0, str(error))

    def _count_pending(self, generation: Generation | None, _commit: str | None, head: str | None) -> int:
        if generation is None:
            return len(self._repository.blobs(head)) if head else 0
        changed, gone = self.indexer.difference(generation.catalog, head)
        return len(changed) + len(gone)

    # Keeping it equal to HEAD

    def _sync(self) -> None:
        with self._synced:
            self._begun += 1
        try:
            with self._changing, self.syncs.noting():
                self._syncing = True
                self._sync_serving(self.sync_progress)
            self.last_sync, self.error, self._failures = now(), None, 0
            if self.equals_head():
                self._watcher.record_up_to_date()
            if self.serving is not None and self.serving.is_refilling and self.serving.catalog.is_current:
                self._jobs.sync_within(self.serving.rests_for + _REFILL_SECONDS)
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 - the job's outermost frame: nothing above would tell anybody
            self._fail(error)
        finally:
            self._syncing = False
            self._pending_between.cache_clear()
            with self._synced:
                self._ended = self._ended if self.error else self._begun
                self._synced.notify_all()
        self._replace_unfit()
        self._tidy()
        if self.after_sync is not None:
            self._jobs.run_in(0, self.after_sync)

    def _sync_serving(self, progress: ProgressTracker) -> None:
        """Bring the serving generation to HEAD; one that is damaged or has gone is let go, and another begun."""
        self._way.prepare()
        self.indexer.profile = self._way.profile
        try:
            self._bring_to_head(self.serving or self._first_generation(), progress)
        except CatalogCorruptError as error:
            if self.is_stopping:
                raise
            log.warning("the index is damaged and is built again: %s", error)
            self._watcher.record_failure(Failure.CATALOG)
            damaged, self.serving = self.serving, None
            if damaged is not None:
                damaged.destroy()
            self._bring_to_head(self._first_generation(), progress)

    def _bring_to_head(self, generation: Generation, progress: ProgressTracker) -> None:
        if generation is self._damaged or not generation.catalog.is_in_place:
            raise CatalogCorruptError(f"{generation.catalog.path} is damaged, or has gone")
        is_replaced = generation is self._replaced and self.rebuilder.is_running
        if is_replaced or not generation.catalog.is_current:
            return
        if not self._generations.points_to(generation):
            self._generations.serve(generation)
        with self._synced:
            again, self._to_read_again = self._to_read_again, set()
        try:
            if again:
                generation.catalog.read_again(sorted(again))
        except CatalogError:
            self.read_again(again)
            raise
        start, embedded, changed = time.perf_counter(), self.indexer.embedding_seconds, self.indexer.changed_pages
        was_whole = generation.catalog.meta("commit") is not None
        embeds = self._way.embeds_for(generation)
        finish = embeds and self._finishing.is_due
        was_needed = self.indexer.sync(generation, progress, only_words=not embeds, finish=finish, on_head=self._tell_waiting)
        if not was_needed:
            self.indexer.flush(generation)
            return
        if not was_whole:
            self._generations.remove_others(generation)
        seconds, done = time.perf_counter() - start, progress.snapshot().chunks_done
        log_sync(generation, seconds, self.indexer.changed_pages - changed)
        if done >= _ENOUGH_CHUNKS:
            unembedded = seconds - (self.indexer.embedding_seconds - embedded)
            generation.catalog.set_meta(PACE, f"{unembedded / done:.6f}")
        self._finishing.tried(is_left=bool(generation.catalog.unfinished), is_unreachable=self.indexer.model_is_left_alone)
        self._jobs.run_once(self._note_recall)

    def _note_recall(self) -> None:
        """Let the serving generation know how good it is, once, for the day when its model is not there any more."""
        try:
            if self.serving is not None:
                self._way.judge(self.serving)
        except Exception as error:  # noqa: BLE001 - nothing depends on it
            log.warning("the index was not judged: %s", error)

    def _tidy(self) -> None:
        """Let the serving generation give room back to the disk; no answer waits for it."""
        try:
            with self._changing:
                if self.serving is None or self.is_stopping or not self.serving.catalog.is_current:
                    return
                self.serving.tidy()
                if self.serving.is_refilling and not self.serving.rests_for and self.error is None:
                    self._jobs.sync_within(_REFILL_SECONDS)
        except SemanticError as error:
            log.warning("room was not given back to the disk: %s", error)
            if isinstance(error, CatalogCorruptError):
                self._check_catalog()

    def _fail(self, error: Exception) -> None:
        if self.is_stopping:
            return
        self._failures += 1
        self.error = error
        unforeseen = None if isinstance(error, SemanticError | OSError) else error
        log.error("the index could not be brought up to date: %s", error, exc_info=unforeseen)
        self._jobs.retry_in(min(0.5 * 2**self._failures, _LONGEST_RETRY_SECONDS))
        self._wake_not_before = time.monotonic() + _WAKE_AGAIN_SECONDS

    def _check_catalog(self) -> None:
        """Read the catalog that was opened once as a whole: a damaged part may otherwise be met only much later."""
        serving = self.serving
        if serving is None:
            return
        try:
            serving.catalog.check()
        except CatalogCorruptError as error:
            log.warning("%s", error)
            self.report_damage(serving)
        except SemanticError as error:
            log.warning("the catalog was not checked: %s", error)

    def _open_current(self) -> Generation | None:
        """Open the generation that serves: one made another way, too, if it can be asked by its words at least.

        One that cannot is kept until another is whole, for whoever goes back to the version that made it.
        """
        generation = self._generations.current()
        if generation is not None and not self._can_serve(generation):
            generation.close()
            return None
        if generation is None or generation.catalog.meta("commit") is not None:
            is_outdated = generation is not None and generation.fingerprint != self._way.fingerprint
            self._generations.remove_others(generation, self._way.fingerprint if is_outdated else "")
        return generation

    def _can_serve(self, generation: Generation) -> bool:
        if generation.fingerprint == self._way.fingerprint:
            return True
        try:
            recalls(generation, [JudgedQuery("a question", ("a page",))], None, self._way.calibration(generation))
            return generation.catalog.meta("commit") is not None
        except SemanticError as error:
            log.warning("the index is of another version; it cannot be asked, and is kept until another is whole: %s", error)
            return False

    def _first_generation(self) -> Generation:
        """Make the generation of an index that has none; it serves at once and fills up while it does."""
        generation = self._generations.create(self._way.embedder, self._way.profile)
        self._generations.serve(generation)
        self.serving = generation
        self._tell_waiting()
        return generation

    # Building another

    @property
    def embedded_texts(self) -> int:
        """Chunks given to the model since this object was made."""
        return self.indexer.embedded_texts + self.rebuilder.indexer.embedded_texts

    def reindex(self, *, full: bool = False) -> RebuildStatus:
        """Start a rebuild: a `full` one, as for damaged words, reads every page again; see `RebuildJob.begin` for errors."""
        serving = self.serving
        self.rebuilder.begin(serving, full=full or (serving is not None and serving is self._replaced))
        self._jobs.run_once(self._rebuild)
        return self.rebuilder.status()

    def _replace_unfit(self) -> None:
        """Begin to build another generation if the serving one was made another way, or its words are damaged."""
        serving = self.serving
        if serving is None or self.is_stopping:
            return
        try:
            if self.rebuilder.may_begin and (serving is self._replaced or self.rebuilder.is_outdated(serving)):
                self.reindex()
        except RebuildRunningError:
            return
        except Exception as error:  # noqa: BLE001 - the job's outermost frame: nothing above would tell anybody
            log.warning("the index has to be built again, and cannot be now: %s", error)
            self.rebuilder.put_off(serving, error)

    def _rebuild(self) -> None:
        if isinstance(self.rebuilder.run(self._build), CatalogCorruptError):
            self._check_catalog()

    def _build(self) -> None:
        """Build another generation beside the serving one; an index that is not built yet is just built."""
        with self._changing, self.syncs.noting():
            serving = self.serving
            if serving is None or serving.catalog.meta("commit") is None:
                self._sync_serving(self.rebuilder.progress)
                return
        self._take_over(serving, self.rebuilder.build(serving))

    def _take_over(self, serving: Generation, new: Generation) -> None:
        """Let a new generation take the serving one's place, unless that has gone meanwhile."""
        try:
            with self._changing:
                if self.is_stopping:
                    raise Stopped
                if self.serving is not serving or not new.catalog.is_in_place:
                    raise IndexUnavailableError("the serving index was replaced while another one was built beside it")
                self._generations.serve(new)
                new.fills_later = False
                self.serving = new
        except BaseException:
            new.destroy()
            raise
        log.info("a new index serves: %s", new.name)
        serving.destroy()
        self._jobs.wake()
