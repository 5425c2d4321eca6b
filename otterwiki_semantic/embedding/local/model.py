"""A model in this process: opened on first use, reads every text whole, and sends nothing to other machines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from otterwiki_semantic.content.chunking import WordTokenCounter
from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import ModelError, ModelOpeningError, ModelUnreachableError
from otterwiki_semantic.core.redact import redact
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.model_info import ModelInfo, ModelWithInfo
from otterwiki_semantic.embedding.vectors import embed_long_texts, unit_vectors

_QUERY_SECONDS = 0.5
"""The longest time that a query waits for another thread to open the model."""
_PAUSE_SECONDS = 60.0
"""How long queries fail immediately after the model could not be opened."""


class Encoder(Protocol):
    """An opened model."""

    digest: str
    dimension: int
    window: int
    special_tokens: int
    device: str
    word_counter: WordTokenCounter | None
    """A counter of the same tokens for any process; None if only this encoder can count them."""

    def prompt(self, *, is_query: bool) -> str:
        """Return the prefix for each query, or for each passage."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special ones."""

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Any:
        """Return the vectors of texts that fit into the context window; passages run at low priority."""


class LocalModel(ModelWithInfo):
    """An `Embedder` with a model that `open_encoder` opens."""

    asks_server = False

    def __init__(self, settings: Settings, open_encoder: Callable[[Settings], Encoder]) -> None:
        super().__init__(settings)
        self._open_encoder = open_encoder
        self._opening = threading.Lock()
        self._cooldown = Cooldown(_PAUSE_SECONDS)
        self._encoder: Encoder | None = None

    @property
    def device(self) -> str:
        return self._encoder.device if self._encoder else ""

    @property
    def word_counter(self) -> WordTokenCounter | None:
        return self._opened().word_counter

    def prepare(self) -> None:
        self._opened()

    def embed(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, is_query=False, interactive=False)

    def embed_queries(self, texts: Sequence[str], *, interactive: bool = True) -> Matrix:
        """If interactive, fail soon while another thread opens the model, and immediately after opening has failed."""
        if interactive and self._encoder is None and self._cooldown.is_active:
            raise ModelUnreachableError(f"{self.name} could not be opened just now; it is tried again in a minute")
        return self._embed(texts, is_query=True, interactive=interactive)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._opened().count_tokens(texts)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        encoder = self._opened()
        prompt = encoder.prompt(is_query=False)
        return [count + encoder.special_tokens for count in encoder.count_tokens([prompt + text for text in texts])]

    def _embed(self, texts: Sequence[str], *, is_query: bool, interactive: bool) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        before = self.fingerprint if self.dimension else None
        encoder = self._opened(_QUERY_SECONDS if interactive else -1)
        if before not in {None, self.fingerprint}:
            raise ModelError(f"{self.name} is not the model that it was; the index is rebuilt with it")
        prompt = encoder.prompt(is_query=is_query)

        def fits(text: str) -> bool:
            return encoder.count_tokens([prompt + text])[0] + encoder.special_tokens <= self.window

        def embed(parts: Sequence[str]) -> Matrix:
            return unit_vectors(encoder.encode(parts, is_query=is_query), len(parts), self.name)

        return embed_long_texts(texts, fits, embed)

    def _opened(self, seconds: float = -1) -> Encoder:
        """Return the opened model; wait up to `seconds` (-1: without limit) while another thread opens it."""
        if self._encoder is None:
            if not self._opening.acquire(timeout=seconds):
                raise ModelOpeningError(f"{self.name} is being opened; it answers as soon as that is done")
            try:
                self._encoder = self._encoder or self._open()
            except ModelError:
                self._cooldown.start()
                raise
            finally:
                self._opening.release()
        return self._encoder

    def _open(self) -> Encoder:
        """Open the model and read its properties. Library errors become `ModelError`, because they may contain the key."""
        try:
            encoder = self._open_encoder(self._settings)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - such as an OSError of an incompatible driver
            reason = redact(f"{type(error).__name__}: {error}", (self._settings.model_key,))
            raise ModelError(
                f"{self.name} cannot be opened ({reason}); install the packages that it needs again, in versions for this "
                "machine and its drivers, or set SEMANTIC_MODEL to another model"
            ) from None
        overhead = encoder.special_tokens + sum(encoder.count_tokens([encoder.prompt(is_query=False)]))
        self._learn(ModelInfo(encoder.dimension, encoder.window, encoder.digest, overhead=overhead))
        return encoder
