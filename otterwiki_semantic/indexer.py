"""Makes an index equal to the repository's HEAD: compares two trees, and indexes what differs.

It asks neither what happened nor in which order. Several pushed commits, a forced push, a rename, a crash half-way or an event
that was never seen: each time the catalog's map of pages to contents is made equal to the commit's.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from otterwiki_semantic.catalog import Catalog, StoredVector
from otterwiki_semantic.chunking import Profile
from otterwiki_semantic.embedding import Embedder
from otterwiki_semantic.embedding.passages import embed_passages
from otterwiki_semantic.errors import SemanticError
from otterwiki_semantic.generations import Generation
from otterwiki_semantic.markdown import parse_plain
from otterwiki_semantic.pages import read_page
from otterwiki_semantic.progress import ProgressTracker
from otterwiki_semantic.records import Chunk, Page
from otterwiki_semantic.repository import PageFile, Repository

_PAGES_PER_BATCH = 64
_CHUNKS_PER_BATCH = 256
_TEXTS_PER_STEP = 64
_VECTORS_PER_WRITE = 32
"""Rows of one write to ChromaDB, which holds the interpreter (and so every search) for about half a millisecond a row."""
_IDS_PER_DELETE = 200

log = logging.getLogger(__name__)


class Stopped(Exception):  # noqa: N818 - a request, not an error
    """The work was asked to stop; what is done is kept, and the next sync goes on from there."""


def vector_id(text: str) -> str:
    """Give the id of the vector of a text: a hash of all that is embedded, so that the same text is embedded once."""
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=16).hexdigest()


class Indexer:
    """Indexes the pages of one repository with one model and one chunk profile."""

    def __init__(
        self, repository: Repository, embedder: Embedder, profile: Profile, should_stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._profile = profile
        self._should_stop = should_stop
        self.embedded_texts = 0
        """Chunks given to the model since this object was made."""

    def difference(self, catalog: Catalog, head: str | None) -> tuple[list[PageFile], list[str]]:
        """Give the pages of a commit that the catalog does not hold as they are, smallest first, and those it holds in vain."""
        files = self._repository.pages(head) if head else {}
        known = catalog.blobs()
        changed = [file for file in files.values() if known.get(file.path) != file.blob]
        return sorted(changed, key=lambda file: (file.size, file.path)), sorted(known.keys() - files.keys())

    def sync(self, generation: Generation, tracker: ProgressTracker, donor: Catalog | None = None) -> bool:
        """Make a generation equal to HEAD; tells whether there was anything to do.

        Vectors of the same model are taken over from `donor`, if given. Pages appear and disappear whole, and the generation is
        said to equal the commit only when ChromaDB has every vector. Errors: those of git, the catalog, ChromaDB and the model;
        `Stopped` between two steps.
        """
        catalog = generation.catalog
        head = self._repository.head()
        if head == catalog.meta("commit") and catalog.meta("changing") is None:
            return False
        since = catalog.meta("commit") if catalog.meta("changing") is None else None
        times = self._repository.updated(head, since) if head else {}
        changed, gone = self.difference(catalog, head)
        tracker.begin(changed, len(gone))
        catalog.begin_change(head)
        if gone:
            catalog.remove_pages(gone)
        for pages in self._batches(changed, tracker, times):
            self._index(pages, generation, tracker, donor)
        catalog.settle_vectors()
        self.flush(generation)
        catalog.set_updated(times)
        catalog.end_change(head)
        return True

    def flush(self, generation: Generation) -> None:
        """Tell ChromaDB what it has still to be told."""
        while vectors := generation.catalog.vectors_to_store(_VECTORS_PER_WRITE):
            self._check_stop()
            generation.store_vectors(vectors)
        while ids := generation.catalog.vectors_to_drop(_IDS_PER_DELETE):
            generation.drop_vectors(ids)
        generation.end_refilling()

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
        """Give the page; one that the parser cannot take is indexed as plain text, and does not stop the others."""
        try:
            return read_page(file.path, file.blob, content, self._embedder, self._profile)
        except SemanticError:
            raise
        except Exception as error:
            log.exception("the page %s is indexed as plain text: %s", file.path, error)
            return read_page(file.path, file.blob, content, self._embedder, self._profile, parse=parse_plain)

    def _index(self, pages: list[Page], generation: Generation, tracker: ProgressTracker, donor: Catalog | None) -> None:
        ids = [[vector_id(chunk.text) for chunk in page.chunks] for page in pages]
        standing = {
            vector: (page.path, chunk)
            for page, vectors in zip(pages, ids, strict=True)
            for chunk, vector in zip(page.chunks, vectors, strict=True)
        }
        missing = generation.catalog.missing_vectors(standing)
        if donor is not None:
            known = donor.vectors(missing)
            generation.catalog.add_vectors([StoredVector(vector, known[vector], standing[vector][0]) for vector in known])
            missing = [vector for vector in missing if vector not in known]
        tracker.chunks_embedded(sum(len(page.chunks) for page in pages) - len(missing))
        for start in range(0, len(missing), _TEXTS_PER_STEP):
            self._check_stop()
            step = {vector: standing[vector] for vector in missing[start : start + _TEXTS_PER_STEP]}
            generation.catalog.add_vectors(self._embed(step))
            self.flush(generation)
            tracker.chunks_embedded(len(step))
        self.flush(generation)
        generation.catalog.put_pages(zip(pages, ids, strict=True))
        tracker.pages_indexed(len(pages))

    def _embed(self, standing: Mapping[str, tuple[str, Chunk]]) -> list[StoredVector]:
        chunks = [chunk for _path, chunk in standing.values()]
        embeddings = embed_passages(self._embedder, chunks, self._profile.heading_weight)
        self.embedded_texts += len(chunks)
        return [
            StoredVector(vector, embedding, path)
            for (vector, (path, _chunk)), embedding in zip(standing.items(), embeddings, strict=True)
        ]

    def _check_stop(self) -> None:
        if self._should_stop():
            raise Stopped
