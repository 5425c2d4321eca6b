"""The vectors on a ChromaDB server: the same collection over HTTP, with a limit to how long an answer may take.

Others may use the server, a copy of the data directory among them: `claims` tells whose the collection is. It is looked at when
the collection is opened, every ten seconds after that, and before anything is deleted.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from otterwiki_semantic.core.errors import VectorStoreError, VectorStoreRefusedError
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage.chroma.connection import ChromaServer
from otterwiki_semantic.storage.chroma.ownership import CollectionOwnership
from otterwiki_semantic.storage.vector_store import VectorStore, collection_configuration

if TYPE_CHECKING:
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from chromadb.api.fastapi import FastAPI
    from chromadb.api.models.Collection import Collection
    from chromadb.types import Collection as CollectionModel

    from otterwiki_semantic.storage.catalog import StoredVector

_LOOK_SECONDS = 10.0
"""How long a collection that was ours is taken to be."""
_ASKED_WRONG = (400, 404)
"""What ChromaDB answers if there is no such database, or no index of such a configuration."""
_SERVICE_PAGE = 300
"""What Chroma's own service writes, or answers with, at a time, unless it was asked to allow more."""

log = logging.getLogger(__name__)


class ChromaServerVectors(VectorStore):
    """A collection in a database of a ChromaDB server; making the object asks the server nothing.

    Errors: `VectorStoreUnreachableError` when the server is down, slow, not ChromaDB, or does not let us in: the collection is
    as it was, and the next call tries again. A plain `VectorStoreError` when ChromaDB itself says that something is wrong, and
    from the call that notices that the collection is gone, or another's now. One that is gone is made again by the next call:
    `count` then gives 0, and searches raise until something has been stored.
    """

    def __init__(self, server: ChromaServer, collection: str, claims: CollectionOwnership) -> None:
        super().__init__(server.url, collection)
        self._server = server
        self._claims = claims
        self._api: FastAPI | None = None
        self._opened: Collection | None = None
        self._is_lost = False
        self._looked_at = -math.inf
        claims.use(collection)

    def upsert(self, vectors: Sequence[StoredVector]) -> None:
        """See `VectorStore`."""
        super().upsert(vectors)
        self._is_lost = False

    def delete(self, ids: Sequence[str]) -> None:
        """See `VectorStore`."""
        self._looked_at = -math.inf
        super().delete(ids)

    def query(self, vector: Matrix, count: int) -> dict[str, float]:
        """See `VectorStore`."""
        found = super().query(vector, count)
        if self._is_lost:
            raise self._loss()
        return found

    def ids(self) -> set[str]:
        """See `VectorStore`. A server that does not take such large pages is asked for smaller ones, from then on."""
        from httpx import TransportError

        try:
            return super().ids()
        except VectorStoreError as error:
            if self._is_lost or isinstance(error, VectorStoreRefusedError) or isinstance(error.__cause__, TransportError):
                raise
            large, self.ids_page = self.ids_page, _SERVICE_PAGE
            try:
                found = super().ids()
            except VectorStoreError:
                self.ids_page = large
                raise
            self.most_results = _SERVICE_PAGE
            return found

    def close(self) -> None:
        """Close the connections, for good: every later use is an error."""
        with self._opening:
            self._is_closed = True
            api, self._api, self._opened = self._api, None, None
        self._claims.let_go(self.name)
        if api is not None:
            api._session.close()

    def destroy(self) -> None:
        """Remove the collection if it is ours, and close; without an answer it stays until `remove_strays`, as the log says."""
        self.close()
        if self._claims.knows(self.name):
            self._remove([self.name])

    def remove_strays(self) -> Sequence[str]:
        """See `VectorStore`."""
        strays = [name for name in self._claims.strays() if name != self.name]
        if strays and not self._is_closed:
            self._remove(strays)
        return [name for name in strays if not self._claims.knows(name)]

    def _remove(self, names: Sequence[str]) -> None:
        """Remove those of some collections that are there and nobody else has used; what goes wrong is only logged."""
        from chromadb.errors import NotFoundError

        try:
            with self._errors("remove a collection"):
                api = self._server.connect()
                with api._session:
                    for name in names:
                        with suppress(NotFoundError):
                            if self._claims.may_take(name, self._model(api, name).metadata):
                                api.delete_collection(name, self._server.tenant, self._server.database)
                        self._claims.forget(name)
        except VectorStoreError as error:
            log.warning("the collection %s stays behind for now: %s", ", ".join(names), error)

    def _open(self) -> Collection:
        with self._opening:
            self._check_open()
            if self._api is None:
                self._api = self._server.connect()
            api, collection = self._api, self._opened
        if collection is None:  # asked without the lock: threads that wait for a slow server do so together, not in turn
            from chromadb.api.models.Collection import Collection

            collection = self._opened = Collection(client=api, model=self._claimed(api), embedding_function=None)
            self._looked_at = time.monotonic()
        elif time.monotonic() - self._looked_at > _LOOK_SECONDS:
            if not self._claims.has_marked(self._model(api, self.name).metadata):
                raise self._taken()
            self._looked_at = time.monotonic()
        return collection

    def _claimed(self, api: FastAPI) -> CollectionModel:
        """Give the collection, made if there is none, with the mark of this process."""
        mark = self._claims.begin(self.name)
        model = self._made(api, mark)
        if not self._claims.may_take(self.name, model.metadata):
            raise self._taken()
        if not self._claims.has_marked(model.metadata):
            api._modify(model.id, new_metadata=mark, tenant=self._server.tenant, database=self._server.database)
        self._claims.settle(self.name)
        return model

    def _made(self, api: FastAPI, mark: dict[str, str]) -> CollectionModel:
        """Give the collection; a database that is not there is made, and an index that there is not done without."""
        from chromadb.errors import ChromaError

        def make(configuration: CreateCollectionConfiguration) -> CollectionModel:
            return api.create_collection(
                self.name,
                configuration=configuration,
                metadata=mark,
                get_or_create=True,
                tenant=self._server.tenant,
                database=self._server.database,
            )

        try:
            return make(collection_configuration())
        except ChromaError as error:
            if error.code() not in _ASKED_WRONG:
                raise
            if self._server.make_database(api):
                return self._made(api, mark)
            return make({"spann": {"space": "cosine"}})

    def _model(self, api: FastAPI, name: str) -> CollectionModel:
        return api.get_collection(name, self._server.tenant, self._server.database)

    def _taken(self) -> VectorStoreError:
        self._claims.forget(self.name)
        return VectorStoreError(
            f"the collection {self.name} at {self.place} is used by another wiki, with a copy of this data directory: "
            "it keeps it, and another one is begun here"
        )

    @contextmanager
    def _collection(self, action: str) -> Iterator[Collection]:
        from chromadb.errors import NotFoundError

        with self._errors(action):
            opened = self._opened
            try:
                opened = self._open()
                yield opened
            except NotFoundError as error:
                with self._opening:
                    if self._opened is opened:
                        self._opened, self._is_lost = None, True
                raise self._loss() from error

    def _loss(self) -> VectorStoreError:
        return VectorStoreError(
            f"ChromaDB at {self.place} has lost the collection {self.name}: was it started with another or an empty directory?"
        )

    def _failure(self, action: str, error: BaseException) -> VectorStoreError:
        from chromadb.errors import ChromaError
        from httpx import TransportError

        if self._is_closed and not isinstance(error, ChromaError | TransportError):
            return VectorStoreError(f"{self.place} is closed")
        return self._server.failure(action, error)
