"""A vector store: a ChromaDB collection of ids and unit vectors, searched by cosine distance."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otterwiki_semantic.core.errors import VectorStoreError
from otterwiki_semantic.embedding import Matrix

if TYPE_CHECKING:
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection

HNSW: CreateHNSWConfiguration = {"space": "cosine", "ef_search": 400, "ef_construction": 100, "max_neighbors": 24}
"""With hnswlib's defaults (100, 100, 16) 4 % of the true hundred nearest neighbours are missed in text-like data."""
_WRITTEN_IDS, _LISTED_IDS = 100, 5_000
"""Ids of one request. ChromaDB takes 5,461, but replaces only some 100 a second, and a server has to answer in time."""


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A vector with its id."""

    id: str
    embedding: Matrix


class VectorStore(ABC):
    """A collection of vectors, opened on first use in the process that uses it; safe for several threads.

    ChromaDB holds the interpreter while it writes: store few vectors at once. Errors: `VectorStoreError` whenever the database
    fails.
    """

    def __init__(self, place: str, name: str) -> None:
        self.place = place
        """Where the database is, for messages."""
        self.name = name
        """The name of the collection."""
        self.max_results = sys.maxsize
        """How many vectors a request may ask for."""
        self._opening = threading.Lock()
        self._is_closed = False

    def upsert(self, vectors: Sequence[StoredVector]) -> None:
        """Store vectors, replacing those with the same ids."""
        with self._collection("store vectors") as collection:
            for start in range(0, len(vectors), _WRITTEN_IDS):
                part = vectors[start : start + _WRITTEN_IDS]
                collection.upsert([vector.id for vector in part], np.stack([vector.embedding for vector in part]))

    def delete(self, ids: Sequence[str]) -> None:
        """Delete vectors; unknown ids are ignored."""
        with self._collection("delete vectors") as collection:
            for start in range(0, len(ids), _WRITTEN_IDS):
                collection.delete(list(ids[start : start + _WRITTEN_IDS]))

    def query(self, vector: Matrix, count: int) -> dict[str, float]:
        """Return the ids of the `count` nearest vectors with their cosine distances, nearest first; all if there are fewer."""
        with self._collection("search") as collection:
            answer = collection.query(query_embeddings=vector[np.newaxis], n_results=count, include=["distances"])
            distances = answer["distances"]
            assert distances is not None
            return {vector_id: max(0.0, distance) for vector_id, distance in zip(answer["ids"][0], distances[0], strict=True)}

    def ids(self) -> set[str]:
        """Return the ids of all vectors."""
        found: set[str] = set()
        limit = min(_LISTED_IDS, self.max_results)
        with self._collection("list vectors") as collection:
            while page := collection.get(include=[], limit=limit, offset=len(found))["ids"]:
                found.update(page)
        return found

    def count(self) -> int:
        """Return the number of vectors."""
        with self._collection("count vectors") as collection:
            return collection.count()

    @abstractmethod
    def close(self) -> None:
        """Release all resources; any later use is an error. The vectors remain stored."""

    @abstractmethod
    def destroy(self) -> None:
        """Close the store and remove all that it stored; failures are only logged."""

    def remove_strays(self) -> Sequence[str]:
        """Remove other collections that this data directory left behind; returns their names. Failures are only logged."""
        return ()

    def manifest(self) -> str | None:
        """Return a digest of the files that hold the collection while nothing writes to them; None if they are not local."""
        return None

    @abstractmethod
    def _open(self) -> Collection:
        """Return the collection, created if it does not exist."""

    @abstractmethod
    def _translate(self, action: str, error: BaseException) -> VectorStoreError:
        """Return our error for one of ChromaDB's."""

    @contextmanager
    def _collection(self, action: str) -> Iterator[Collection]:
        with self._translate_errors(action):
            yield self._open()

    @contextmanager
    def _translate_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, SystemExit, VectorStoreError):
            raise
        except BaseException as error:  # ChromaDB's core panics with an exception outside of Exception
            raise self._translate(action, error) from error

    def _check_open(self) -> None:
        if self._is_closed:
            raise VectorStoreError(f"{self.place} is closed")
