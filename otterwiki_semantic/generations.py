"""Generations: everything one way of indexing needs, in a directory of its own, and the pointer to the one that serves.

A way of indexing is a model, a chunking and a schema; its fingerprint tells it from others. A new generation is built beside
the serving one and takes its place by the exchange of one small file. Layout of the data directory::

    current                      the name of the serving generation
    generations/<name>/          catalog.sqlite3 and the ChromaDB directory that the catalog names
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

from otterwiki_semantic import terms
from otterwiki_semantic.catalog import SCHEMA, Catalog, StoredVector
from otterwiki_semantic.chunking import Profile
from otterwiki_semantic.embedding import Embedder, Matrix
from otterwiki_semantic.embedding.passages import passages_fingerprint
from otterwiki_semantic.errors import CatalogDamagedError, VectorStoreError
from otterwiki_semantic.vectors import ChromaVectors

_CATALOG = "catalog.sqlite3"

log = logging.getLogger(__name__)


def fingerprint(embedder: Embedder, profile: Profile) -> str:
    """Give what tells this way of indexing from others."""
    parts = (str(SCHEMA), passages_fingerprint(embedder, profile.heading_weight), profile.fingerprint, terms.ALGORITHM)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class Generation:
    """One index: its catalog, and its vectors in ChromaDB."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.name = directory.name
        self.catalog = Catalog(directory / _CATALOG)
        self._changing = threading.Lock()
        self.is_refilling = bool(self.catalog.vectors_to_store(1))
        """Whether ChromaDB still lacks vectors that the catalog has; searches then look at the catalog's."""
        self.vectors = self._vectors_of(self.catalog.meta("chroma") or self._new_chroma())

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint it was built with."""
        return self.catalog.meta("fingerprint")

    @property
    def recipe(self) -> str | None:
        """The fingerprint of what made its vectors: see `passages_fingerprint`."""
        return self.catalog.meta("recipe")

    def nearest(self, vector: Matrix, count: int) -> dict[str, float]:
        """Give the ids of the `count` nearest vectors with their cosine distances, nearest first."""
        if self.is_refilling:
            return self.catalog.lookup.nearest(vector, count)
        return self.vectors.query(vector, count)

    def _vectors_of(self, chroma: str) -> ChromaVectors:
        return ChromaVectors(self.directory / chroma, f"otterwiki-{self.name}")

    def _new_chroma(self) -> str:
        name = f"chroma-{uuid.uuid4().hex[:8]}"
        self.catalog.set_meta("chroma", name)
        return name

    def store_vectors(self, vectors: Sequence[StoredVector]) -> None:
        """Store vectors in ChromaDB, and note that it holds them."""
        with self._changing:
            self.vectors.upsert(vectors)
            self.catalog.mark_stored(vectors)

    def drop_vectors(self, ids: Sequence[str]) -> None:
        """Let ChromaDB forget vectors, and note that it has."""
        with self._changing:
            self.vectors.delete(ids)
            self.catalog.mark_dropped(ids)

    def end_refilling(self) -> None:
        """Note that ChromaDB lacks nothing, unless it was replaced by an empty one meanwhile."""
        with self._changing:
            self.is_refilling = bool(self.catalog.vectors_to_store(1))

    def verify_vectors(self) -> None:
        """Begin with an empty collection if ChromaDB does not hold what the catalog says it does."""
        vectors = self.vectors
        try:
            least, most = self.catalog.stored_range()
            found = vectors.count()
            if least <= found <= most:
                return
            log.warning("ChromaDB holds %d vectors instead of %d: filling it again from the catalog", found, least)
        except VectorStoreError as error:
            log.warning("%s; filling it again from the catalog", error)
        self.reset_vectors(vectors)

    def reset_vectors(self, failed: ChromaVectors) -> None:
        """Put an empty collection in a new directory in place of the failed one, unless that has been done.

        The next sync fills it from the catalog, without the model; until then searches look at the catalog's vectors.
        """
        with self._changing:
            if self.vectors is not failed:
                return
            self.is_refilling = True
            self.catalog.store_all_again()
            self.vectors = self._vectors_of(self._new_chroma())
        failed.destroy()

    def close(self) -> None:
        """Close the catalog and the database."""
        self.vectors.close()
        self.catalog.close()

    def destroy(self) -> None:
        """Close the generation and remove its files."""
        self.vectors.destroy()
        self.catalog.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Generations:
    """The generations of one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._pointer = data_dir / "current"
        self._root = data_dir / "generations"
        self._root.mkdir(parents=True, exist_ok=True)

    def current(self) -> Generation | None:
        """Open the serving generation; None when there is none, or it is damaged (the reason is logged)."""
        try:
            name = self._pointer.read_text(encoding="ascii").strip()
            directory = self._root / name
            return Generation(directory) if name and (directory / _CATALOG).is_file() else None
        except FileNotFoundError:
            return None
        except (CatalogDamagedError, ValueError) as error:
            log.warning("the index is damaged and is built again: %s", error)
            return None

    def create(self, embedder: Embedder, profile: Profile) -> Generation:
        """Make a new, empty generation; it does not serve yet."""
        mark = fingerprint(embedder, profile)
        directory = self._root / f"{mark[:8]}-{uuid.uuid4().hex[:8]}"
        directory.mkdir()
        generation = Generation(directory)
        generation.catalog.set_meta("fingerprint", mark)
        generation.catalog.set_meta("recipe", passages_fingerprint(embedder, profile.heading_weight))
        return generation

    def serve(self, generation: Generation) -> None:
        """Make this generation the serving one, in one step that a crash cannot halve."""
        scratch = self._pointer.with_suffix(".new")
        with scratch.open("w", encoding="ascii") as stream:
            stream.write(f"{generation.name}\n")
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(self._pointer)

    def remove_others(self, serving: Generation | None) -> None:
        """Remove what is left of every generation but the serving one; only when none is being built."""
        for directory in self._root.iterdir():
            if serving is None or directory.name != serving.name:
                shutil.rmtree(directory, ignore_errors=True)
