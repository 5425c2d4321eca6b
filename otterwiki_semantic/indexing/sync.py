"""Makes an index equal to the repository's HEAD: compares two trees, and indexes what differs.

It asks neither what happened nor in which order. Several pushed commits, a forced push, a rename, a crash half-way or an event
that was never seen: each time the catalog's map of pages to contents is made equal to the commit's.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from otterwiki_semantic.content import PageFile, Repository
from otterwiki_semantic.content.chunking import BytesAsTokens, Profile, TokenCounter
from otterwiki_semantic.content.markdown import parse, parse_plain
from otterwiki_semantic.content.pages import read_page
from otterwiki_semantic.core.errors import CatalogError, ModelError, ModelUnreachableError, VectorStoreError
from otterwiki_semantic.core.records import Chunk, Document, Page
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, EmbeddingKind, Telemetry
from otterwiki_semantic.embedding import Embedder, embed_passages, vector_fingerprint, vector_id
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.search import note_scale
from otterwiki_semantic.storage import UNFINISHED, Catalog, Generation, StoredVector

_PAGES_PER_BATCH = 64
_CHUNKS_PER_BATCH = 256
_TEXTS_PER_STEP = 64
_BATCHES_AHEAD = 1
"""Batches that are read and wait to be embedded or stored: enough to keep the model busy, few in memory."""
_ROWS, _ROWS_WHILE_ASKED = 100, 16
"""Vectors of one write to ChromaDB, which holds the interpreter about a millisecond a row, and so every search.

