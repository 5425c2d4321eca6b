"""Reads a catalog as a search does."""

from __future__ import annotations

from collections.abc import Iterable

from otterwiki_semantic.core.records import StoredChunk
from otterwiki_semantic.storage.catalog import Catalog


def hits_of(catalog: Catalog, vectors: Iterable[str]) -> list[StoredChunk]:
    """Return the passages with these vectors, by path and place."""
    with catalog.snapshot():
        found = catalog.reader.candidates(vectors)
        shown = catalog.reader.chunks([candidate.id for candidate in found])
    return sorted(shown.values(), key=lambda hit: (hit.path, hit.chunk_index))
