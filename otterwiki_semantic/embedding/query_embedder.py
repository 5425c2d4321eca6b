"""Caches of vectors: of queries, which are embedded in the background, and of the paragraphs of drafts."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from threading import Lock

import numpy as np

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import ModelError, ModelOpeningError, ModelUnreachableError, SemanticError
from otterwiki_semantic.core.telemetry import EmbeddingKind, Telemetry
from otterwiki_semantic.embedding.base import Embedder, Matrix

CACHE_SIZE = 512
_CACHED_PASSAGES = 1_024
_THREADS, _THREADS_FOR_SERVER = 2, 16
_TINY = 1e-9
_TIMEOUT = 10.0
"""An upper limit for every model; models have shorter timeouts of their own."""
_FAILURE_SHOWN_SECONDS = 300.0
"""How long a failure is reported, unless a later query succeeds."""

log = logging.getLogger(__name__)


class QueryEmbedder:
    """Embeds queries with one model, which may turn out to be a different one at any time."""

    def __init__(self, embedder: Embedder, telemetry: Telemetry) -> None:
        self._embedder = embedder
        self._telemetry = telemetry
        self._threads = ThreadPoolExecutor(_THREADS_FOR_SERVER if embedder.asks_server else _THREADS, "query-embedding")
        self._cached: OrderedDict[tuple[str, str], Future[Matrix]] = OrderedDict()
        """Finished and pending vectors, by query and model fingerprint; most recently used last."""
        self._hits = self._misses = 0
        self._lock = Lock()
        self._failure: BaseException | None = None
        """Why the last query could not be embedded, or None if it could."""
        self._failure_is_recent = Cooldown(_FAILURE_SHOWN_SECONDS)

    def submit(self, queries: Iterable[str]) -> dict[str, Future[Matrix]]:
        """Start to embed queries; return the pending vector of each.

        A server gets a single request for all queries that are neither cached nor pending. Any other model embeds each query
        separately, because a vector could depend on the other texts in its batch.
        """
        fingerprint = self._embedder.fingerprint
        new: dict[str, Future[Matrix]] = {}
        with self._lock:
            pending = {query: self._look_up(query, fingerprint, new) for query in dict.fromkeys(queries)}
            while len(self._cached) > CACHE_SIZE:
                self._cached.popitem(last=False)
        batches = [new] if self._embedder.asks_server and new else [{query: vector} for query, vector in new.items()]
        for batch in batches:
            self._threads.submit(self._embed_batch, batch)
        return pending

    def wait_for_server(self, pending_vectors: Sequence[Future[Matrix]]) -> None:
        """Wait if a server computes the vectors: meanwhile this machine can answer other searches."""
        if self._embedder.asks_server:
            wait(pending_vectors, _TIMEOUT)

    def vector_of(self, query: str) -> Matrix:
        """Return the vector of a query. Raises the errors of `Embedder`."""
        return self.submit([query])[query].result()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vector of a query with its variants; neither cached nor counted. Raises the errors of `Embedder`."""
        return _mean(list(self._embedder.embed_queries(texts)))

    def report_failures(self, pending: Sequence[Sequence[Future[Matrix]]]) -> list[str | None]:
        """Return why each query lacks a vector, or None if it has all; log failures that are new."""
        errors = [next(filter(None, map(_error, vectors)), None) for vectors in pending]
        if any(pending):
            error = next((each for each in errors if each and not isinstance(each, ModelOpeningError)), None)
            previous, self._failure = self._failure, error
            if error is not None:
                self._failure_is_recent.start()
                if str(error) != str(previous):  # all searches during an outage fail in the same way
                    details = None if isinstance(error, SemanticError) else error
                    log.error("a query could not be embedded: %s", error, exc_info=details)
        return [f"the embedding model failed, the answer is by words alone: {each}" if each else None for each in errors]

    @property
    def last_failure(self) -> ModelError | None:
        """Why the most recent query could not be embedded; None if it could, or if that was more than five minutes ago."""
        failure = self._failure
        if failure is None or not self._failure_is_recent.is_active:
            return None
        kind = ModelUnreachableError if isinstance(failure, ModelUnreachableError) else ModelError
        return kind(f"a query could not be embedded: {failure}")

    @property
    def cache_hits_and_misses(self) -> tuple[int, int]:
        """The number of queries found in the cache, and of queries that had to be embedded."""
        return self._hits, self._misses

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for vector in self._cached.values():
                vector.cancel()

    def _look_up(self, query: str, fingerprint: str, new: dict[str, Future[Matrix]]) -> Future[Matrix]:
        """Return the cached or pending vector of a query, or add one to the cache and to `new`."""
        key = query, fingerprint
        vector = self._cached.get(key)
        if vector is None or vector.cancelled() or (vector.done() and vector.exception() is not None):
            self._misses += 1
            vector = self._cached[key] = new[query] = Future()
        else:
            self._hits += 1
        self._cached.move_to_end(key)
        return vector

    def _embed_batch(self, batch: Mapping[str, Future[Matrix]]) -> None:
        """Embed queries together; if that fails, embed each separately, because a single query may be the cause."""
        try:
            with self._telemetry.record_embedding(EmbeddingKind.QUERY, len(batch)):
                vectors = self._embedder.embed_queries(list(batch))
        except Exception as error:  # noqa: BLE001 - passed to the caller that waits for the vector
            if len(batch) > 1:
                for query, pending in batch.items():
                    self._threads.submit(self._embed_batch, {query: pending})
            else:
                for pending in batch.values():
                    pending.set_exception(error)
        else:
            for pending, vector in zip(batch.values(), vectors, strict=True):
                pending.set_result(vector)


class CachedEmbedder:
    """Embeds passages that are embedded repeatedly while somebody types, and caches up to 1,024 vectors."""

    def __init__(self, embedder: Embedder) -> None:
        self.model = embedder
        self._cached: dict[tuple[str, str], Matrix] = {}
        """Vectors by text and model fingerprint; when it is full, it starts again with those in use."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, as rows. Raises the errors of `Embedder`."""
        fingerprint = self.model.fingerprint
        cached = self._cached
        known = {text: cached[text, fingerprint] for text in texts if (text, fingerprint) in cached}
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            known |= zip(new, self.model.embed(new), strict=True)
            kept = cached if len(cached) + len(new) <= _CACHED_PASSAGES else {}
            self._cached = kept | {(text, fingerprint): vector for text, vector in known.items()}
        return np.array([known[text] for text in texts], dtype=np.float32)


def mean_vector(pending_vectors: Sequence[Future[Matrix]]) -> Matrix | None:
    """Wait for the vectors of a query and its variants; return their mean as a unit vector, or None if one failed."""
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
