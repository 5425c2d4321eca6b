"""The vectors in ChromaDB: a collection of ids and unit vectors, compared by cosine distance. Nothing else is asked of it.

Here is what every collection does, and the one embedded in this process; `server_vectors` has the one on a ChromaDB server.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import shutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from otterwiki_semantic.core.errors import VectorStoreError
from otterwiki_semantic.embedding import Matrix

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.collection_configuration import CreateCollectionConfiguration, CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection

    from otterwiki_semantic.storage.catalog import StoredVector

_HNSW: CreateHNSWConfiguration = {"space": "cosine", "ef_search": 400, "ef_construction": 100, "max_neighbors": 24}
"""With hnswlib's defaults (100, 100, 16) 4 % of the true hundred nearest neighbours are missed in text-like data."""
_PAGE = 100
"""Ids of one request. ChromaDB takes 5,461 at most, but replaces only some 100 a second, and a server has to answer in time."""
_IDS_PAGE = 5_000

T = TypeVar("T")

log = logging.getLogger(__name__)


class VectorStore(ABC):
    """A ChromaDB collection, opened on first use in the process that uses it; safe for several threads.

    `place` says where it is, `name` how it is called there. Errors: `VectorStoreError` whenever ChromaDB fails.
    """

    def __init__(self, place: str, collection: str) -> None:
        self.place = place
        self.name = collection
        self._opening = threading.Lock()
        self._is_closed = False
        self.ids_page = _IDS_PAGE
        self.most_results = math.inf
        """How many vectors a search may ask for."""

    def upsert(self, vectors: Sequence[StoredVector]) -> None:
        """Store vectors in place of those with the same ids; few at a time, since ChromaDB holds the interpreter meanwhile."""
        with self._collection("store vectors") as collection:
            for page in _pages(vectors):
                collection.upsert(
                    ids=[vector.id for vector in page],
                    embeddings=np.stack([vector.embedding for vector in page]),
                )

    def delete(self, ids: Sequence[str]) -> None:
        """Forget vectors; ids that are not there do no harm."""
        with self._collection("delete vectors") as collection:
            for page in _pages(ids):
                collection.delete(ids=list(page))

    def query(self, vector: Matrix, count: int) -> dict[str, float]:
        """Give the ids of the `count` nearest vectors with their cosine distances, nearest first; all if there are fewer."""
        with self._collection("search") as collection:
            answer = collection.query(query_embeddings=vector[np.newaxis], n_results=count, include=["distances"])
            distances = answer["distances"]
            assert distances is not None
            return {vector_id: max(0.0, distance) for vector_id, distance in zip(answer["ids"][0], distances[0], strict=True)}

    def ids(self) -> set[str]:
        """Give the ids of all vectors in the collection."""
        found: set[str] = set()
        with self._collection("list vectors") as collection:
            while page := collection.get(include=[], limit=self.ids_page, offset=len(found))["ids"]:
                found.update(page)
        return found

    def remove_strays(self) -> Sequence[str]:
        """Remove other collections that this data directory left on the server; gives their names. Failures are only logged."""
        return ()

    def manifest(self) -> str | None:
        """Tell the state of the files that hold the collection, for as long as nothing writes; None if they are not ours."""
        return None

    def count(self) -> int:
        """Give the number of vectors in the collection."""
        with self._collection("count vectors") as collection:
            return collection.count()

    @abstractmethod
    def close(self) -> None:
        """Let go of everything held, for good: every later use is an error. What is stored stays."""

    @abstractmethod
    def destroy(self) -> None:
        """Close, and remove all that is stored; what goes wrong is only logged."""

    @abstractmethod
    def _open(self) -> Collection:
        """Give the collection, made if there is none."""

    @abstractmethod
    def _failure(self, action: str, error: BaseException) -> VectorStoreError:
        """Give our error for one of ChromaDB's."""

    @contextmanager
    def _collection(self, action: str) -> Iterator[Collection]:
        with self._errors(action):
            yield self._open()

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, SystemExit, VectorStoreError):
            raise
        except BaseException as error:  # ChromaDB's core panics with an exception outside of Exception
            raise self._failure(action, error) from error

    def _check_open(self) -> None:
        if self._is_closed:
            raise VectorStoreError(f"{self.place} is closed")


class ChromaVectors(VectorStore):
    """A persistent collection in a directory of its own, in this process. No other process may have the directory open."""

    def __init__(self, directory: Path, collection: str) -> None:
        super().__init__(str(directory), collection)
        self.directory = directory
        self._client: Client | None = None
        self._opened: Collection | None = None

    def close(self) -> None:
        """Close the database and let go of its files, for good: every later use is an error."""
        with self._opening:
            self._is_closed = True
            client, self._client, self._opened = self._client, None, None
        if client is not None:
            with self._errors("close the database"):
                client.close()

    def manifest(self) -> str | None:
        """Give a digest of the files' names, sizes and times of change; what they hold is on the disk then."""
        digest = hashlib.sha256()
        for path in sorted(path for path in self.directory.rglob("*") if path.is_file()):
            with path.open("rb") as file:
                os.fsync(file.fileno())
                facts = os.fstat(file.fileno())
            digest.update(f"{path.relative_to(self.directory)}/{facts.st_size}/{facts.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def destroy(self) -> None:
        """Close the database and remove its directory."""
        try:
            self.close()
        except VectorStoreError as error:  # a broken database may not even close; its files go all the same
            log.warning("ChromaDB did not close %s: %s", self.directory, error)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _open(self) -> Collection:
        with self._opening:
            self._check_open()
            if self._opened is None:
                import chromadb
                from chromadb.config import Settings

                settings = Settings(anonymized_telemetry=False, chroma_otel_collection_endpoint="")
                self._client = cast("Client", chromadb.PersistentClient(self.place, settings=settings))
                self._opened = self._client.get_or_create_collection(
                    self.name,
                    configuration=collection_configuration(),
                    embedding_function=None,
                )
            return self._opened

    def _failure(self, action: str, error: BaseException) -> VectorStoreError:
        return VectorStoreError(f"ChromaDB could not {action} in {self.place}: {error}")


def collection_configuration() -> CreateCollectionConfiguration:
    """Give what a collection is made with."""
    return {"hnsw": _HNSW}


def _pages(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[start : start + _PAGE] for start in range(0, len(values), _PAGE))
