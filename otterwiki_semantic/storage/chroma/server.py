"""A ChromaDB collection on a server, over HTTP with timeouts.

The server may be shared, even with a copy of this data directory. `CollectionOwnership` records the owner of each collection.
Ownership is checked when the collection is opened, every ten seconds after that, and before anything is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import VectorStoreError, VectorStoreRefusedError
from otterwiki_semantic.storage.chroma.connection import ChromaServer
from otterwiki_semantic.storage.chroma.ownership import CollectionOwnership
from otterwiki_semantic.storage.vector_store import (
    DEFAULT_SPEC,
    HNSW,
    CollectionSpec,
    StoredVector,
    VectorStore,
    embedding_function,
)

if TYPE_CHECKING:
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from chromadb.api.fastapi import FastAPI
    from chromadb.api.models.Collection import Collection
    from chromadb.types import Collection as CollectionModel

_TRUSTED_SECONDS = 10.0
"""How long a collection that was ours is assumed to be ours."""
_BAD_REQUEST = (400, 404)
"""ChromaDB's status for a missing database, an unsupported index configuration or an unsupported metadata type."""
_CLOUD_LIMIT = 300
"""The most records that Chroma Cloud returns at once, unless its quota was raised."""

log = logging.getLogger(__name__)


class ChromaServerStore(VectorStore):
    """A collection in a database of a ChromaDB server, renamed from a temporary name when it is published.

    Errors: `VectorStoreUnreachableError` if the server is down, slow, not ChromaDB, or denies access; a later call may succeed.
    A plain `VectorStoreError` if ChromaDB itself reports an error, or once the collection is gone or owned by another wiki.
    """

    def __init__(
        self, server: ChromaServer, created_as: str, ownership: CollectionOwnership, spec: CollectionSpec = DEFAULT_SPEC
    ) -> None:
        super().__init__(server.url, spec)
        self._server = server
        self._created_as = created_as
        self._ownership = ownership
        self._api: FastAPI | None = None
        self._opened: Collection | None = None
        self._is_lost = False
        self._trusted = Cooldown(_TRUSTED_SECONDS)
        ownership.use(self.name)

    @property
    def name(self) -> str:
        is_published = self._ownership.is_published(self._created_as, self.spec.name)
        return self.spec.name if is_published else self._created_as

    def publish(self) -> None:
        """Rename the collection, replacing this data directory's previous one. Errors: `VectorStoreRefusedError`."""
        from chromadb.errors import NotFoundError

        if self.name == self.spec.name:
            return
        with self._collection("publish the collection") as collection:
            api = cast("FastAPI", self._api)
            with suppress(NotFoundError):
                if not self._ownership.may_claim(self.spec.name, self._get(api, self.spec.name).metadata):
                    raise VectorStoreRefusedError(
                        f"ChromaDB at {self.place} has a collection {self.spec.name} that is not this wiki's, whose own is"
                        f" {self.name}: set SEMANTIC_COLLECTION to another name"
                    )
                api.delete_collection(self.spec.name, self._server.tenant, self._server.database)
            self._ownership.publish(self._created_as, self.spec.name)
            collection.modify(name=self.spec.name)
            self._ownership.forget(self._created_as)

    def _own_metadata(self) -> dict[str, Any]:
        return {**super()._own_metadata(), **self._ownership.claim(self.name)}

    def upsert(self, vectors: Sequence[StoredVector]) -> None:
        self._write(super().upsert, vectors)

    def update(self, vectors: Sequence[StoredVector]) -> None:
        self._write(super().update, vectors)

    def _write(self, write: Callable[[Sequence[StoredVector]], None], vectors: Sequence[StoredVector]) -> None:
        """Write vectors; if the server refuses lists in metadata, send texts instead."""
        from chromadb.errors import ChromaError

        try:
            write(vectors)
        except VectorStoreError as error:
            cause = error.__cause__
            if self._is_lost or not (self.takes_lists and isinstance(cause, ChromaError) and cause.code() in _BAD_REQUEST):
                raise
            self.takes_lists = False
            try:
                write(vectors)
            except VectorStoreError:
                self.takes_lists = True
                raise

    def delete(self, ids: Sequence[str]) -> None:
        self._trusted.stop()
        super().delete(ids)

    def ids(self) -> set[str]:
        """Return the ids of all vectors, in small pages if the server refuses large ones."""
        from httpx import TransportError

        try:
            return super().ids()
        except VectorStoreError as error:
            if self._is_lost or isinstance(error, VectorStoreRefusedError) or isinstance(error.__cause__, TransportError):
                raise
        before, self.max_results = self.max_results, _CLOUD_LIMIT
        try:
            return super().ids()
        except VectorStoreError:
            self.max_results = before
            raise

    def close(self) -> None:
        with self._opening:
            self._is_closed = True
            api, self._api, self._opened = self._api, None, None
        self._ownership.release(self.name)
        if api is not None:
            api._session.close()

    def destroy(self) -> None:
        """Close the store and remove the collection if it is ours. `remove_strays` does so later if the server is down."""
        self.close()
        if self._ownership.knows(self.name):
            self._remove([self.name])

    def remove_strays(self) -> Sequence[str]:
        strays = [name for name in self._ownership.strays() if name not in {self.name, self.spec.name}]
        if strays and not self._is_closed:
            self._remove(strays)
        return [name for name in strays if not self._ownership.knows(name)]

    def _remove(self, names: Sequence[str]) -> None:
        from chromadb.errors import NotFoundError

        try:
            with self._translate_errors("remove a collection"):
                api = self._server.connect()
                with api._session:
                    for name in names:
                        with suppress(NotFoundError):
                            if self._ownership.may_claim(name, self._get(api, name).metadata):
                                api.delete_collection(name, self._server.tenant, self._server.database)
                        self._ownership.forget(name)
        except VectorStoreError as error:
            log.warning("the collection %s stays behind for now: %s", ", ".join(names), error)

    def _open(self) -> Collection:
        with self._opening:
            self._check_open()
            if self._api is None:
                self._api = self._server.connect()
            api, collection = self._api, self._opened
        if collection is None:  # without the lock, so that threads wait for a slow server in parallel
            from chromadb.api.models.Collection import Collection

            collection = self._opened = Collection(client=api, model=self._claim(api), embedding_function=None)
            self._trusted.start()
        elif not self._trusted.is_active:
            if not self._ownership.holds(self._get(api, self.name).metadata):
                raise self._taken_error()
            self._trusted.start()
        return collection

    def _claim(self, api: FastAPI) -> CollectionModel:
        metadata = self._own_metadata()
        model = self._get_or_create(api, metadata)
        if not self._ownership.may_claim(self.name, model.metadata):
            raise self._taken_error()
        if not self._ownership.holds(model.metadata):
            metadata = {**(model.metadata or {}), **metadata}
            api._modify(model.id, new_metadata=metadata, tenant=self._server.tenant, database=self._server.database)
        self._ownership.confirm(self.name)
        return model

    def _get_or_create(self, api: FastAPI, metadata: dict[str, Any]) -> CollectionModel:
        """Return the collection. Create a missing database, and use SPANN if the server has no HNSW."""
        from chromadb.errors import ChromaError

        def create(configuration: CreateCollectionConfiguration) -> CollectionModel:
            return api.create_collection(
                self.name,
                configuration={**configuration, "embedding_function": embedding_function(self.spec)},
                metadata=metadata,
                get_or_create=True,
                tenant=self._server.tenant,
                database=self._server.database,
            )

        try:
            return create({"hnsw": HNSW})
        except ChromaError as error:
            if error.code() not in _BAD_REQUEST:
                raise
            if self._server.make_database(api):
                return self._get_or_create(api, metadata)
            return create({"spann": {"space": "cosine"}})

    def _get(self, api: FastAPI, name: str) -> CollectionModel:
        return api.get_collection(name, self._server.tenant, self._server.database)

    @contextmanager
    def _collection(self, action: str) -> Iterator[Collection]:
        from chromadb.errors import NotFoundError

        with self._translate_errors(action):
            if self._is_lost:
                raise self._lost_error()
            try:
                yield self._open()
            except NotFoundError as error:
                self._is_lost = True
                raise self._lost_error() from error

    def _taken_error(self) -> VectorStoreError:
        self._ownership.forget(self.name)
        return VectorStoreError(
            f"the collection {self.name} at {self.place} is used by another wiki, with a copy of this data directory: "
            "it keeps it, and another one is begun here"
        )

    def _lost_error(self) -> VectorStoreError:
        return VectorStoreError(
            f"ChromaDB at {self.place} has lost the collection {self.name}: was it started with another or an empty directory?"
        )

    def _translate(self, action: str, error: BaseException) -> VectorStoreError:
        from chromadb.errors import ChromaError
        from httpx import TransportError

        if self._is_closed and not isinstance(error, ChromaError | TransportError):
            return VectorStoreError(f"{self.place} is closed")
        return self._server.failure(action, error)