While somebody searches, writes are small, and pause for as long as they took.
"""
_IDS_PER_DELETE = 200
_MOST_FAILURES = 3
LEFT_ALONE_SECONDS = 30.0
"""How long a model that cannot be reached is not asked again."""

log = logging.getLogger(__name__)


class Stopped(Exception):  # noqa: N818 - a request, not an error
    """The work was asked to stop; what is done is kept, and the next sync goes on from there."""


class _Batch:
    """Pages on their way into the index: the ids of their vectors, where each stands, and the steps that embed them."""

    def __init__(self, pages: list[Page]) -> None:
        self.pages = pages
        self.ids = [[vector_id(chunk.text) for chunk in page.chunks] for page in pages]
        self.standing = {
            vector: (page.path, chunk)
            for page, vectors in zip(pages, self.ids, strict=True)
            for chunk, vector in zip(page.chunks, vectors, strict=True)
        }
        self.known = 0
        self.steps: list[tuple[int, Future[list[StoredVector]]]] = []


def _rows(generation: Generation) -> int:
    return _ROWS_WHILE_ASKED if generation.is_asked else _ROWS


def _keep_finished(batch: _Batch, catalog: Catalog) -> None:
    """Keep the vectors of a batch that are there, for the next sync."""
    for _count, step in batch.steps:
        if not step.cancelled() and step.exception() is None:
            with suppress(CatalogError):  # what went wrong is told already
                catalog.add_vectors(step.result())


class Indexer:
    """Indexes the pages of one repository with one model and one chunk profile.

    A text that the model fails on gets no vector: its page is found by its words, and is `unfinished` until a later sync
    succeeds. After three failures in a row the model is not asked again in the same sync. ChromaDB is given vectors for
    `turn_seconds` at a time: what is left of a great many is left to the next sync or `flush`.
    """

    def __init__(
        self,
        repository: Repository,
        embedder: Embedder,
        profile: Profile,
        should_stop: Callable[[], bool] = lambda: False,
        turn_seconds: float = math.inf,
        watcher: Telemetry = NO_TELEMETRY,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self.profile = profile
        """May be exchanged between two syncs."""
        self._should_stop = should_stop
        self._turn_seconds = turn_seconds
        self._watcher = watcher
        self.embedded_texts = 0
        """Chunks given to the model since this object was made."""
        self.changed_pages = 0
        """Pages indexed or removed since then."""
        self.embedding_seconds = 0.0
        """Time the model took for them."""
        self.model_error: str | None = None
        """Why the model failed in the last sync that asked it; None if it did not."""
        self._failures = 0
        self._recipe: str | None = None
        """What the vectors of this sync are made with."""
        self._unreachable_until = 0.0

    def difference(self, catalog: Catalog, head: str | None) -> tuple[list[PageFile], list[str]]:
        """Give the pages of a commit that the catalog does not hold as they are, smallest first, and those it holds in vain."""
        equals = None if catalog.unfinished else catalog.commit
        changes = self._repository.changes(equals, head) if equals and head else None
        if changes is None:  # every page is compared
            blobs, known = self._repository.blobs(head) if head else {}, catalog.blobs()
            others = {path: blob for path, blob in blobs.items() if known.get(path) != blob}
            changes = others, sorted(known.keys() - blobs.keys())
        changed, gone = changes
        return sorted(self._repository.files(changed), key=lambda file: (file.size, file.path)), gone

    def sync(
        self,
        generation: Generation,
        tracker: ProgressTracker,
        donor: Catalog | None = None,
        *,
        only_words: bool = False,
        finish: bool = False,
        on_head: Callable[[], None] = lambda: None,
    ) -> bool:
        """Make a generation equal to HEAD; tells whether there was anything to do.

        Vectors of the same model are taken over from `donor`, if given. Pages appear and disappear whole. With `only_words`
        nothing is embedded; with `finish` the unfinished pages are indexed again even if HEAD is where it was. `on_head` is
        called when the catalog equals HEAD, before ChromaDB is told: searches compare the catalog's vectors until it is.
        Errors: those of git and the catalog; `Stopped` between two steps.
        """
        catalog = generation.catalog
        head = self._repository.head()
        is_changing = catalog.is_changing
        if head == catalog.meta("commit") and not is_changing and not (finish and catalog.unfinished):
            return False
        times = self._repository.updated(head, None if is_changing else catalog.meta("commit")) if head else {}
        changed, gone = self.difference(catalog, head)
        tracker.begin(changed, len(gone))
        self._failures = 0
        self.model_error = self.model_error if self.model_is_left_alone else None
        self._recipe = generation.recipe
        catalog.begin_change(head)
        if gone:
            catalog.remove_pages(gone)
            self.changed_pages += len(gone)
        times_known = catalog.updated([file.path for file in changed]) | times
        batches = self._batches(changed, tracker, times_known)
        with ThreadPoolExecutor(1, "embedding-batches") as ahead:
            self._index(batches, generation, tracker, donor, ahead, only_words=only_words)
        catalog.settle_vectors()
        catalog.set_updated(times)
        if not (only_words or self._embedder.is_calibrated or self.model_is_left_alone):
            note_scale(generation, self._embedder, self.profile.heading_weight)
        catalog.end_change(head)
        on_head()
        self.flush(generation)
        return True

    def flush(self, generation: Generation) -> None:
        """Tell ChromaDB what it has still to be told, and note its state.

        While it fails, searches look at the catalog's vectors.
        """
        store = generation.vectors
        try:
            generation.verify_vectors()
            end = time.monotonic() + self._turn_seconds
            while time.monotonic() < end and (vectors := generation.vectors_to_store(_rows(generation))):
                self._check_stop()
                start = time.monotonic()
                generation.store_vectors(vectors)
                if generation.is_asked and len(vectors) == _ROWS_WHILE_ASKED:
                    time.sleep(time.monotonic() - start)
            while ids := generation.vectors_to_drop(_IDS_PER_DELETE):
                self._check_stop()
                generation.drop_vectors(ids)
            generation.end_refilling()
        except VectorStoreError as error:
            self._check_stop()  # a store that was closed fails, too
            generation.store_failed(store, error)
        if not generation.is_refilling:
            generation.note_files()

    def _batches(self, files: Sequence[PageFile], tracker: ProgressTracker, times: Mapping[str, int]) -> Iterator[list[Page]]:
        batch: list[Page] = []
        chunks = 0
        contents = self._repository.read(file.blob for file in files)
        for file, content in zip(files, contents, strict=True):
            self._check_stop()
            page = replace(self._read(file, content), updated=times.get(file.path))
            tracker.page_read(file.size, len(page.chunks))
            batch.append(page)
            chunks += len(page.chunks)
            if len(batch) >= _PAGES_PER_BATCH or chunks >= _CHUNKS_PER_BATCH:
                yield batch
                batch, chunks = [], 0
        if batch:
            yield batch

    def _read(self, file: PageFile, content: bytes) -> Page:
        """Give the page; one that the parser or the tokenizer cannot take is indexed as plain text, and stops no other."""
        ways: tuple[tuple[Callable[[str], Document], TokenCounter], ...] = (
            (parse, self._embedder),
            (parse_plain, self._embedder),
        )
        for parser, counter in ways:
            try:
                return read_page(file.path, file.blob, content, counter, self.profile, parser)
            except ModelError:  # what it fails of is told where it embeds; its tokenizer is not there now
                return read_page(file.path, file.blob, content, BytesAsTokens(), self.profile, parser)
            except Exception as error:
                log.exception("the page %s is indexed as plain text: %s", file.path, error)
        return read_page(file.path, file.blob, content, BytesAsTokens(), self.profile, parse_plain)

    def _index(
        self,
        batches: Iterable[list[Page]],
        generation: Generation,
        tracker: ProgressTracker,
        donor: Catalog | None,
        ahead: Executor,
        *,
        only_words: bool,
    ) -> None:
        """Store one batch of pages while the next ones are read, divided and embedded `ahead`."""
        waiting: deque[_Batch] = deque()
        try:
            for pages in batches:
                batch = _Batch(pages)
                coming = {vector for each in waiting for vector in each.standing}
                missing = self._missing(batch, generation.catalog, donor, coming)
                batch.known = sum(map(len, batch.ids)) - len(missing)
                for start in range(0, 0 if only_words else len(missing), _TEXTS_PER_STEP):
                    step = {vector: batch.standing[vector] for vector in missing[start : start + _TEXTS_PER_STEP]}
                    batch.steps.append((len(step), ahead.submit(self._embed, step)))
                waiting.append(batch)
                if len(waiting) > _BATCHES_AHEAD:
                    self._store(waiting[0], generation, tracker)
                    waiting.popleft()
            while waiting:
                self._store(waiting[0], generation, tracker)
                waiting.popleft()
        except BaseException:
            ahead.shutdown(cancel_futures=True)
            for batch in waiting:
                _keep_finished(batch, generation.catalog)
            raise

    def _missing(self, batch: _Batch, catalog: Catalog, donor: Catalog | None, coming: Set[str]) -> list[str]:
        """Give the vectors of a batch that have to be made: those not in the catalog or the donor, and not on their way."""
        missing = [vector for vector in catalog.missing_vectors(batch.standing) if vector not in coming]
        if donor is not None:
            known = donor.vectors(missing)
            catalog.add_vectors([StoredVector(vector, known[vector]) for vector in known])
            missing = [vector for vector in missing if vector not in known]
        return missing

    def _store(self, batch: _Batch, generation: Generation, tracker: ProgressTracker) -> None:
        """Store a batch once it is embedded."""
        catalog = generation.catalog
        tracker.chunks_embedded(batch.known)
        for count, step in batch.steps:
            catalog.add_vectors(step.result())
            tracker.chunks_embedded(count)
        self._check_stop()
        generation.is_refilling = True  # until ChromaDB is told, once all pages are there
        lacking = set(catalog.missing_vectors(batch.standing))
        catalog.put_pages(
            (page if lacking.isdisjoint(vectors) else replace(page, blob=UNFINISHED), vectors)
            for page, vectors in zip(batch.pages, batch.ids, strict=True)
        )
        self.changed_pages += len(batch.pages)
        tracker.pages_indexed(len(batch.pages))

    def _embed(self, standing: Mapping[str, tuple[str, Chunk]]) -> list[StoredVector]:
        """Give the vectors of texts; if the model fails on them together, of those that it can take one by one."""
        self._check_stop()
        try:
            has_failed = self._failures >= _MOST_FAILURES or self.model_is_left_alone
            return [] if has_failed else self._embed_together(standing)
        except ModelUnreachableError as error:  # none of them can be embedded now
            self.model_error, self._failures = str(error), _MOST_FAILURES
            self._unreachable_until = time.monotonic() + LEFT_ALONE_SECONDS
            log.warning("%s; the pages left are indexed by their words alone", error)
            return []
        except Exception as error:  # noqa: BLE001 - whatever a model raises, the other pages go on
            self.model_error = str(error) or type(error).__name__
        found: list[StoredVector] = []
        for vector, place in standing.items():
            self._check_stop()
            try:
                found += self._embed_together({vector: place})
                self._failures = 0
            except Exception as error:
                self._failures += 1
                self.model_error = f"{place[0]}: {error}"
                unforeseen = None if isinstance(error, ModelError) else error
                log.error("the page %s is indexed by its words alone: %s", place[0], error, exc_info=unforeseen)
                if self._failures >= _MOST_FAILURES:
                    log.error("the model fails; the pages left are indexed by their words alone")
                    break
        return found

    def _embed_together(self, standing: Mapping[str, tuple[str, Chunk]]) -> list[StoredVector]:
        chunks = [chunk for _path, chunk in standing.values()]
        start = time.perf_counter()
        with self._watcher.record_embedding(EmbeddingKind.PASSAGE, len(chunks)):
            embeddings = embed_passages(self._embedder, chunks, self.profile.heading_weight)
        if self._recipe_now != self._recipe:
            raise ModelError(f"{self._embedder.name} is found to be another model than this index is made with")
        self.embedding_seconds += time.perf_counter() - start
        self.embedded_texts += len(chunks)
        return [StoredVector(vector, embedding) for vector, embedding in zip(standing, embeddings, strict=True)]

    @property
    def model_is_left_alone(self) -> bool:
        """Whether the model could not be reached a moment ago, and is not asked now."""
        return time.monotonic() < self._unreachable_until

    @property
    def _recipe_now(self) -> str:
        return vector_fingerprint(self._embedder, self.profile.heading_weight)

    def _check_stop(self) -> None:
        if self._should_stop():
            raise Stopped
