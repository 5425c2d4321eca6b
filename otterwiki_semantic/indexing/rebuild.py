"""Builds a generation beside the serving one, checks and judges it, and lets it take the other's place."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from msgspec import structs

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import (
    CatalogCorruptError,
    CatalogError,
    IndexUnavailableError,
    ModelError,
    RebuildRefusedError,
    RebuildRunningError,
    SemanticError,
)
from otterwiki_semantic.core.records import Estimate, RebuildState, RebuildStatus
from otterwiki_semantic.core.remedies import problem
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Failure, Telemetry
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.promotion import check_recall, check_room, check_whole, compared, estimate
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.indexing.sync import Indexer, Stopped
from otterwiki_semantic.storage import Generation, GenerationStore

_AGAIN_SECONDS = 600.0
"""How long a rebuild that was begun by itself and failed is left alone."""
_REFUSED = "refused"

log = logging.getLogger(__name__)


class RebuildJob:
    """One rebuild at a time; `IndexManager` tells it what serves, and takes what it has built."""

    def __init__(
        self,
        repository: Repository,
        generations: GenerationStore,
        way: IndexRecipe,
        should_stop: Callable[[], bool],
        watcher: Telemetry = NO_TELEMETRY,
    ) -> None:
        self._repository = repository
        self._generations = generations
        self._way = way
        self._watcher = watcher
        self.indexer = Indexer(repository, way.embedder, way.profile, should_stop, watcher=watcher)
        self.progress = ProgressTracker()
        self._status = RebuildStatus()
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._failure: Exception | None = None
        self._beside: str | None = None
        """The name of the generation beside which the last rebuild was begun."""

    def status(self) -> RebuildStatus:
        """Give the state of the last rebuild."""
        with self._lock:
            return structs.replace(self._status, progress=self.progress.snapshot())

    def begin(self, serving: Generation | None, *, full: bool) -> None:
        """Note that a rebuild begins, and whether it is `full`: every page is read again, even if nothing has changed.

        Errors: `RebuildRunningError` while one runs, `RebuildRefusedError` without room.
        """
        self._check_is_free()
        copies = not full and self._can_copy(serving)
        # Asks the model, which can take long, and the status has to be told meanwhile.
        wanted = self._estimate(serving, copies=copies)
        check_room(wanted, self._generations.place)
        with self._lock:
            self._check_is_free()
            log.info(
                "a rebuild begins: %d texts to embed, %.0f MB, %.0f s", wanted.texts, wanted.disk_bytes / 1e6, wanted.seconds
            )
            self._status = RebuildStatus(RebuildState.RUNNING, started=now(), estimate=wanted, copies=copies)
            self._beside, self._failure = serving.name if serving else None, None
            self.progress.copied(0, 0)

    def _check_is_free(self) -> None:
        if self._status.state is RebuildState.RUNNING:
            raise RebuildRunningError(f"a rebuild has been running since {self._status.started}")

    def _can_copy(self, serving: Generation | None) -> bool:
        """Whether what would be made of the same pages is what the serving generation has already."""
        if serving is None or serving.fingerprint != self._way.fingerprint or not serving.catalog.is_current:
            return False
        return serving.catalog.meta("commit") is not None and not serving.catalog.unfinished

    def _estimate(self, serving: Generation | None, *, copies: bool) -> Estimate:
        head = self._repository.head()
        text_bytes = sum(file.size for file in self._repository.pages(head).values()) if head else 0
        embeds = serving is None or serving.fingerprint != self._way.fingerprint  # other chunks are other texts, too
        place = self._generations.place
        return estimate(serving, text_bytes, self._way.embedder, embeds=embeds, copies=copies, place=place)

    @property
    def is_running(self) -> bool:
        """Whether a rebuild runs."""
        return self.status().state is RebuildState.RUNNING

    @property
    def may_begin(self) -> bool:
        """Whether a rebuild may begin by itself: none runs, and none has failed lately."""
        return not self.is_running and time.monotonic() >= self._not_before

    def is_outdated(self, serving: Generation) -> bool:
        """Whether a generation was made another way than this one, and is not preferred to what this one makes."""
        return serving.fingerprint != self._way.fingerprint and self.refusal(serving) is None

    def put_off(self, serving: Generation, error: Exception) -> None:
        """Note that a rebuild cannot begin now; by itself it is not tried again for a while."""
        self._beside = serving.name
        self.end(error)

    def refusal(self, serving: Generation) -> str | None:
        """Tell why the index that would be made now does not serve instead of this one."""
        mark, _, reason = (serving.catalog.meta(_REFUSED) or "").partition(" ")
        return reason if mark == self._way.fingerprint else None

    def failure(self, serving: Generation) -> Exception | None:
        """Give what the last rebuild failed of, unless another generation serves since."""
        return self._failure if self._beside == serving.name else None

    def run(self, build: Callable[[], None]) -> Exception | None:
        """Run what was begun, note how it ended, and give what it failed of."""
        try:
            build()
        except Stopped:
            self.end(IndexUnavailableError("the index process was stopped; the old index goes on serving"))
        except SemanticError as error:
            log.warning("the rebuild failed, the old index goes on serving: %s", error)
            self.end(error)
            return error
        except Exception as error:
            log.exception("the rebuild failed, the old index goes on serving: %s", error)
            self.end(error)
            return error
        else:
            self.end()
        return None

    def end(self, error: Exception | None = None) -> None:
        """Note that a rebuild is over, and what it failed of, if it did."""
        if error is not None:
            self._watcher.record_failure(Failure.REBUILD)
        self._not_before = time.monotonic() + _AGAIN_SECONDS
        state = RebuildState.FAILED if error else RebuildState.DONE
        found = problem(error) if error else None
        reason, hint = (found.message, found.hint) if found else (None, None)
        with self._lock:
            self._status = structs.replace(self._status, state=state, finished=now(), error=reason, hint=hint)
            self._failure = error

    def build(self, serving: Generation) -> Generation:
        """Build a generation beside the serving one, and give it when it is whole and good enough.

        If that is made the same way, and sound, it begins as a copy of it, and only what HEAD has changed since is indexed.
        One that is made another way goes on with what an earlier build left that was stopped, or that its model failed.
        """
        self._way.prepare()
        self.indexer.profile = self._way.profile
        is_other = serving.fingerprint != self._way.fingerprint
        left = self._generations.unfinished(self._way.fingerprint, serving) if is_other else None
        new = left or self._copy(serving) or self._generations.create(self._way.embedder, self._way.profile)
        try:
            donor = serving.catalog if self._way.embeds_for(serving) else None
            if left is not None:
                self.indexer.sync(new, self.progress, donor, finish=True)
            while self.indexer.sync(new, self.progress, donor):
                pass
            if left is not None:
                self.indexer.flush(new)
            check_whole(new, serving.catalog.unfinished)
            self._judge(serving, new)
        except BaseException as error:
            if is_other and isinstance(error, Stopped | ModelError):
                new.close()  # its vectors were paid for
            else:
                new.destroy()
            raise
        return new

    def _copy(self, serving: Generation) -> Generation | None:
        """Give a copy of the serving generation; None if the pages have to be read again."""
        if not self._status.copies:
            return None
        try:
            new = self._generations.copy(serving)
        except CatalogCorruptError as error:
            log.warning("the index is built again from the pages, because a copy of it is not sound: %s", error)
            with self._lock:
                self._status = structs.replace(self._status, copies=False)
            return None
        counts = new.catalog.counts()
        self.progress.copied(counts.pages, counts.chunks)
        return new

    def _judge(self, old: Generation, new: Generation) -> None:
        """Let judged questions compare two generations; `RebuildRefusedError` if the new one finds much less."""
        questions = self._way.questions()
        if not questions or not old.catalog.is_current:  # one that cannot follow HEAD is no choice
            return
        found = compared(new, questions, self._way.recalls(old, questions), self._way.recalls(new, questions))
        if found is None:
            return
        with self._lock:
            self._status = structs.replace(self._status, recall=found)
        try:
            check_recall(found, len(questions))
        except RebuildRefusedError as error:
            with suppress(CatalogError):
                old.catalog.set_meta(_REFUSED, f"{self._way.fingerprint} {error}")
            raise


def now() -> str:
    """Give the time as people read it: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
