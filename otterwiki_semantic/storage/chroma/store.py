"""A vector store in a ChromaDB collection: what the embedded one and the one on a server have in common."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from otterwiki_semantic.core.errors import VectorStoreError
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage.vector_store import StoredVector, VectorStore

if TYPE_CHECKING:
    from chromadb.api.collection_configuration import CreateCollectionConfiguration, CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection

_HNSW: CreateHNSWConfiguration = {"space": "cosine", "ef_search": 400, "ef_construction": 100, "max_neighbors": 24}
"""With hnswlib's defaults (100, 100, 16) 4 % of the true hundred nearest neighbours are missed in text-like data."""
_WRITTEN_IDS, _LISTED_IDS = 100, 5_000
"""Ids of one request. ChromaDB takes 5,461, but replaces only some 100 a second, and a server has to answer in time."""

T = TypeVar("T")


class ChromaStore(VectorStore):
    """A collection that is opened on first use. ChromaDB holds the interpreter while it writes: store few vectors at once."""

    def __init__(self, place: str, name: str) -> None:
        super().__init__(place, name)
        self._opening = threading.Lock()
        self._is_closed = False
        self._listed_at_once = _LISTED_IDS

    def upsert(self, vectors: Sequence[StoredVector]) -> None:
        with self._collection("store vectors") as collection:
            for page in _pages(vectors):
                collection.upsert(
                    ids=[vector.id for vector in page],
                    embeddings=np.stack([vector.embedding for vector in page]),
                )

    def delete(self, ids: Sequence[str]) -> None:
        with self._collection("delete vectors") as collection:
            for page in _pages(ids):
                collection.delete(ids=list(page))

    def query(self, vector: Matrix, count: int) -> dict[str, float]:
        with self._collection("search") as collection:
            answer = collection.query(query_embeddings=vector[np.newaxis], n_results=count, include=["distances"])
            distances = answer["distances"]
            assert distances is not None
            return {vector_id: max(0.0, distance) for vector_id, distance in zip(answer["ids"][0], distances[0], strict=True)}

    def ids(self) -> set[str]:
        found: set[str] = set()
        with self._collection("list vectors") as collection:
            while page := collection.get(include=[], limit=self._listed_at_once, offset=len(found))["ids"]:
                found.update(page)
        return found

    def count(self) -> int:
        with self._collection("count vectors") as collection:
            return collection.count()

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


def collection_configuration() -> CreateCollectionConfiguration:
    """Return the configuration that a collection is created with."""
    return {"hnsw": _HNSW}


def _pages(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[start : start + _WRITTEN_IDS] for start in range(0, len(values), _WRITTEN_IDS))
