"""A model that runs in this process: opened on first use, every text read whole, nothing of it leaves the machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import ModelError, ModelUnreachableError
from otterwiki_semantic.core.redact import quote
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.calibration import BUNDLED_CALIBRATION
from otterwiki_semantic.embedding.model_info import ModelInfo, ModelInfoCache, shown_name
from otterwiki_semantic.embedding.vectors import embed_whole, unit_vectors

_QUERY_SECONDS = 0.5
_PAUSE_SECONDS = 60


class Encoder(Protocol):
    """An opened model. `window` is the most word pieces of one text, `special_tokens` how many it adds itself."""

    digest: str
    dimension: int
    window: int
    special_tokens: int

    def prompt(self, *, is_query: bool) -> str:
        """Give what is put before each query, or each passage."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Give the number of word pieces of each text, without special ones."""
        ...

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Any:
        """Give the vectors of texts, none of which is longer than the window; passages at low priority."""
        ...


class LocalModel:
    """An `Embedder` whose model `open_encoder` opens."""

    calibration = BUNDLED_CALIBRATION
    is_calibrated = False
    asks_server = False

    def __init__(self, settings: Settings, open_encoder: Callable[[Settings], Encoder]) -> None:
        self.name = shown_name(settings)
        self._settings = settings
        self._open_encoder = open_encoder
        self._known = ModelInfoCache(settings)
        self._opening = threading.Lock()
        self._cooldown = Cooldown()
        self._encoder: Encoder | None = None

    @property
    def fingerprint(self) -> str:
        """See `Embedder`."""
        return self._known.fingerprint

    @property
    def dimension(self) -> int:
        """See `Embedder`."""
        return self._known.dimension

    @property
    def window(self) -> int:
        """See `Embedder`."""
        return self._known.window

    @property
    def overhead(self) -> int:
        """See `Embedder`."""
        return min(self._known.overhead, self.window // 2)

    def prepare(self) -> None:
        """Open the model; if it is another one than it was, the fingerprint changes."""
        self._opened()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder`."""
        return self._embed(texts, is_query=False, is_waited_for=False)

    def embed_queries(self, texts: Sequence[str], *, at_leisure: bool = False) -> Matrix:
        """See `Embedder`; fails soon while another thread opens the model."""
        if not at_leisure and self._encoder is None and self._cooldown.is_active:
            raise ModelUnreachableError(f"{self.name} could not be opened just now, and is tried again in some seconds")
        return self._embed(texts, is_query=True, is_waited_for=not at_leisure)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See `Embedder`; counted with the model's own tokenizer."""
        return self._opened().count_tokens(texts)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        """See `Embedder`; with the prompt before passages."""
        encoder = self._opened()
        prompt = encoder.prompt(is_query=False)
        return [count + encoder.special_tokens for count in encoder.count_tokens([prompt + text for text in texts])]

    def _embed(self, texts: Sequence[str], *, is_query: bool, is_waited_for: bool) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        before = self.fingerprint if self.dimension else None
        encoder = self._opened(_QUERY_SECONDS if is_waited_for else -1)
        if before not in {None, self.fingerprint}:
            raise ModelError(f"{self.name} is not the model that it was; the index is built again with it")
        prompt = encoder.prompt(is_query=is_query)

        def fits(text: str) -> bool:
            return encoder.count_tokens([prompt + text])[0] + encoder.special_tokens <= self.window

        def ask(parts: Sequence[str]) -> Matrix:
            return unit_vectors(encoder.encode(parts, is_query=is_query), len(parts), self.name)

        return embed_whole(texts, fits, ask)

    def _opened(self, seconds: float = -1) -> Encoder:
        """Give the opened model; whoever waits for another thread to open it does so for some seconds at most, if told."""
        if self._encoder is not None:
            return self._encoder
        if not self._opening.acquire(timeout=seconds):
            raise ModelUnreachableError(f"{self.name} is being opened; it answers once that is done")
        try:
            if self._encoder is None:
                encoder = self._new()
                overhead = encoder.special_tokens + sum(encoder.count_tokens([encoder.prompt(is_query=False)]))
                self._known.learn(ModelInfo(encoder.dimension, encoder.window, encoder.digest, overhead=overhead))
                self._encoder = encoder
            return self._encoder
        except ModelError:
            self._cooldown.start(_PAUSE_SECONDS)
            raise
        finally:
            self._opening.release()

    def _new(self) -> Encoder:
        """Open the model. Errors: `ModelError`, whatever its library raises, which may hold the key."""
        try:
            return self._open_encoder(self._settings)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - such as an OSError of a driver that does not fit
            said = quote(f"{type(error).__name__}: {error}", (self._settings.model_key,))
            failure = ModelError(
                f"{self.name} cannot be opened ({said}); install the packages that it needs again, such as fit this machine "
                "and its drivers, or set SEMANTIC_MODEL to another model"
            )
        raise failure
