"""The vectors in ChromaDB: a collection of ids and unit vectors, compared by cosine distance. Nothing else is asked of it."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.errors import VectorStoreError

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection

    from otterwiki_semantic.catalog import StoredVector

_HNSW: CreateHNSWConfiguration = {"space": "cosine", "ef_search": 400, "ef_construction": 200, "max_neighbors": 32}
"""With hnswlib's defaults (100, 100, 16) 4 % of the true hundred nearest neighbours are missed in text-like data."""

log = logging.getLogger(__name__)


class ChromaVectors:
    """A persistent ChromaDB collection in a directory of its own, opened on first use in the process that uses it.

    Only one process may have the directory open. Errors: `VectorStoreError` whenever ChromaDB fails.
    """

    def __init__(self, directory: Path, collection: str) -> None:
        self.directory = directory
        self.name = collection
        self._opening = threading.Lock()
        self._is_closed = False
        self._client: Client | None = None
        self._collection: Collection | None = None

    def upsert(self, vectors: Sequence[StoredVector]) -> None:
        """Store vectors in place of those with the same ids; few at a time, since ChromaDB holds the interpreter meanwhile."""
        with self._errors("store vectors"):
            self._open().upsert(
                ids=[vector.id for vector in vectors],
                embeddings=np.stack([vector.embedding for vector in vectors]),
                metadatas=[{"path": vector.path} for vector in vectors],
            )

    def delete(self, ids: Sequence[str]) -> None:
        """Forget vectors; ids that are not there do no harm."""
        with self._errors("delete vectors"):
            self._open().delete(ids=list(ids))

    def query(self, vector: Matrix, count: int) -> dict[str, float]:
        """Give the ids of the `count` nearest vectors with their cosine distances, nearest first; all if there are fewer."""
        with self._errors("search"):
            collection = self._open()
            answer = collection.query(query_embeddings=vector[np.newaxis], n_results=count, include=["distances"])
            distances = answer["distances"]
            assert distances is not None
            return {vector_id: max(0.0, distance) for vector_id, distance in zip(answer["ids"][0], distances[0], strict=True)}

    def count(self) -> int:
        """Give the number of vectors in the collection."""
        with self._errors("count vectors"):
            return self._open().count()

    def close(self) -> None:
        """Close the database and let go of its files, for good: every later use is an error."""
        with self._opening:
            self._is_closed = True
            client, self._client, self._collection = self._client, None, None
        if client is not None:
            with self._errors("close the database"):
                client.close()

    def destroy(self) -> None:
        """Close the database and remove its directory."""
        try:
            self.close()
        except VectorStoreError as error:  # a broken database may not even close; its files go all the same
            log.warning("ChromaDB did not close %s: %s", self.directory, error)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _open(self) -> Collection:
        with self._opening:
            if self._is_closed:
                raise VectorStoreError(f"{self.directory} is closed")
            if self._collection is None:
                import chromadb
                from chromadb.config import Settings

                settings = Settings(anonymized_telemetry=False)
                self._client = cast("Client", chromadb.PersistentClient(str(self.directory), settings=settings))
                self._collection = self._client.get_or_create_collection(
                    self.name,
                    configuration={"hnsw": _HNSW},
                    embedding_function=None,
                )
            return self._collection

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, SystemExit, VectorStoreError):
            raise
        except BaseException as error:  # ChromaDB's core panics with an exception outside of Exception
            raise VectorStoreError(f"ChromaDB could not {action} in {self.directory}: {error}") from error
