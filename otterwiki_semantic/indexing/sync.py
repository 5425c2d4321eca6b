"""Bring an index to the repository's HEAD: compare two trees, and index the differences.

Neither events nor their order matter. After several pushed commits, a forced push, a rename, a crash or a missed event, the
pages of the catalog are always made equal to those of the commit.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from otterwiki_semantic.content import PageFile, Repository
from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.content.pages import parent_path
from otterwiki_semantic.core.records import Indexed, LastChange, Page
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Telemetry
from otterwiki_semantic.embedding import vector_id, words_only_id
from otterwiki_semantic.indexing.embedding_stage import EmbeddingStage, LocatedChunks
from otterwiki_semantic.indexing.page_loader import PageLoader
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.search import note_scale
from otterwiki_semantic.storage import Catalog, Generation, StoredVector, resolve_wiki_links

_PAGES_PER_BATCH, _CHUNKS_PER_BATCH, _MAX_BATCHES_AT_ONCE = 64, 256, 16
"""The size of the first batch to store, and the largest multiple of it. Each batch is twice as large as the one before, because
a transaction writes most blocks of the indexes again, however few pages it adds."""
_TEXTS_PER_STEP = 64
_MAX_VECTORS, _MAX_STORING_SECONDS = 512, 5.0
"""The most vectors to store at once, and the seconds after which fewer are stored, as a crash loses what is not stored."""
_PAGES_PER_STEP = 64
_STEPS_AHEAD = 1
"""Steps that wait for the model: enough to keep it busy while vectors are stored."""
_BYTES_AT_ONCE = 250_000
"""Pages of up to this many bytes, and at most one batch, are embedded before they are stored; this takes some seconds."""
_TIMED_TEXTS = 16
"""Texts embedded before the words of many pages are stored, to estimate the remaining time."""
_MAX_OPENED = 100
_CHUNKS_FOR_SCALE = 512
"""Chunks after which similarities can be scaled; at the end, the scale is computed from all of them."""

log = logging.getLogger(__name__)


class Stopped(Exception):  # noqa: N818 - a request, not an error
    """The work was asked to stop; finished work is kept, and the next sync continues from there."""


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """The changes that make an index equal to a commit."""

    head: str | None
    changed: Sequence[PageFile]
    removed: Sequence[str]
    last_changes: Mapping[str, LastChange]
    """New or changed entries only."""
    profile: Profile
    embed: bool = True
    previous: Catalog | None = None
    """Another catalog with vectors of the same model, which are copied instead of embedded."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The result of a sync."""

    pages: int
    chunks: int
    embedding_seconds: float
    is_whole: bool = True
    """Whether the index equals the plan's commit; if not, another sync must follow."""


def changed_pages(repository: Repository, catalog: Catalog, head: str | None) -> tuple[list[PageFile], list[str]]:
    """Return the pages to index, smallest first and attached files last, and the pages to remove, to equal a commit."""
    changed, removed, attached = changed_blobs(repository, catalog, head)
    files = repository.page_files(changed, attached)
    return sorted(files, key=lambda file: (file.kind is not None, file.size, file.path)), removed


def changed_blobs(
    repository: Repository, catalog: Catalog, head: str | None
) -> tuple[dict[str, str], list[str], Container[str]]:
    """Return the blob ids of the pages to index, the pages to remove, and which of all are attached files."""
    equals = catalog.commit
    changes = repository.changes(equals, head) if equals and head else None
    if changes is not None:
        return *changes, ()
    pages = repository.page_blobs(head) if head else {}
    attached = repository.attachment_blobs(head, pages) if head else {}
    blobs, known = pages | attached, catalog.pages.blobs() | catalog.pages.excluded_blobs()
    others = {path: blob for path, blob in blobs.items() if known.get(path) != blob}
    return others, sorted(known.keys() - blobs.keys()), attached


