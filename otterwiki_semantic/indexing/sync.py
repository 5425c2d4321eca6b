"""Bring an index to the repository's HEAD: compare two trees, and index what differs.

Neither events nor their order matter. Several pushed commits, a forced push, a rename, a crash in the middle or a missed event:
each time the pages of the catalog are made equal to those of the commit.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from otterwiki_semantic.content import PageFile, Repository
from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.core.records import Indexed, LastChange, Page
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Telemetry
from otterwiki_semantic.embedding import vector_id, words_only_id
from otterwiki_semantic.indexing.embedding_stage import EmbeddingStage, LocatedChunks
from otterwiki_semantic.indexing.page_loader import PageLoader
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.search import note_scale
from otterwiki_semantic.storage import UNFINISHED, Catalog, Generation, StoredVector

_PAGES_PER_BATCH = 64
_CHUNKS_PER_BATCH = 256
_TEXTS_PER_STEP = 64
_BATCHES_AHEAD = 1
"""Batches that wait to be embedded or stored: enough to keep the model busy, few in memory."""

log = logging.getLogger(__name__)


class Stopped(Exception):  # noqa: N818 - a request, not an error
    """The work was asked to stop; what is done is kept, and the next sync continues from there."""


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What makes an index equal to a commit."""

    head: str | None
    changed: Sequence[PageFile]
    """The pages to index, smallest first."""
    removed: Sequence[str]
    last_changes: Mapping[str, LastChange]
    """As far as they are news."""
    profile: Profile
    embed: bool = True
    """Whether missing vectors are embedded."""
    previous: Catalog | None = None
    """Another catalog with vectors of the same model, which are copied instead of embedded."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a sync did."""

    pages: int
    """Pages indexed or removed."""
    chunks: int
    embedding_seconds: float


class _Batch:
    """Pages on their way into the index."""

    def __init__(self, pages: list[Page]) -> None:
        self.pages = pages
        self.vectors = [_vector_ids(page) for page in pages]
        """The vector ids of the chunks of each page."""
        self.chunks = {
            vector: (page.path, chunk)
            for page, vectors in zip(pages, self.vectors, strict=True)
            for chunk, vector in zip(page.chunks, vectors, strict=True)
            if page.indexed is Indexed.FULLY
        }
        """Those that are embedded, by the ids of their vectors, each with the path of its page."""
        self.steps: list[Future[None]] = []
        """What embeds those without a vector."""


def _vector_ids(page: Page) -> list[str]:
    identify = words_only_id if page.indexed is Indexed.WORDS_ONLY else vector_id
    return [identify(chunk.text) for chunk in page.chunks]


def changed_pages(repository: Repository, catalog: Catalog, head: str | None) -> tuple[list[PageFile], list[str]]:
    """Return the pages of a commit that the catalog lacks or has in another version, smallest first; and those to remove."""
    equals = None if catalog.unfinished else catalog.commit
    changes = repository.changes(equals, head) if equals and head else None
    if changes is None:
        blobs, known = repository.page_blobs(head) if head else {}, catalog.blobs() | catalog.excluded_blobs()
        others = {path: blob for path, blob in blobs.items() if known.get(path) != blob}
        changes = others, sorted(known.keys() - blobs.keys())
    changed, removed = changes
    return sorted(repository.page_files(changed), key=lambda file: (file.size, file.path)), removed


