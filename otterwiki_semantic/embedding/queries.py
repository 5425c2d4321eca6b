"""Embeds queries in the background, and caches their vectors."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait

import numpy as np

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import ModelError, ModelUnreachableError, SemanticError
from otterwiki_semantic.core.telemetry import EmbeddingKind, Telemetry
from otterwiki_semantic.embedding.base import Embedder, Matrix

CACHE_SIZE = 512
_THREADS, _THREADS_FOR_SERVER = 2, 16
_TINY = 1e-9
_TIMEOUT = 10.0
"""Models have shorter timeouts of their own; this one holds whatever they do."""
_FAILURE_SHOWN_SECONDS = 300.0
"""How long a failure is reported, unless a later query succeeds."""

log = logging.getLogger(__name__)


class QueryEmbedder:
    """Embeds queries with one model, which may turn out to be a different one at any time."""

    def __init__(self, embedder: Embedder, telemetry: Telemetry) -> None:
        self._embedder = embedder
        self._telemetry = telemetry
        self._threads = ThreadPoolExecutor(_THREADS_FOR_SERVER if embedder.asks_server else _THREADS, "query-embedding")
        self._cache = _VectorCache()
        self._failure: BaseException | None = None
        """Why the last query could not be embedded; None if it could."""
        self._failure_is_recent = Cooldown(_FAILURE_SHOWN_SECONDS)

    def submit(self, queries: Iterable[str]) -> dict[str, Future[Matrix]]:
        """Begin to embed queries, which are sent to a server together; return the pending vector of each."""
        distinct = list(dict.fromkeys(queries))
        if len(distinct) == 1 or not self._embedder.asks_server:
            return {query: self._known(query) or self._threads.submit(self.vector_of, query) for query in distinct}
        pending = {query: Future[Matrix]() for query in distinct}
        work = self._threads.submit(self._embed_together, pending)
        work.add_done_callback(lambda _: [each.cancel() for each in pending.values()])  # those without a result have none
        return pending

    def _known(self, query: str) -> Future[Matrix] | None:
        """Return the vector of a query that was embedded before, without the way through a thread; None for a new one."""
        vector = self._cache.find(query, self._embedder.fingerprint)
        if vector is None:
            return None
        known = Future[Matrix]()
        known.set_result(vector)
        return known

    def _embed_together(self, pending: Mapping[str, Future[Matrix]]) -> None:
        """Set the vectors of queries. A query that the model fails on keeps no other one from getting its vector."""
        fingerprint = self._embedder.fingerprint
        missing = []
        for query, future in pending.items():
            known = self._cache.get(query, fingerprint)
            if known is None:
                missing.append(query)
            else:
                future.set_result(known)
        try:
            vectors = self._embed(missing) if missing else ()
        except ModelUnreachableError as error:
            for query in missing:
                pending[query].set_exception(error)
        except Exception:  # noqa: BLE001 - whatever it is, each query is told its own error
            for query in missing:
                self._embed_alone(query, pending[query])
        else:
            for query, vector in zip(missing, vectors, strict=True):
                self._cache.put(query, fingerprint, vector)
                pending[query].set_result(vector)

    def _embed_alone(self, query: str, future: Future[Matrix]) -> None:
        try:
            future.set_result(self.vector_of(query))
        except Exception as error:  # noqa: BLE001 - it is raised where the vector is asked for
            future.set_exception(error)

    def wait_for_server(self, pending_vectors: Sequence[Future[Matrix]]) -> None:
        """Wait if a server computes the vectors: meanwhile this machine can answer other searches."""
        if self._embedder.asks_server:
            wait(pending_vectors, _TIMEOUT)

    def vector_of(self, query: str) -> Matrix:
        """Return the vector of a query. Errors: those of `Embedder`."""
        fingerprint = self._embedder.fingerprint
        vector = self._cache.get(query, fingerprint)
        if vector is None:
            vector = self._embed([query])[0]
            self._cache.put(query, fingerprint, vector)
        return vector

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vector of a query with its variants; not cached, not counted. Errors: those of `Embedder`."""
        return _mean(list(self._embedder.embed_queries(texts)))

    def report_failure(self, pending_vectors: Sequence[Future[Matrix]]) -> str | None:
        """Return why vectors could not be computed, and log it if that is new; None if they could."""
        if not pending_vectors:
            return None
        error = next(filter(None, map(_error, pending_vectors)), None)
        previous, self._failure = self._failure, error
        if error is None:
            return None
        self._failure_is_recent.start()
        if str(error) != str(previous):  # each search of an outage fails in the same way
            log.error("a query could not be embedded: %s", error, exc_info=None if isinstance(error, SemanticError) else error)
        return f"the embedding model failed, the answer is by words alone: {error}"

    @property
    def last_failure(self) -> ModelError | None:
        """Why the most recent query could not be embedded; None if it could, or that was more than five minutes ago."""
        failure = self._failure
        if failure is None or not self._failure_is_recent.is_active:
            return None
        kind = ModelUnreachableError if isinstance(failure, ModelUnreachableError) else ModelError
        return kind(f"a query could not be embedded: {failure}")

    @property
    def cache_hits_and_misses(self) -> tuple[int, int]:
        """How many queries were found in the cache, and how many had to be embedded."""
        return self._cache.hits, self._cache.misses

    def close(self) -> None:
        """End the threads; queries that wait for one are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _embed(self, queries: Sequence[str]) -> Matrix:
        with self._telemetry.record_embedding(EmbeddingKind.QUERY, len(queries)):
            return self._embedder.embed_queries(queries)


class _VectorCache:
    """The vectors of the last queries, by query and fingerprint of the model. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: OrderedDict[tuple[str, str], Matrix] = OrderedDict()
        self.hits = self.misses = 0

    def get(self, query: str, fingerprint: str) -> Matrix | None:
        """Return a vector; None if it is not known, which counts as a miss."""
        vector = self.find(query, fingerprint)
        if vector is None:
            with self._lock:
                self.misses += 1
        return vector

    def find(self, query: str, fingerprint: str) -> Matrix | None:
        """Return a vector; None if it is not known, which is not counted."""
        key = query, fingerprint
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self.hits += 1
                self._vectors.move_to_end(key)
            return vector

    def put(self, query: str, fingerprint: str, vector: Matrix) -> None:
        """Keep a vector, and forget the one that was not asked for longest if there are too many."""
        with self._lock:
            self._vectors[query, fingerprint] = vector
            if len(self._vectors) > CACHE_SIZE:
                self._vectors.popitem(last=False)


def mean_vector(pending_vectors: Sequence[Future[Matrix]]) -> Matrix | None:
    """Wait for the vectors of a query and its variants, and return their mean, of unit length.

    None if the model failed or took too long, or if there are no vectors.
    """
    if not pending_vectors or any(map(_error, pending_vectors)):
        return None
    return _mean([pending.result() for pending in pending_vectors])


def _mean(vectors: Sequence[Matrix]) -> Matrix:
    first, *others = vectors
    if not others:
        return first
    total: Matrix = np.sum([first, *others], axis=0)
    return total / max(float(np.linalg.norm(total)), _TINY)


def _error(pending_vector: Future[Matrix]) -> BaseException | None:
    try:
        return pending_vector.exception(_TIMEOUT)
    except (TimeoutError, CancelledError):
        return ModelUnreachableError(f"it gave no vector of a query within {_TIMEOUT:.0f} s")
