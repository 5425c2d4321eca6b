"""A generation: one index, which is a catalog and the mirror of its vectors in ChromaDB."""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Telemetry
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage.catalog import Catalog
from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore
from otterwiki_semantic.storage.chroma.mirror import OpenStore, VectorMirror
from otterwiki_semantic.storage.exact import ChunkRef
from otterwiki_semantic.storage.filters import FilterMask
from otterwiki_semantic.storage.vector_store import VectorStore

CATALOG = "catalog.sqlite3"
EXACT = 100_000
"""Up to this many chunks a search is exact: a few milliseconds slower than HNSW, with perfect recall."""


class Nearest(NamedTuple):
    """The chunks nearest to a vector with their cosine similarities, in no order."""

    found: list[tuple[ChunkRef, float]]
    is_whole: bool
    """Whether there are no others."""


class Generation:
    """One index: its catalog, and the mirror of its vectors in ChromaDB. Errors of the constructor: the catalog's."""

    def __init__(self, path: Path, open_store: OpenStore = EmbeddedChromaStore, telemetry: Telemetry = NO_TELEMETRY) -> None:
        self.path = path
        self.name = path.name
        self.catalog = Catalog(path / CATALOG)
        self.mirror = VectorMirror(self.catalog, path, f"otterwiki-{self.name}", open_store, telemetry)

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the recipe that it was built with."""
        return self.catalog.meta("fingerprint")

    @cached_property
    def vector_fingerprint(self) -> str | None:
        """The fingerprint of its vectors; see `embedding.vector_fingerprint`. It never changes, and every search reads it."""
        return self.catalog.meta("recipe")

    @property
    def vector_store(self) -> VectorStore:
        """The vector store of the moment."""
        return self.mirror.store

    def nearest(self, vector: Matrix, count: int, mask: FilterMask | None = None) -> Nearest:
        """Return about `count` chunks nearest to a vector.

        The search is exact up to 100,000 chunks, and while the mirror is not current. Above that ChromaDB is asked for as many
        as probably include enough that pass the mask.
        """
        self.mirror.note_search()
        reader = self.catalog.reader
        index = mask.index if mask else reader.exact_index()
        size = mask.size if mask else index.size
        wanted = min(index.size, mask.oversample(count)) if mask and size else count
        distances = self.mirror.query(vector, wanted) if size > EXACT else None
        if distances is None:
            found = index.nearest(vector, count, mask.mask if mask else None)
            return Nearest(found, is_whole=len(found) < count)
        candidates = reader.candidates(distances)
        passing = index.candidates([each.id for each in candidates], mask.mask) if mask else candidates
        return Nearest([(each, 1 - distances[each.vector]) for each in passing], is_whole=len(distances) < wanted)

    def compact(self) -> None:
        """Return unused space to the disk."""
        self.catalog.compact()
        self.mirror.compact()

    def close(self) -> None:
        """Close the catalog and the vector store."""
        try:
            self.mirror.close()
        finally:
            self.catalog.close()

    def destroy(self) -> None:
        """Close the generation and remove its files."""
        self.vector_store.destroy()
        self.catalog.close()
        shutil.rmtree(self.path, ignore_errors=True)
