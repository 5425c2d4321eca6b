"""The embedding stage of a sync, which continues when the model fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import ModelError, ModelUnreachableError
from otterwiki_semantic.core.records import Chunk, StoredChunk
from otterwiki_semantic.core.telemetry import EmbeddingKind, Telemetry
from otterwiki_semantic.embedding import Embedder, embed_passages, vector_fingerprint
from otterwiki_semantic.indexing.recipe import MODEL_COOLDOWN_SECONDS
from otterwiki_semantic.storage import StoredVector

_MAX_FAILURES = 3

LocatedChunks = Mapping[str, tuple[str, Chunk | StoredChunk]]
"""Chunks by vector id, each with the path of a page that contains it."""

log = logging.getLogger(__name__)


class EmbeddingStage:
    """Embed the chunks of syncs; a chunk on which the model fails gets no vector.

    After three failures in a row the model is not used again in the same sync; if it cannot be reached, not for 30 s.
    """

    def __init__(self, embedder: Embedder, check_stop: Callable[[], None], telemetry: Telemetry) -> None:
        self._embedder = embedder
        self._check_stop = check_stop
        self._telemetry = telemetry
        self._failures = 0
        self._unreachable = Cooldown(MODEL_COOLDOWN_SECONDS)
        self._heading_weight = 0.0
        self._fingerprint: str | None = None
        self.texts = 0
        """Chunks embedded since this object was created."""
        self.seconds = 0.0
        self.error: str | None = None
        """The model's failure in the last sync that used it; None if there was none."""

    def retry(self) -> None:
        """Ask the model again even if its server has just been out of reach."""
        self._unreachable.stop()

    @property
    def is_resting(self) -> bool:
        """Whether the model could not be reached recently and is not used for now."""
        return self._unreachable.is_active

    @property
    def has_given_up(self) -> bool:
        """Whether the model is not used again in this sync."""
        return self._failures >= _MAX_FAILURES or self.is_resting

    def begin(self, heading_weight: float, fingerprint: str | None) -> None:
        """Start a sync of an index whose vectors have this fingerprint."""
        self._heading_weight, self._fingerprint = heading_weight, fingerprint
        self._failures = 0
        if not self.is_resting:
            self.error = None

    def embed(self, chunks: LocatedChunks) -> list[StoredVector]:
        """Return the vectors of chunks; after a failure, of the chunks that can be embedded one by one."""
        self._check_stop()
        if self.has_given_up:
            return []
        try:
            return self._embed_together(chunks)
        except ModelUnreachableError as error:
            self.error, self._failures = str(error), _MAX_FAILURES
            self._unreachable.start()
            log.warning("%s; the pages left are indexed by their words alone", error)
            return []
        except Exception as error:  # noqa: BLE001 - whatever a model raises, the other pages are indexed
            self.error = str(error) or type(error).__name__
        return self._embed_one_by_one(chunks)

    def _embed_one_by_one(self, chunks: LocatedChunks) -> list[StoredVector]:
        found: list[StoredVector] = []
        for vector, (path, chunk) in chunks.items():
            self._check_stop()
            try:
                found += self._embed_together({vector: (path, chunk)})
                self._failures = 0
            except Exception as error:
                self._failures += 1
                self.error = f"{path}: {error}"
                unforeseen = None if isinstance(error, ModelError) else error
                log.error("the page %s is indexed by its words alone: %s", path, error, exc_info=unforeseen)
                if self._failures >= _MAX_FAILURES:
                    log.error("the model fails; the pages left are indexed by their words alone")
                    break
        return found

    def _embed_together(self, chunks: LocatedChunks) -> list[StoredVector]:
        start = time.perf_counter()
        with self._telemetry.record_embedding(EmbeddingKind.PASSAGE, len(chunks)):
            embeddings = embed_passages(self._embedder, [chunk for _, chunk in chunks.values()], self._heading_weight)
        if vector_fingerprint(self._embedder, self._heading_weight) != self._fingerprint:
            raise ModelError(f"{self._embedder.name} is found to be another model than this index is made with")
        self.seconds += time.perf_counter() - start
        self.texts += len(chunks)
        return [StoredVector(vector, embedding) for vector, embedding in zip(chunks, embeddings, strict=True)]
