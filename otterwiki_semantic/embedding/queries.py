"""The vectors of queries: made while their words are looked up, remembered, and told of if they cannot be made."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from functools import lru_cache

from otterwiki_semantic.core.errors import ModelError, ModelUnreachableError, SemanticError
from otterwiki_semantic.core.telemetry import EmbeddingKind, Telemetry
from otterwiki_semantic.embedding.base import Embedder, Matrix

_REMEMBERED = 512
_THREADS, _THREADS_FOR_SERVER = 2, 16
_LONGEST_SECONDS = 10.0
"""A model has limits of its own that are shorter; this one holds whatever it does."""
_FAILURE_TOLD_SECONDS = 300.0
"""How long a query that could not be embedded is told of, unless another one can be."""

log = logging.getLogger(__name__)


class QueryEmbedder:
    """Embeds queries with one model; what it is may change meanwhile."""

    def __init__(self, embedder: Embedder, watcher: Telemetry) -> None:
        self._embedder = embedder
        self._watcher = watcher
        self._threads = ThreadPoolExecutor(_THREADS_FOR_SERVER if embedder.asks_server else _THREADS, "query-embedding")
        self._remembered = lru_cache(_REMEMBERED)(self._embed)
        self._failure: tuple[float, BaseException] | None = None
        """When a query could not be embedded last, and why; None if the last one could."""

    def coming(self, queries: Sequence[str]) -> list[Future[Matrix]]:
        """Begin to embed queries."""
        return [self._threads.submit(self.vector_of, query) for query in queries]

    def wait_for_server(self, coming: Sequence[Future[Matrix]]) -> None:
        """Wait, if a server embeds them: it takes none of this machine's time, and others can be answered meanwhile."""
        if self._embedder.asks_server:
            wait(coming, _LONGEST_SECONDS)

    def vector_of(self, query: str) -> Matrix:
        """Give the vector of a query by the model as it is known now. Errors: the model's."""
        return self._remembered(query, self._embedder.fingerprint)

    def failure(self, coming: Sequence[Future[Matrix]]) -> str | None:
        """Tell why vectors could not be made, if so."""
        if not coming:
            return None
        error = next((error for error in map(_error, coming) if error is not None), None)
        self._failure = None if error is None else (time.monotonic(), error)
        if error is None:
            return None
        log.error("a query could not be embedded: %s", error, exc_info=None if isinstance(error, SemanticError) else error)
        return f"the embedding model failed, the answer is by words alone: {error}"

    @property
    def last_failure(self) -> ModelError | None:
        """What the last query failed of, for some minutes."""
        if self._failure is None or time.monotonic() - self._failure[0] > _FAILURE_TOLD_SECONDS:
            return None
        cause = self._failure[1]
        kind = ModelUnreachableError if isinstance(cause, ModelUnreachableError) else ModelError
        return kind(f"a query could not be embedded: {cause}")

    @property
    def hits_and_misses(self) -> tuple[int, int]:
        """How many queries were remembered, and how many had to be embedded."""
        known = self._remembered.cache_info()
        return known.hits, known.misses

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _embed(self, query: str, _fingerprint: str) -> Matrix:
        with self._watcher.record_embedding(EmbeddingKind.QUERY, 1):
            vector: Matrix = self._embedder.embed_queries([query])[0]
        return vector


def vector_if_made(coming: Future[Matrix] | None) -> Matrix | None:
    """Give the vector of a query once it is there; None if the model failed, takes too long, or is not asked."""
    return coming.result() if coming is not None and _error(coming) is None else None


def _error(coming: Future[Matrix]) -> BaseException | None:
    """Give what a vector failed of, once it is there or ought to be."""
    try:
        return coming.exception(_LONGEST_SECONDS)
    except (TimeoutError, CancelledError):
        return ModelUnreachableError(f"it gave no vector of a query within {_LONGEST_SECONDS:.0f} s")
