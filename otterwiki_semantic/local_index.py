"""The index in the process that owns it: the model, the generations, the scheduler, and the answers."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from otterwiki_semantic import __version__
from otterwiki_semantic.chunking import Profile
from otterwiki_semantic.config import Settings
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.embedding.minilm_model import MiniLM
from otterwiki_semantic.embedding.passages import passages_fingerprint
from otterwiki_semantic.errors import (
    CatalogDamagedError,
    CatalogError,
    IndexUnavailableError,
    PageUnknownError,
    RebuildRunningError,
    SemanticError,
    VectorStoreError,
)
from otterwiki_semantic.generations import Generation, Generations, fingerprint
from otterwiki_semantic.indexer import Indexer, Stopped
from otterwiki_semantic.jobs import Jobs
from otterwiki_semantic.progress import ProgressTracker
from otterwiki_semantic.query import parse_query
from otterwiki_semantic.records import (
    Answer,
    Freshness,
    IndexStatus,
    RebuildState,
    RebuildStatus,
    RelatedPages,
    SearchOptions,
)
from otterwiki_semantic.related import related_pages
from otterwiki_semantic.repository import Repository
from otterwiki_semantic.searcher import search_passages

_QUERY_CACHE = 512
_CLOSE_SECONDS = 8.0
_LONGEST_RETRY_SECONDS = 60.0
_SAME = 1e-3
"""Cosine distance below which two vectors are one, rounding apart."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class LocalIndex:
    """An `IndexService` that answers by itself. Only the process that holds the data directory's lock may make one."""

    def __init__(self, settings: Settings) -> None:
        self._profile = Profile()
        self.embedder = MiniLM(threads=settings.threads or None)
        self._repository = Repository(settings.repository)
        self._generations = Generations(settings.data_dir)
        self._serving: Generation | None = None
        self._stopping = threading.Event()
        self._indexer = Indexer(self._repository, self.embedder, self._profile, self._stopping.is_set)
        self._sync_progress = ProgressTracker()
        self._rebuild_progress = ProgressTracker()
        self._rebuild = RebuildStatus()
        self._rebuild_lock = threading.Lock()
        self._syncing = False
        self._changing = threading.Lock()
        """Held by whoever syncs the serving generation or puts another in its place."""
        self._replaced: Generation | None = None
        """The generation that was last found damaged."""
        self._failures = 0
        self._last_sync: str | None = None
        self._last_error: str | None = None
        self._query_vector = lru_cache(_QUERY_CACHE)(self._embed_query)
        self._pending_between = lru_cache(1)(self._count_pending)
        self._jobs = Jobs(self._sync, settings.sync_interval)

    def start(self) -> None:
        """Open the serving generation, if there is one, and begin to keep it equal to HEAD, in the background."""
        self._serving = self._open_current()
        self._jobs.start()

    def close(self) -> None:
        """Stop the work between two steps and close the files."""
        self._stopping.set()
        self._jobs.stop(_CLOSE_SECONDS)
        if self._serving is not None:
            self._serving.close()

    # Questions

    def search(self, queries: Sequence[str], options: SearchOptions) -> list[Answer]:
        """See `IndexService`."""
        parsed = [parse_query(query) for query in queries]
        vectors, failure = self._query_vectors([query.text for query in parsed])

        def answers(generation: Generation) -> list[Answer]:
            index = self._freshness(generation)
            found = [
                search_passages(generation, query, vector, options, self.embedder.calibration)
                for query, vector in zip(parsed, vectors, strict=True)
            ]
            if any(each.is_damaged for each in found):
                self._replace(generation)
            return [
                Answer(asked, each.hits, index, each.confident, failure or each.degraded, each.facets)
                for asked, each in zip(queries, found, strict=True)
            ]

        found = self._ask(answers)
        if found is None:
            index = self._freshness(None)
            found = [Answer(query, (), index) for query in queries]
        return found

    def related(self, path: str, n: int) -> RelatedPages:
        """See `IndexService`."""

        def pages(generation: Generation) -> RelatedPages:
            known = generation.catalog.lookup.path_like(path)
            if known is None:
                raise PageUnknownError(f"the index has no page {path!r}")
            return RelatedPages(known, related_pages(generation, known, n), self._freshness(generation))

        found = self._ask(pages)
        if found is None:
            raise PageUnknownError(f"the index has no page {path!r} yet: it is being built")
        return found

    def _ask(self, question: Callable[[Generation], T]) -> T | None:
        """Give what the serving generation answers, None if there is none; one that fails or is replaced is asked again."""
        generation = self._serving
        while generation is not None:
            store = generation.vectors
            try:
                with generation.catalog.snapshot():
                    return question(generation)
            except VectorStoreError as error:
                if generation is self._serving and not self._stopping.is_set():
                    log.warning("%s; filling it again from the catalog", error)
                    generation.reset_vectors(store)
                    self._jobs.wake()
                    continue
                failure: SemanticError = error
            except CatalogError as error:
                failure = error
            successor = self._serving
            if successor is None or successor is generation:
                if not self._stopping.is_set():
                    self._jobs.wake()
                raise IndexUnavailableError(f"the index is being repaired: {failure}") from failure
            generation = successor
        return None

    def status(self) -> IndexStatus:
        """See `IndexService`."""
        generation = self._serving
        index = self._freshness(generation)
        counts = generation.catalog.counts() if generation else None
        is_whole = generation is not None and index.commit == index.head and not generation.is_refilling
        return IndexStatus(
            status="error" if self._last_error else "ready" if is_whole else "indexing",
            index=index,
            pages=counts.pages if counts else 0,
            chunks=counts.chunks if counts else 0,
            vectors=counts.vectors if counts else 0,
            model=self.embedder.name,
            generation=generation.name if generation else None,
            collection=generation.vectors.name if generation else None,
            progress=self._sync_progress.snapshot(),
            rebuild=self._rebuild_status(),
            last_sync=self._last_sync,
            last_error=self._last_error,
            embedded_texts=self._indexer.embedded_texts,
            owner_pid=os.getpid(),
            version=__version__,
        )

    def reindex(self) -> RebuildStatus:
        """See `IndexService`."""
        with self._rebuild_lock:
            if self._rebuild.state is RebuildState.RUNNING:
                raise RebuildRunningError(f"a rebuild has been running since {self._rebuild.started}")
            self._rebuild = RebuildStatus(RebuildState.RUNNING, started=_now())
            self._rebuild_progress.begin((), 0)
        self._jobs.run_once(self._run_rebuild)
        return self._rebuild_status()

    def notify(self) -> None:
        """See `IndexService`."""
        self._jobs.wake()

    def _query_vectors(self, queries: Sequence[str]) -> tuple[Sequence[Matrix | None], str | None]:
        """Give the vectors of queries, or none of them and the reason."""
        try:
            return [self._query_vector(query) for query in queries], None
        except Exception as error:
            log.exception("a query could not be embedded: %s", error)
            return [None] * len(queries), f"the embedding model failed, the answer is by words alone: {error}"

    def _embed_query(self, query: str) -> Matrix:
        vector: Matrix = self.embedder.embed_queries([query])[0]
        return vector

    def _freshness(self, generation: Generation | None) -> Freshness:
        head = self._repository.head()
        commit = generation.catalog.meta("commit") if generation else None
        if head == commit:
            return Freshness(commit, head, 0)
        if self._syncing and self._sync_progress.snapshot().pages_total:
            return Freshness(commit, head, self._sync_progress.pages_left)
        return Freshness(commit, head, self._pending_between(generation, commit, head))

    def _count_pending(self, generation: Generation | None, _commit: str | None, head: str | None) -> int:
        if generation is None:
            return len(self._repository.pages(head)) if head else 0
        changed, gone = self._indexer.difference(generation.catalog, head)
        return len(changed) + len(gone)

    def _replace(self, damaged: Generation) -> None:
        """Build a new generation beside one whose words are damaged, once; it goes on serving by meaning meanwhile."""
        if self._replaced is not damaged and not self._stopping.is_set():
            self._replaced = damaged
            with suppress(RebuildRunningError):
                self.reindex()

    def _rebuild_status(self) -> RebuildStatus:
        with self._rebuild_lock:
            return replace(self._rebuild, progress=self._rebuild_progress.snapshot())

    # Keeping the index equal to HEAD

    def _sync(self) -> None:
        """The scheduler's job: whatever goes wrong is logged, shown in the status, and tried again after a growing pause."""
        self._syncing = True
        try:
            with self._changing:
                self._sync_serving(self._sync_progress)
            self._last_sync, self._last_error, self._failures = _now(), None, 0
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 - the job's outermost frame: nothing above would tell anybody
            self._fail(error)
        finally:
            self._syncing = False
            self._pending_between.cache_clear()

    def _sync_serving(self, progress: ProgressTracker) -> None:
        generation = self._serving or self._first_generation()
        store = generation.vectors
        try:
            if self._indexer.sync(generation, progress):
                counts = generation.catalog.counts()
                log.info("index equals %s: %d pages, %d chunks", generation.catalog.meta("commit"), counts.pages, counts.chunks)
            else:
                self._indexer.flush(generation)
        except VectorStoreError:
            if not self._stopping.is_set():
                generation.reset_vectors(store)
            raise
        except CatalogDamagedError:
            if not self._stopping.is_set():
                self._serving = None
                generation.destroy()
            raise

    def _fail(self, error: Exception) -> None:
        if self._stopping.is_set():
            return
        self._failures += 1
        self._last_error = str(error) or type(error).__name__
        unforeseen = None if isinstance(error, SemanticError | OSError) else error
        log.error("the index could not be brought up to date: %s", error, exc_info=unforeseen)
        self._jobs.retry_in(min(0.5 * 2**self._failures, _LONGEST_RETRY_SECONDS))

    def _open_current(self) -> Generation | None:
        """Open the serving generation; a build is started beside one that was made another way, if it can serve meanwhile."""
        generation = self._generations.current()
        try:
            if generation is not None and generation.recipe == self._recipe:
                generation.verify_vectors()
            elif generation is not None:
                log.info("the index was made with another model and is built again")
                generation.close()
                generation = None
        except CatalogDamagedError as error:
            log.warning("the index is damaged and is built again: %s", error)
            generation = None
        self._generations.remove_others(generation)
        if generation is None:
            return None
        if generation.fingerprint != fingerprint(self.embedder, self._profile):
            log.info("the index was made another way: building a new one beside it")
            self._rebuild = RebuildStatus(RebuildState.RUNNING, started=_now())
            self._jobs.run_once(self._run_rebuild)
        return generation

    @property
    def _recipe(self) -> str:
        return passages_fingerprint(self.embedder, self._profile.heading_weight)

    def _first_generation(self) -> Generation:
        """Make the generation of an index that has none; it serves at once and fills up while it does."""
        generation = self._generations.create(self.embedder, self._profile)
        self._generations.serve(generation)
        self._serving = generation
        return generation

    # Rebuilding

    def _run_rebuild(self) -> None:
        try:
            self._build_beside()
            self._end_rebuild(RebuildState.DONE)
        except Stopped:
            self._end_rebuild(RebuildState.FAILED, "the index process was stopped; the old index goes on serving")
        except Exception as error:
            log.exception("the rebuild failed, the old index goes on serving: %s", error)
            self._end_rebuild(RebuildState.FAILED, str(error))

    def _end_rebuild(self, state: RebuildState, error: str | None = None) -> None:
        with self._rebuild_lock:
            self._rebuild = replace(self._rebuild, state=state, finished=_now(), error=error)

    def _build_beside(self) -> None:
        """Build a new generation, check it, and let it take the serving one's place. An index not built yet is just built."""
        with self._changing:
            serving = self._serving
            if serving is None or serving.catalog.meta("commit") is None:
                self._sync_serving(self._rebuild_progress)
                return
        new = self._generations.create(self.embedder, self._profile)
        try:
            donor = serving.catalog if serving.recipe == self._recipe else None
            while self._indexer.sync(new, self._rebuild_progress, donor):
                pass
            _check(new)
            with self._changing:
                self._generations.serve(new)
                old, self._serving = self._serving, new
        except BaseException:
            new.destroy()
            raise
        if old is not None:
            old.destroy()
        log.info("a new index serves: %s", new.name)
        self._jobs.wake()


def _check(generation: Generation) -> None:
    """Refuse a generation that ChromaDB does not hold whole, or cannot search."""
    vectors, found = generation.catalog.counts().vectors, generation.vectors.count()
    if generation.is_refilling or found != vectors:
        raise VectorStoreError(f"the new index is not whole: {vectors} vectors, of which ChromaDB holds {found}")
    probe = generation.catalog.any_vector()
    if probe is None:
        return
    nearest = min(generation.vectors.query(probe.embedding, 10).values(), default=2.0)
    if nearest > _SAME:
        raise VectorStoreError(f"the new index finds nothing nearer than {nearest:.3f} to its own vector {probe.id}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
