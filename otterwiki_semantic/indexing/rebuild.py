"""Rebuilds: build a generation next to the serving one, check it, and compare both."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec import structs

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import (
    CatalogCorruptError,
    CatalogError,
    IndexUnavailableError,
    ModelError,
    RebuildRefusedError,
    RebuildRunningError,
    SemanticError,
)
from otterwiki_semantic.core.records import Estimate, RebuildState, RebuildStatus, Recall, ReindexStarted, fall
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Failure, Telemetry
from otterwiki_semantic.indexing.jobs import JobLog
from otterwiki_semantic.indexing.previous_index import PreviousIndex
from otterwiki_semantic.indexing.progress import ProgressTracker, announced
from otterwiki_semantic.indexing.promotion import QualityGate, check_complete, check_disk_space, estimate
from otterwiki_semantic.indexing.scheduler import Scheduler
from otterwiki_semantic.indexing.serving_index import ServingIndex
from otterwiki_semantic.indexing.sync import Stopped
from otterwiki_semantic.indexing.sync_job import SyncJob
from otterwiki_semantic.storage import Generation

_RETRY_SECONDS = 600.0
"""How long after a rebuild none is started automatically."""
_REFUSED = "refused"

log = logging.getLogger(__name__)


class RebuildTracker:
    """The status of the last rebuild. Thread-safe."""

    def __init__(self, jobs: JobLog | None = None, telemetry: Telemetry = NO_TELEMETRY) -> None:
        self.progress = ProgressTracker()
        self.jobs = jobs or JobLog()
        self._telemetry = telemetry
        self._lock = threading.Lock()
        self._status = RebuildStatus()
        self._cooldown = Cooldown(_RETRY_SECONDS)
        self.error: Exception | None = None
        self._serving: str | None = None

    @property
    def status(self) -> RebuildStatus:
        """The current status."""
        with self._lock:
            progress = structs.asdict(self.progress.snapshot())
            if not self.is_running:
                progress["seconds_left"] = None
            return structs.replace(self._status, **progress)

    @property
    def is_running(self) -> bool:
        """Whether a rebuild is running."""
        return self._status.state is RebuildState.RUNNING

    @property
    def may_start(self) -> bool:
        """Whether a rebuild may start automatically: none is running, and none ended recently."""
        return not (self.is_running or self._cooldown.is_active)

    def check_idle(self) -> None:
        """Raise `RebuildRunningError` if a rebuild is running."""
        if self.is_running:
            raise RebuildRunningError(f"a rebuild has been running since {self._status.started}")

    def error_next_to(self, serving: Generation) -> Exception | None:
        """Return why the last rebuild failed, unless another generation serves since."""
        return self.error if self._serving == serving.name else None

    def begin(self, serving: Generation | None, wanted: Estimate, *, copies: bool) -> None:
        """Start a rebuild, which `running` ends. `RebuildRunningError` if one is running."""
        with self._lock:
            self.check_idle()
            log.info(
                "a rebuild begins: %d texts to embed, %.0f MB, %.0f s", wanted.texts, wanted.disk_bytes / 1e6, wanted.seconds
            )
            self._status = self.jobs.begin(RebuildStatus(estimate=wanted, copies=copies))
            self._serving, self.error = serving.name if serving else None, None
            self.progress.reset()

    def update(self, **changes: object) -> None:
        """Change some fields of the status."""
        with self._lock:
            self._status = structs.replace(self._status, **changes)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record the result of the rebuild in the block. Errors are logged, not raised."""
        error: Exception | None = None
        try:
            yield
        except Stopped:
            error = IndexUnavailableError("the index daemon was stopped; the old index continues to serve")
        except SemanticError as failure:
            log.warning("the rebuild failed, the old index continues to serve: %s", failure)
            error = failure
        except Exception as failure:
            log.exception("the rebuild failed, the old index continues to serve: %s", failure)
            error = failure
        self._end(error)

    def put_off(self, serving: Generation, error: Exception) -> None:
        """Record that a rebuild cannot start now."""
        self._serving = serving.name
        self.update(job=None)
        self._end(error)

    def _end(self, error: Exception | None) -> None:
        if error is not None:
            self._telemetry.record_failure(Failure.REBUILD)
        self._cooldown.start()
        self.error = error
        ended = self.jobs.end(self.status, error)
        with self._lock:
            self._status = ended