class Indexer:
    """Index the pages of one repository.

    Pages are read, chunked and stored in batches, after which keyword search finds them. Missing vectors are embedded
    afterwards, for the most important pages first. A change of few pages appears with its vectors.
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
        self.opened = deque[str](maxlen=_MAX_OPENED)
        """The pages opened most recently, which are embedded first."""
        self.changed_pages = 0

    def leave_out_excluded(self, catalog: Catalog) -> None:
        """Remove pages that are excluded since the last sync; what else changes with the rules is left to the next one."""
        patterns = self._repository.exclude
        if catalog.rule("exclude") != patterns:
            head = self._repository.head()
            excluded = self._repository.excluded_pages(head) if head else frozenset[str]()
            catalog.set_rule("exclude", patterns, sorted(excluded & catalog.pages.blobs().keys()))
        rule = self._repository.attachments.key
        if catalog.is_current and catalog.rule("attachments") != rule:
            catalog.invalidate_pages(sorted(catalog.pages.file_states()))  # the same file may have another text
            catalog.set_rule("attachments", rule)
        order = ("page first",) if self._repository.notation.is_page_first else ()
        if catalog.is_current and catalog.rule("wikilinks") != order:  # the same page may have other links
            catalog.invalidate_pages(sorted(catalog.pages.blobs().keys() - catalog.pages.file_states().keys()))
            catalog.set_rule("wikilinks", order)

    def plan(
        self, catalog: Catalog, *, embed: bool = True, retry_unfinished: bool = False, previous: Catalog | None = None
    ) -> SyncPlan | None:
        """Return the changes that bring a catalog to HEAD; None without any, unless unfinished pages are retried."""
        self.leave_out_excluded(catalog)
        head, commit, is_changing = self._repository.head(), catalog.meta("commit"), catalog.is_changing
        if head == commit and not is_changing and not (retry_unfinished and catalog.unfinished):
            return None
        recent = self._repository.changes_since(commit, head) if head and commit and not is_changing else None
        changes = self._repository.last_changes(head) if head and recent is None else recent or {}
        no_page_differs = recent is not None and not recent
        changed, removed = ([], []) if no_page_differs else changed_pages(self._repository, catalog, head)
        return SyncPlan(head, changed, removed, changes, self._recipe.profile, embed, previous)

    def sync(
        self,
        generation: Generation,
        plan: SyncPlan,
        tracker: ProgressTracker,
        on_stored: Callable[[], None] | None = None,
        should_yield: Callable[[], bool] | None = None,
    ) -> SyncResult:
        """Carry out a plan. Each page appears or disappears as a whole; ChromaDB is filled later.

        `on_stored` is called once keyword search finds all pages. If HEAD changes while attached files are read or chunks are
        embedded, or `should_yield` returns true, the sync ends early and another one must follow. Raises errors of git and the
        catalog; `Stopped` between steps.
        """
        catalog = generation.catalog
        pages, seconds = self.changed_pages, self.embedding.seconds
        with catalog.bulk_writes():
            is_whole = self._store_pages(generation, plan, tracker)
        if is_whole and on_stored is not None:
            on_stored()
        is_whole = is_whole and (not plan.embed or self._embed_pending(generation, plan, tracker, should_yield))
        catalog.vectors.collect_garbage()
        if is_whole:
            if plan.embed:
                self._note_scale(generation, plan)
            catalog.end_change(plan.head)
        chunks = tracker.snapshot().chunks_done
        return SyncResult(self.changed_pages - pages, chunks, self.embedding.seconds - seconds, is_whole)

    def _store_pages(self, generation: Generation, plan: SyncPlan, tracker: ProgressTracker) -> bool:
        """Read and store pages, then attached files; return False if another sync must follow."""
        catalog = generation.catalog
        tracker.begin(plan.changed, len(plan.removed), *self._done_before(catalog))
        self.embedding.begin(plan.profile.heading_weight, generation.vector_fingerprint)
        catalog.begin_change(plan.head)
        if plan.removed:
            catalog.remove_pages(plan.removed)
            self.changed_pages += len(plan.removed)
        are_few = len(plan.changed) <= _PAGES_PER_BATCH and sum(file.size for file in plan.changed) <= _BYTES_AT_ONCE
        pages = [file for file in plan.changed if not file.kind]
        for number, batch in enumerate(_batched(self._read(pages, catalog, plan, tracker))):
            at_once = sys.maxsize if are_few else _TIMED_TEXTS if number == 0 else 0
            self._store(batch, generation, plan, tracker, at_once if plan.embed else 0)
        files = self._files_to_read(catalog, plan)
        read = 0
        for batch in _batched(self._until_head_changes(self._read(files, catalog, plan, tracker), plan)):
            self._store(batch, generation, plan, tracker, sys.maxsize if are_few and plan.embed else 0)
            read += len(batch)
        if read < len(files):
            return False
        if files and self._repository.texts is not None:
            self._repository.texts.prune({*catalog.pages.blobs().values(), *catalog.pages.excluded_blobs().values()})
        if not self._repository.notation.is_wiki:
            with catalog.write() as connection:
                resolve_wiki_links(connection)
        catalog.set_last_changes(plan.last_changes)
        catalog.set_meta("stored", plan.head)
        return True

    def _until_head_changes(self, pages: Iterator[Page], plan: SyncPlan) -> Iterator[Page]:
        for page in pages:
            yield page
            if self._repository.head() != plan.head:
                return

    def _done_before(self, catalog: Catalog) -> tuple[int, int]:
        lacking = len(catalog.vectors.pending_pages()) if catalog.is_changing else 0
        if not lacking:
            return 0, 0
        counts = catalog.counts()
        return counts.pages + counts.files - lacking, counts.chunks - catalog.vectors.count_pending()

    def _read(self, files: Sequence[PageFile], catalog: Catalog, plan: SyncPlan, tracker: ProgressTracker) -> Iterator[Page]:
        changes = {**catalog.pages.last_changes([file.path for file in files]), **plan.last_changes}
        for file, page in zip(files, self._loader.load(files, plan.profile), strict=True):
            self.check_stop()
            if page.problem:
                log.warning("the page %s: %s", page.path, page.problem)
            tracker.page_read(file.size, len(page.chunks))
            indexed = page.indexed
            if file.kind:
                (indexed,) = catalog.pages.states([parent_path(file.path)]).values()
            yield replace(page, indexed=indexed, last_change=changes.get(file.path))

    def _files_to_read(self, catalog: Catalog, plan: SyncPlan) -> list[PageFile]:
        """Return the changed files, and files whose page changed so that they must be indexed differently."""
        changed = [file for file in plan.changed if file.kind]
        rule = self._repository.attachments
        if not rule.kinds or len(changed) == len(plan.changed):
            return changed
        pages = {file.path for file in plan.changed if not file.kind}
        excluded = {path: Indexed.NOT for path in catalog.pages.excluded_blobs() if rule.kind_of(path)}
        states = {path: state for path, state in (catalog.pages.file_states() | excluded).items() if parent_path(path) in pages}
        wanted = catalog.pages.states([parent_path(path) for path in states])
        others = {path for path, state in states.items() if state is not wanted[parent_path(path)]}
        others -= {file.path for file in changed}
        if not others or plan.head is None:
            return changed
        blobs = {path: blob for path, blob in self._repository.attachment_blobs(plan.head).items() if path in others}
        return [*changed, *self._repository.page_files(blobs, blobs)]

    def _store(
        self, pages: Sequence[Page], generation: Generation, plan: SyncPlan, tracker: ProgressTracker, most_embedded: int
    ) -> None:
        """Store pages with the known vectors; up to a limit, missing ones are embedded first."""
        catalog, vectors = generation.catalog, list[list[str]]()
        for page in pages:
            identify = words_only_id if page.indexed is Indexed.WORDS_ONLY else vector_id
            vectors.append([identify(chunk.text) for chunk in page.chunks])
        chunks = {
            vector: (page.path, chunk)
            for page, of_page in zip(pages, vectors, strict=True)
            for chunk, vector in zip(page.chunks, of_page, strict=True)
            if page.indexed is Indexed.FULLY
        }
        missing: Sequence[str] = catalog.vectors.missing(chunks)
        if plan.previous is not None:
            known = plan.previous.vectors.get(missing)
            catalog.vectors.add([StoredVector(vector, known[vector]) for vector in known])
            missing = [vector for vector in missing if vector not in known]
        tracker.chunks_embedded(sum(map(len, vectors)) - len(missing))
        embedded = missing[:most_embedded]
        for start in range(0, len(embedded), _TEXTS_PER_STEP):
            step = embedded[start : start + _TEXTS_PER_STEP]
            self._embed({vector: chunks[vector] for vector in step}, catalog.vectors.add, tracker)
        self.check_stop()
        generation.mirror.expect_more()
        catalog.put_pages(zip(pages, vectors, strict=True))
        self.changed_pages += len(pages)
        lacking = set(catalog.vectors.missing(missing) if embedded else missing)
        tracker.pages_stored(len(pages), lacking=sum(not lacking.isdisjoint(of_page) for of_page in vectors))

    def _embed_pending(
        self, generation: Generation, plan: SyncPlan, tracker: ProgressTracker, should_yield: Callable[[], bool] | None
    ) -> bool:
        """Embed the chunks that lack vectors, the first of every page first; return False if another sync must follow."""
        catalog, waiting = generation.catalog, deque[Future[None]]()
        batch = _VectorBatch(catalog, tracker)
        pages = _most_important_first(catalog.vectors.pending_pages())
        if pages:
            generation.mirror.expect_more()
        tracker.begin_embedding(len(pages), catalog.vectors.count_pending())
        executor, is_scaled = ThreadPoolExecutor(1, "embedding-steps"), False
        try:
            for chunks, pages_done in _steps(catalog, pages, self.opened):
                waiting.append(executor.submit(self._embed, chunks, partial(batch.add, pages=pages_done), tracker))
                if len(waiting) > _STEPS_AHEAD:
                    waiting.popleft().result()
                if self.embedding.has_given_up:
                    break
                if self._repository.head() != plan.head or (should_yield and should_yield()):
                    return False
                if batch.stored >= _CHUNKS_FOR_SCALE and not is_scaled:
                    self._note_scale(generation, plan)
                    is_scaled = True
            for step in waiting:
                step.result()
        finally:
            executor.shutdown(cancel_futures=True)
            batch.store()
        tracker.end_embedding(len(catalog.vectors.pending_pages()))
        return True

    def _embed(self, chunks: LocatedChunks, store: Callable[[Sequence[StoredVector]], None], tracker: ProgressTracker) -> None:
        start = time.monotonic()
        store(self.embedding.embed(chunks))
        tracker.chunks_embedded(len(chunks), time.monotonic() - start)

    def _note_scale(self, generation: Generation, plan: SyncPlan) -> None:
        if not (self._recipe.embedder.is_calibrated or self.embedding.is_resting):
            note_scale(generation, self._recipe.embedder, plan.profile.heading_weight)

    def check_stop(self) -> None:
        """Raise `Stopped` if the work must stop."""
        if self._should_stop():
            raise Stopped


class _VectorBatch:
    """Vectors to store in one transaction. Each batch is twice as large as the one before, as with pages."""

    def __init__(self, catalog: Catalog, tracker: ProgressTracker) -> None:
        self._catalog, self._tracker = catalog, tracker
        self._vectors: list[StoredVector] = []
        self._pages = 0
        self._size, self._since = _TEXTS_PER_STEP, time.monotonic()
        self.stored = 0
        """The number of vectors stored so far."""

    def add(self, vectors: Sequence[StoredVector], pages: int) -> None:
        """Add vectors, which complete some pages, and store the batch if it is large or old enough."""
        self._vectors += vectors
        self._pages += pages
        if len(self._vectors) >= self._size or time.monotonic() - self._since >= _MAX_STORING_SECONDS:
            self.store()

    def store(self) -> None:
        """Store the batch, count its pages as embedded, and begin the next one."""
        if self._vectors:
            self._catalog.vectors.add(self._vectors)
        self._tracker.pages_embedded(self._pages)
        self.stored += len(self._vectors)
        self._vectors, self._pages = [], 0
        self._size, self._since = min(2 * self._size, _MAX_VECTORS), time.monotonic()


def _most_important_first(pages: Iterable[tuple[str, int, int]]) -> list[str]:
    """Return the paths of pages (path, time of last change, links to it), alternating between most linked and most recent."""
    facts = sorted(pages)
    by_date, by_links = sorted(facts, key=lambda page: -page[1]), sorted(facts, key=lambda page: -page[2])
    return list(dict.fromkeys(page[0] for page in chain.from_iterable(zip(by_links, by_date, strict=True))))


def _steps(catalog: Catalog, pages: Sequence[str], opened: deque[str]) -> Iterator[tuple[LocatedChunks, int]]:
    """Yield steps of chunks that lack vectors, with the number of pages that each step completes; opened pages come next."""
    recent = deque[str](maxlen=_MAX_VECTORS + (_STEPS_AHEAD + 2) * _TEXTS_PER_STEP)  # their vectors may not be stored yet
    for paths, first, is_end in _groups(pages, opened):
        found = {vector: (chunk.path, chunk) for vector, chunk in catalog.vectors.pending_chunks(paths, first=first)}
        known = set(recent)
        lacking = [vector for vector in found if vector not in known]
        for begin in range(0, len(lacking), _TEXTS_PER_STEP):
            step = {vector: found[vector] for vector in lacking[begin : begin + _TEXTS_PER_STEP]}
            recent += step
            yield step, len(paths) if is_end and begin + _TEXTS_PER_STEP >= len(lacking) else 0


def _groups(pages: Sequence[str], opened: deque[str]) -> Iterator[tuple[Sequence[str], bool, bool]]:
    """Yield pages, whether to embed their first chunks or the remaining ones, and whether they are the last in order."""
    for first in (True, False):
        for start in range(0, len(pages), _PAGES_PER_STEP):
            while opened:
                path = opened.pop()
                yield (path,), True, False
                yield (path,), False, False
            yield pages[start : start + _PAGES_PER_STEP], first, not first


def _batched(pages: Iterable[Page]) -> Iterator[list[Page]]:
    batch: list[Page] = []
    chunks, size = 0, 1
    for page in pages:
        batch.append(page)
        chunks += len(page.chunks)
        if len(batch) >= size * _PAGES_PER_BATCH or chunks >= size * _CHUNKS_PER_BATCH:
            yield batch
            batch, chunks, size = [], 0, min(2 * size, _MAX_BATCHES_AT_ONCE)
    if batch:
        yield batch
