"""The interface of a vector store: a collection of ids and unit vectors, searched by cosine distance."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from otterwiki_semantic.embedding import Matrix


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A vector with its id."""

    id: str
    embedding: Matrix


class VectorStore(ABC):
    """A collection of vectors, opened on first use in the process that uses it; safe for several threads.

    Errors: `VectorStoreError` whenever the database fails.
    """

    def __init__(self, place: str, name: str) -> None:
        self.place = place
        """Where the database is, for messages."""
        self.name = name
        """The name of the collection."""
        self.max_results = math.inf
        """How many vectors a search may ask for."""

    @abstractmethod
    def upsert(self, vectors: Sequence[StoredVector]) -> None:
        """Store vectors, replacing those with the same ids."""

    @abstractmethod
    def delete(self, ids: Sequence[str]) -> None:
        """Delete vectors; unknown ids are ignored."""

    @abstractmethod
    def query(self, vector: Matrix, count: int) -> dict[str, float]:
        """Return the ids of the `count` nearest vectors with their cosine distances, nearest first; all if there are fewer."""

    @abstractmethod
    def ids(self) -> set[str]:
        """Return the ids of all vectors."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of vectors."""

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