class RebuildJob:
    """Build another generation next to the serving one, and replace it; one rebuild at a time."""

    def __init__(
        self,
        index: ServingIndex,
        previous: PreviousIndex,
        syncs: SyncJob,
        scheduler: Scheduler,
        gate: QualityGate,
        on_ended: Callable[[], None],
    ) -> None:
        self._index = index
        self._generations = index.generations
        self._recipe = index.model.recipe
        self._previous = previous
        self._syncs = syncs
        self._scheduler = scheduler
        self._gate = gate
        self._on_ended = on_ended
        self.tracker = RebuildTracker(syncs.jobs, index.telemetry)
        self.indexer = index.new_indexer()
        self._embeds_all = False
        """Whether the rebuild that is running reuses no vectors."""

    def is_outdated(self, serving: Generation) -> bool:
        """Whether a generation has another recipe, and is not preferred to an index of this one."""
        return not self._recipe.matches(serving) and self.refusal(serving) is None

    def refusal(self, serving: Generation) -> str | None:
        """Return why an index of this recipe was refused in favour of this generation; None if it was not."""
        fingerprint, _, reason = (serving.catalog.meta(_REFUSED) or "").partition(" ")
        return reason if fingerprint == self._recipe.fingerprint else None

    def request(self, *, full: bool = False, embed: bool = False) -> ReindexStarted:
        """Start a rebuild; a `full` one reads every page again, and with `embed` every passage is embedded again.

        Errors: `RebuildRunningError` if one is running, `RebuildRefusedError` if the disk is too full.
        """
        serving = self._index.generation
        is_damaged = serving is not None and serving is self._index.damaged_keywords
        self.tracker.check_idle()
        copies = not (full or is_damaged or embed) and self._can_copy(serving)
        wanted = self._estimate(serving, copies=copies, embeds=embed)  # may use the model for long
        check_disk_space(wanted, self._generations.data_dir)
        self.tracker.begin(serving, wanted, copies=copies)
        self._embeds_all = embed
        self._index.left_to_rebuild = self.tracker.progress if is_damaged else None
        self._scheduler.run_in(0, "rebuild", self._run)
        return ReindexStarted("started", estimate=wanted, job=self.tracker.status.job)

    def request_if_unfit(self) -> None:
        """Start a rebuild if the serving generation has another recipe, or its keyword index is damaged."""
        serving = self._index.generation
        if serving is None or self._index.is_stopping:
            return
        try:
            is_damaged = serving is self._index.damaged_keywords
            if self.tracker.may_start and (is_damaged or self.is_outdated(serving)):
                self.request()
        except RebuildRunningError:
            return
        except Exception as error:  # noqa: BLE001 - the job's outermost frame: nothing above would report it
            log.warning("the index has to be built again, and cannot be now: %s", error)
            self.tracker.put_off(serving, error)

    def _run(self) -> None:
        try:
            with self.tracker.running():
                self._rebuild_and_promote()
        finally:
            self._index.left_to_rebuild = None
        self._on_ended()

    def _rebuild_and_promote(self) -> None:
        with self._index.changing:
            serving = self._index.generation
            if serving is None or serving.catalog.meta("commit") is None:
                self._syncs.sync(self.tracker.progress)
                return
        with announced(self.tracker.progress, is_build=True, indexed=self._index.counts):
            self._promote(self._build_next_to(serving), serving)
        if self._index.left_to_rebuild:
            with self._index.changing:
                self._syncs.sync(self.tracker.progress, by_rebuild=True)

    def _build_next_to(self, serving: Generation) -> Generation:
        """Build a generation next to the serving one, and return it if it is complete and good enough.

        With the recipe of the serving generation, it begins as a copy, if that is sound. With another, it continues a previous
        generation of this recipe, which also survives a failure, or else an unfinished build.

        If the serving generation's vectors are another model's, the new one is returned as soon as keyword search finds all
        pages, unless judged queries must compare both; its next sync embeds the pages.
        """
        recipe, previous, is_other = self._recipe, self._previous, not self._recipe.matches(serving)
        with self._index.changing:
            kept = previous.generation if previous.generation and recipe.matches(previous.generation) else None
            if kept is not None:
                previous.generation = None
        new = kept
        try:
            self._index.model.refresh()
            unfinished = kept or (self._generations.open_unfinished(recipe.fingerprint, serving) if is_other else None)
            new = unfinished or self._copy(serving)
            if new is None:
                new = self._generations.create(recipe.embedder, recipe.profile, recipe.languages)
            if self._fill(new, serving, is_continued=unfinished is not None):
                check_complete(new, serving.catalog.unfinished)
                self._check_quality(new, serving)
        except BaseException as error:
            if kept is not None:
                previous.generation = kept
            elif new is not None and is_other and isinstance(error, Stopped | ModelError):
                new.close()  # kept for the next build, which reuses its vectors
            elif new is not None:
                new.destroy()
            raise
        return new

    def _promote(self, new: Generation, serving: Generation) -> None:
        index = self._index
        try:
            with index.changing:
                if index.is_stopping or index.has_rolled_back:
                    raise Stopped
                if index.generation is not serving or not new.catalog.is_in_place:
                    raise IndexUnavailableError("the serving index was replaced while another one was being built")
                is_kept = not self._recipe.matches(serving) and serving.catalog.is_current and bool(serving.settings)
                if is_kept:
                    self._generations.set_previous(serving)
                self._generations.set_current(new)
                index.left_to_rebuild = self.tracker.progress if new.catalog.is_changing else None
                index.set(new)
        except BaseException:
            new.destroy()
            raise
        index.corrupt = index.damaged_keywords = None
        log.info("a new index serves: %s", new.name)
        if is_kept:
            serving.mirror.close()
            with index.changing:
                before, self._previous.generation = self._previous.generation, serving
            if before is not None:
                before.destroy()
        else:
            serving.close()

    def _can_copy(self, serving: Generation | None) -> bool:
        if serving is None or not (self._recipe.matches(serving) and serving.catalog.is_current):
            return False
        return serving.catalog.meta("commit") is not None and not serving.catalog.unfinished

    def _estimate(self, serving: Generation | None, *, copies: bool, embeds: bool) -> Estimate:
        head = self._index.repository.head()
        text_bytes = sum(file.size for file in self._index.repository.pages(head).values()) if head else 0
        embeds = embeds or serving is None or not self._recipe.matches(serving)  # other chunks have other texts
        place = self._generations.data_dir
        return estimate(serving, text_bytes, self._recipe.embedder, embeds=embeds, copies=copies, place=place)

    def _fill(self, new: Generation, serving: Generation, *, is_continued: bool) -> bool:
        """Bring a generation to HEAD, or only its words; return whether it has all vectors that the model can compute."""
        has_vectors = self._recipe.matches_vectors(serving)
        previous = serving.catalog if has_vectors and not self._embeds_all else None
        may_serve_early = not has_vectors and not self._gate.read_queries()
        plan = self.indexer.plan(new.catalog, retry_unfinished=is_continued, previous=previous)
        while plan is not None:
            result = self.indexer.sync(new, plan, self.tracker.progress, should_yield=lambda: may_serve_early)
            if may_serve_early and not result.is_whole and new.catalog.stored_commit:
                return False
            plan = self.indexer.plan(new.catalog, previous=previous)
        return True

    def _copy(self, serving: Generation) -> Generation | None:
        if not self.tracker.status.copies:
            return None
        try:
            new = self._generations.copy(serving)
        except CatalogCorruptError as error:
            log.warning("the index is built again from the pages, because a copy of it is not sound: %s", error)
            self.tracker.update(copies=False)
            return None
        counts = new.catalog.counts()
        self.tracker.progress.reset(counts.pages + counts.files, counts.chunks)
        return new

    def _check_quality(self, new: Generation, serving: Generation) -> None:
        queries = self._gate.read_queries()
        is_alternative = serving.catalog.is_current  # otherwise it cannot follow HEAD
        found = self._gate.compare(serving, new, queries) if queries and is_alternative else None
        if found is None:
            return
        before, after = found
        changes = before.semantic_recall, after.semantic_recall, before.mrr, after.mrr
        self.tracker.update(recall=Recall(before.recall, after.recall, *changes))
        worse = fall(before, after)
        if worse is not None:
            reason = (
                f"the new index finds less: {worse}; the old index continues to serve. To use the new one anyway, unset "
                "SEMANTIC_EVAL_QUERIES"
            )
            with suppress(CatalogError):
                serving.catalog.set_meta(_REFUSED, f"{self._recipe.fingerprint} {reason}")
            raise RebuildRefusedError(reason)
