"""The vectors on a ChromaDB server: the same collection over HTTP, with a limit to how long an answer may take."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.errors import VectorStoreError, VectorStoreUnreachableError
from otterwiki_semantic.vectors import VectorStore, collection_configuration

if TYPE_CHECKING:
    import httpx
    from chromadb.api.fastapi import FastAPI
    from chromadb.api.models.Collection import Collection

    from otterwiki_semantic.catalog import StoredVector

_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 5.0
_REFUSALS = (401, 403, 429)
"""Answers of a server, or of a proxy before it, that say nothing about the collection."""
_LONGEST_REASON = 200

log = logging.getLogger(__name__)


class ChromaServerVectors(VectorStore):
    """A collection on the ChromaDB server at a URL; making the object asks the server nothing.

    Errors: `VectorStoreUnreachableError` when the server is down, slow, or not ChromaDB: the collection is as it was, and the
    next call tries again. A plain `VectorStoreError` when ChromaDB itself says that something is wrong. If the collection is
    gone, the call that notices raises one; then `count` gives 0, and searches raise until something has been stored again.
    """

    def __init__(self, url: str, collection: str, answer_seconds: float = _ANSWER_SECONDS) -> None:
        super().__init__(url, collection)
        self._answer_seconds = answer_seconds
        self._api: FastAPI | None = None
        self._opened: Collection | None = None
        self._is_lost = False

    def upsert(self, vectors: Sequence[StoredVector]) -> None:
        """See `VectorStore`."""
        super().upsert(vectors)
        self._is_lost = False

    def query(self, vector: Matrix, count: int) -> dict[str, float]:
        """See `VectorStore`."""
        found = super().query(vector, count)
        if self._is_lost:
            raise self._loss()
        return found

    def close(self) -> None:
        """Close the connections, for good: every later use is an error."""
        with self._opening:
            self._is_closed = True
            api, self._api, self._opened = self._api, None, None
        if api is not None:
            api._session.close()

    def destroy(self) -> None:
        """Remove the collection, and close; without an answer it stays on the server, and the log says so."""
        from chromadb.errors import NotFoundError

        self.close()
        try:
            with self._errors("remove the collection"):
                api = self._connect()
                with api._session, suppress(NotFoundError):
                    api.delete_collection(self.name)
        except VectorStoreError as error:
            log.warning("the collection %s stays behind: %s", self.name, error)

    def _open(self) -> Collection:
        with self._opening:
            self._check_open()
            if self._api is None:
                self._api = self._connect()
            api, collection = self._api, self._opened
        if collection is None:  # asked without the lock: threads that wait for a slow server do so together, not in turn
            from chromadb.api.models.Collection import Collection

            model = api.create_collection(self.name, configuration=collection_configuration(), get_or_create=True)
            collection = self._opened = Collection(client=api, model=model, embedding_function=None)
        return collection

    def _connect(self) -> FastAPI:
        """Give the server's API without a word to the server; `chromadb.HttpClient` would ask it, and wait for ever."""
        import httpx
        from chromadb.api.fastapi import FastAPI
        from chromadb.config import Settings, System

        logging.getLogger("httpx").setLevel(logging.WARNING)  # it notes each request
        settings = Settings(
            anonymized_telemetry=False,
            chroma_otel_collection_endpoint="",
            chroma_server_host=self.place,
            chroma_server_http_port=0,  # wanted, but not used with a whole URL
        )
        api = FastAPI(System(settings))
        api._session.close()
        api._session = httpx.Client(
            headers=api._session.headers,
            limits=api.http_limits,
            timeout=httpx.Timeout(self._answer_seconds, connect=_CONNECT_SECONDS),
            trust_env=not is_this_machine(urlsplit(self.place).hostname or ""),
            event_hooks={"response": [_check_kind]},
        )
        return api

    @contextmanager
    def _collection(self, action: str) -> Iterator[Collection]:
        from chromadb.errors import NotFoundError

        with self._errors(action):
            collection = self._open()
            try:
                yield collection
            except NotFoundError as error:
                with self._opening:
                    if self._opened is collection:
                        self._opened, self._is_lost = None, True
                raise self._loss() from error

    def _loss(self) -> VectorStoreError:
        return VectorStoreError(
            f"ChromaDB at {self.place} has lost the collection {self.name}: was it started with another or an empty directory?"
        )

    def _failure(self, action: str, error: BaseException) -> VectorStoreError:
        import httpx
        from chromadb.errors import ChromaError

        if self._is_closed and not isinstance(error, ChromaError | httpx.TransportError):
            return VectorStoreError(f"{self.place} is closed")
        reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
        if isinstance(error, ChromaError) and error.code() not in _REFUSALS:
            return VectorStoreError(f"ChromaDB at {self.place} could not {action}: {reason}; see its log")
        if isinstance(error, httpx.TimeoutException):
            seconds = _CONNECT_SECONDS if isinstance(error, httpx.ConnectTimeout) else self._answer_seconds
            reason = f"no answer within {seconds:g} s"
        elif not isinstance(error, ChromaError | httpx.TransportError):
            reason = f"what answers is not ChromaDB ({type(error).__name__}: {reason})"
        return VectorStoreUnreachableError(
            f"ChromaDB at {self.place} could not {action}: {reason}; start it, or correct SEMANTIC_CHROMA_URL"
        )


def _check_kind(response: httpx.Response) -> None:
    """Refuse what ChromaDB never answers, such as a proxy's page about an error."""
    import httpx

    kind = response.headers.get("content-type", "nothing")
    if not kind.startswith("application/json"):
        raise httpx.RemoteProtocolError(f"it answers {response.status_code} and {kind}, as ChromaDB never does")


def is_this_machine(host: str) -> bool:
    """Tell whether a host is this one, to which no proxy leads."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
