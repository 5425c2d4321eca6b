"""A vector store: a ChromaDB collection of unit vectors with their texts and metadata, searched by cosine distance."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from otterwiki_semantic.core.errors import VectorStoreError
from otterwiki_semantic.embedding import Matrix

if TYPE_CHECKING:
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection

HNSW: CreateHNSWConfiguration = {"space": "cosine", "ef_search": 400, "ef_construction": 100, "max_neighbors": 24}
"""With hnswlib's defaults (100, 100, 16), 4 % of the true hundred nearest neighbours are missed in text-like data."""
_WRITTEN_IDS, _LISTED_IDS = 100, 5_000
"""Ids per request. ChromaDB accepts 5,461, but replaces only about 100 a second, and a server must answer in time."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A vector with its id, and the public text and metadata of its chunk, if the collection has them."""

    id: str
    embedding: Matrix
    document: str | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CollectionSpec:
    """The properties of a collection, other than its vectors."""

    name: str = "otterwiki"
    """The name under which other programs open the collection."""
    has_documents: bool = True
    model: Mapping[str, Any] = field(default_factory=dict)
    """The model, as described by `embedding.model_config`; empty if it must not be named."""


DEFAULT_SPEC = CollectionSpec()


def embedding_function(spec: CollectionSpec) -> Any:
    """Return the embedding function for queries of other programs that open the collection; None if no model is named."""
    from otterwiki_semantic.embedding.chroma_function import WikiEmbeddingFunction

    return WikiEmbeddingFunction(**spec.model) if spec.model else None


class VectorStore(ABC):
    """A collection of vectors, opened on first use; thread-safe. Errors: `VectorStoreError` whenever the database fails."""

    def __init__(self, place: str, spec: CollectionSpec) -> None:
        self.place = place
        self.spec = spec
        self.max_results = sys.maxsize
        self.takes_lists = True
        """Whether metadata may contain lists; ChromaDB before 1.5 accepts only texts and numbers."""
        self._opening = threading.Lock()
        self._is_closed = False

    @property
    @abstractmethod
    def name(self) -> str:
        """The current name of the collection: the public one once it is published."""

    def upsert(self, vectors: Sequence[StoredVector]) -> None:
        """Store vectors, replacing vectors with the same ids."""
        with self._collection("store vectors") as collection:
            for part in _in_parts(vectors):
                embeddings = np.stack([vector.embedding for vector in part])
                contents: dict[str, Any] = {}
                if self.spec.has_documents:
                    contents = {"metadatas": self._metadata(part), "documents": [each.document for each in part]}
                collection.upsert([vector.id for vector in part], embeddings, **contents)

    def update(self, vectors: Sequence[StoredVector]) -> None:
        """Replace the metadata of vectors; unknown ids are ignored. Texts are not sent: ids are their hashes."""
        with self._collection("store metadata") as collection:
            for part in _in_parts(vectors):
                collection.update([vector.id for vector in part], metadatas=self._metadata(part))

    def _metadata(self, vectors: Sequence[StoredVector]) -> Any:
        if self.takes_lists:
            return [each.metadata for each in vectors]
        return [each.metadata and {name: _joined(value) for name, value in each.metadata.items()} for each in vectors]

    def describe(self, commit: str, dimension: int | None) -> None:
        """Set the collection's public metadata."""
        facts = {"commit": commit} | ({"dimension": dimension} if dimension else {})
        with self._collection("describe the collection") as collection:
            collection.modify(metadata={**self._own_metadata(), **facts})

    def _own_metadata(self) -> dict[str, Any]:
        return {"model": self.spec.model["model"]} if self.spec.model else {}

    def delete(self, ids: Sequence[str]) -> None:
        """Delete vectors; unknown ids are ignored."""
        with self._collection("delete vectors") as collection:
            for part in _in_parts(ids):
                collection.delete(list(part))

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
    def publish(self) -> None:
        """Publish the collection at its public location, under its public name."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; any later use is an error. The vectors remain stored."""

    @abstractmethod
    def destroy(self) -> None:
        """Close the store and remove everything it has stored; failures are only logged."""

    def remove_strays(self) -> Sequence[str]:
        """Remove other collections that this data directory left behind; return their names. Failures are only logged."""
        return ()

    def stay_open(self) -> None:  # noqa: B027 - most stores have nothing to do
        """Stay ready for searches, which would otherwise open the collection again after a pause."""

    @abstractmethod
    def _open(self) -> Collection:
        """Return the collection, creating it if it does not exist."""

    @abstractmethod
    def _translate(self, action: str, error: BaseException) -> VectorStoreError:
        """Convert an error of ChromaDB into ours."""

    @contextmanager
    def _collection(self, action: str) -> Iterator[Collection]:
        with self._translate_errors(action):
            yield self._open()

    @contextmanager
    def _translate_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except VectorStoreError:
            raise
        except Exception as error:
            raise self._translate(action, error) from error

    def _check_open(self) -> None:
        if self._is_closed:
            raise VectorStoreError(f"{self.place} is closed")


def _joined(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, list) else value


def _in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _WRITTEN_IDS):
        yield items[start : start + _WRITTEN_IDS]