class Indexer:
    """Indexes the pages of one repository: reads, chunks, embeds and stores them, in this order, in batches.

    A page with a text that the model fails on is found by its keywords, and is `unfinished` until a later sync succeeds.
    """

    def __init__(
        self,
        repository: Repository,
        recipe: IndexRecipe,
        should_stop: Callable[[], bool] = lambda: False,
        telemetry: Telemetry = NO_TELEMETRY,
        loader: PageLoader | None = None,
    ) -> None:
        self._repository = repository
        self._recipe = recipe
        self._loader = loader or PageLoader(repository, recipe.embedder)
        self._should_stop = should_stop
        self.embedding = EmbeddingStage(recipe.embedder, self.check_stop, telemetry)
        self.changed_pages = 0
        """Pages indexed or removed since this object was created."""

    def leave_out_excluded(self, catalog: Catalog) -> None:
        """Remove the pages from a catalog that other patterns exclude than when it was last synced.

        Pages that are no longer excluded are left to the next sync. Errors: those of git and the catalog.
        """
        patterns = self._repository.exclude
        if catalog.exclude != patterns:
            head = self._repository.head()
            excluded = self._repository.excluded_pages(head) if head else frozenset[str]()
            catalog.set_exclude(patterns, sorted(excluded & catalog.blobs().keys()))

    def plan(
        self, catalog: Catalog, *, embed: bool = True, retry_unfinished: bool = False, previous: Catalog | None = None
    ) -> SyncPlan | None:
        """Return what makes a catalog equal to HEAD; None if it is, unless unfinished pages are to be retried.

        Errors: those of git and the catalog.
        """
        self.leave_out_excluded(catalog)
        head, commit, is_changing = self._repository.head(), catalog.meta("commit"), catalog.is_changing
        if head == commit and not is_changing and not (retry_unfinished and catalog.unfinished):
            return None
        changes = self._repository.last_changes(head, None if is_changing else commit) if head else {}
        changed, removed = changed_pages(self._repository, catalog, head)
        return SyncPlan(head, changed, removed, changes, self._recipe.profile, embed, previous)

    def sync(self, generation: Generation, plan: SyncPlan, tracker: ProgressTracker) -> SyncResult:
        """Carry out a plan. Pages appear and disappear whole; ChromaDB is filled later, by `VectorMirror.push`.

        Errors: those of git and the catalog; `Stopped` between two steps.
        """
        catalog, embedder = generation.catalog, self._recipe.embedder
        pages, seconds = self.changed_pages, self.embedding.seconds
        tracker.begin(plan.changed, len(plan.removed))
        self.embedding.begin(plan.profile.heading_weight, generation.vector_fingerprint)
        catalog.begin_change(plan.head)
        if plan.removed:
            catalog.remove_pages(plan.removed)
            self.changed_pages += len(plan.removed)
        self._index(generation, plan, tracker)
        catalog.collect_garbage()
        catalog.set_last_changes(plan.last_changes)
        if plan.embed and not (embedder.is_calibrated or self.embedding.is_resting):
            note_scale(generation, embedder, plan.profile.heading_weight)
        catalog.end_change(plan.head)
        chunks = tracker.snapshot().chunks_done
        return SyncResult(self.changed_pages - pages, chunks, self.embedding.seconds - seconds)

    def _index(self, generation: Generation, plan: SyncPlan, tracker: ProgressTracker) -> None:
        """Store pages in batches, each while the next one is read and embedded."""
        catalog, waiting = generation.catalog, deque[_Batch]()
        executor = ThreadPoolExecutor(1, "embedding-batches")
        try:
            for pages in _batched(self._read(catalog, plan, tracker)):
                batch = _Batch(pages)
                missing = self._missing(batch, {vector for other in waiting for vector in other.chunks}, plan, catalog)
                tracker.chunks_embedded(sum(map(len, batch.vectors)) - len(missing))
                for start in range(0, len(missing) if plan.embed else 0, _TEXTS_PER_STEP):
                    chunks = {vector: batch.chunks[vector] for vector in missing[start : start + _TEXTS_PER_STEP]}
                    batch.steps.append(executor.submit(self._embed, chunks, catalog, tracker))
                waiting.append(batch)
                if len(waiting) > _BATCHES_AHEAD:
                    self._store(waiting.popleft(), generation, tracker)
            for batch in waiting:
                self._store(batch, generation, tracker)
        finally:
            executor.shutdown(cancel_futures=True)

    def _read(self, catalog: Catalog, plan: SyncPlan, tracker: ProgressTracker) -> Iterator[Page]:
        """Read the changed pages and divide them into chunks."""
        changes = {**catalog.last_changes([file.path for file in plan.changed]), **plan.last_changes}
        for file, page in zip(plan.changed, self._loader.load(plan.changed, plan.profile), strict=True):
            self.check_stop()
            if page.problem:
                log.warning("the page %s: %s", page.path, page.problem)
            tracker.page_read(file.size, len(page.chunks))
            yield replace(page, last_change=changes.get(file.path))

    def _missing(self, batch: _Batch, pending: set[str], plan: SyncPlan, catalog: Catalog) -> list[str]:
        """Return the vectors that neither the catalog nor the previous one has, and that are not pending."""
        missing = [vector for vector in catalog.missing_vectors(batch.chunks) if vector not in pending]
        if plan.previous is None:
            return missing
        known = plan.previous.get_vectors(missing)
        catalog.add_vectors([StoredVector(vector, known[vector]) for vector in known])
        return [vector for vector in missing if vector not in known]

    def _embed(self, chunks: LocatedChunks, catalog: Catalog, tracker: ProgressTracker) -> None:
        """Embed chunks, and store their vectors at once: they are kept if the sync ends before their pages are stored."""
        catalog.add_vectors(self.embedding.embed(chunks))
        tracker.chunks_embedded(len(chunks))

    def _store(self, batch: _Batch, generation: Generation, tracker: ProgressTracker) -> None:
        """Store a batch once it is embedded; a page that lacks vectors is marked as unfinished."""
        catalog = generation.catalog
        for step in batch.steps:
            step.result()
        self.check_stop()
        generation.mirror.expect_more()
        lacking = set(catalog.missing_vectors(batch.chunks))
        pages = [
            page if lacking.isdisjoint(vectors) else replace(page, blob=UNFINISHED)
            for page, vectors in zip(batch.pages, batch.vectors, strict=True)
        ]
        catalog.put_pages(zip(pages, batch.vectors, strict=True))
        self.changed_pages += len(pages)
        tracker.pages_indexed(len(pages), unfinished=sum(page.blob == UNFINISHED for page in pages))

    def check_stop(self) -> None:
        """Raise `Stopped` if the work is to stop."""
        if self._should_stop():
            raise Stopped


def _batched(pages: Iterable[Page]) -> Iterator[list[Page]]:
    batch: list[Page] = []
    chunks = 0
    for page in pages:
        batch.append(page)
        chunks += len(page.chunks)
        if len(batch) >= _PAGES_PER_BATCH or chunks >= _CHUNKS_PER_BATCH:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch
