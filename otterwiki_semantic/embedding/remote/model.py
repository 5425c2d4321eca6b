"""A model on a server: asked once after each start what it is, never sent more than it reads, never trusted unchecked."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import ModelError, ModelUnreachableError
from otterwiki_semantic.core.http import ProviderError
from otterwiki_semantic.core.redact import quote
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.calibration import BUNDLED_CALIBRATION
from otterwiki_semantic.embedding.local.token_estimate import SPECIAL_TOKENS, estimate_tokens
from otterwiki_semantic.embedding.model_info import ModelInfo, ModelInfoCache, shown_name
from otterwiki_semantic.embedding.remote.retry import (
    ASKED_WHAT_IT_IS,
    AT_LEISURE,
    SOMEBODY_WAITS,
    TRYING_ITS_WINDOW,
    Pace,
    RetryPolicy,
    ask_persistently,
)
from otterwiki_semantic.embedding.remote.window_probe import find_window
from otterwiki_semantic.embedding.vectors import embed_whole, halves, joined, unit_vectors

T = TypeVar("T")
_SAMPLE = "The boiler in the cellar warms the radiators of every room from October to April."
_PAUSE_SECONDS = 10.0
"""How long queries fail at once after the server has failed."""
_CONFIRMED_SECONDS = 3600.0
"""How long it is not asked again whether the model is the same, unless the server was away: it may come back with another."""
_SAME = 0.995
"""The cosine from which on two vectors of one text are taken to be of one model: rounding makes less difference."""


class ModelDescription(NamedTuple):
    """What a server tells of its model: the most word pieces of a text, and a digest of the model; None where it does not."""

    window: int | None = None
    digest: str | None = None


class EmbeddingProvider(Protocol):
    """One kind of server. Its methods make one request within the seconds given; errors: `ProviderError`, `ModelError`."""

    most_texts: int
    most_tokens: int

    @property
    def place(self) -> str:
        """Where it is, for people."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """What may be shown to nobody."""
        ...

    def describe(self, seconds: float) -> ModelDescription:
        """Give what it tells of the model."""
        ...

    def embed(self, texts: Sequence[str], seconds: float, *, is_query: bool) -> Any:
        """Give a list of vectors, as they came."""
        ...

    def cure(self, status: int | None) -> str:
        """Give what a person can do about a refusal with an HTTP status (None: no answer)."""
        ...


class _Request(NamedTuple):
    """How texts are embedded: what is put before each, how long to wait, and the dimension to expect, if it is known.

    `until` is the moment at which all of it has to be done; `is_waited_for` tells whether a person waits for it.
    """

    prompt: str
    patience: RetryPolicy
    until: float
    is_query: bool
    dimension: int | None

    @property
    def is_waited_for(self) -> bool:
        return self.patience is SOMEBODY_WAITS


class RemoteModel:
    """An `Embedder` whose model a service has. `pace` is the clock and the chance of its pauses."""

    calibration = BUNDLED_CALIBRATION
    is_calibrated = False
    asks_server = True

    def __init__(self, settings: Settings, service: EmbeddingProvider, pace: Pace) -> None:
        self.name = shown_name(settings)
        self._settings = settings
        self._service = service
        self._pace = pace
        self._known = ModelInfoCache(settings)
        self._prompts = {True: settings.query_prompt or "", False: settings.passage_prompt or ""}
        self._most_texts = service.most_texts
        self._cooldown = Cooldown(pace.clock)
        self._asking = threading.Lock()
        self._confirmed = Cooldown(pace.clock)

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
        """See `Embedder`; an estimate."""
        return min(self._overhead, self.window // 2)

    def prepare(self) -> None:
        """Ask the server what its model is, once after each start; if it is another one, the fingerprint changes."""
        with self._asking:
            if not self._confirmed.is_active:
                self._known.learn(self._asked())
                self._confirmed.start(_CONFIRMED_SECONDS)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder`."""
        return self._embed_at_leisure(texts, is_query=False)

    def embed_queries(self, texts: Sequence[str], *, at_leisure: bool = False) -> Matrix:
        """See `Embedder`; fails at once for some seconds after the server has failed, and while its model is not known."""
        if at_leisure:
            return self._embed_at_leisure(texts, is_query=True)
        if self._cooldown.is_active:
            raise ModelUnreachableError(
                f"{self.name}: {self._service.place} has just failed, and is asked again in some seconds"
            )
        if texts and not self.dimension:
            raise ModelUnreachableError(
                f"{self.name}: what model {self._service.place} has is not known yet; it is being asked, if it can be reached"
            )
        return self._embed(texts, self._request(SOMEBODY_WAITS, is_query=True))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Give an estimate: the server's tokenizer is not here."""
        return estimate_tokens(texts)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        """Give an estimate, with the prompt before passages and two special tokens."""
        prompt = self._prompts[False]
        return [count + SPECIAL_TOKENS for count in estimate_tokens([prompt + text for text in texts])]

    @cached_property
    def _overhead(self) -> int:
        prompt = self._prompts[False]
        return SPECIAL_TOKENS + (estimate_tokens([prompt])[0] if prompt else 0)

    def _request(self, patience: RetryPolicy, *, is_query: bool) -> _Request:
        return _Request(
            self._prompts[is_query], patience, self._pace.clock() + patience.total, is_query, self.dimension or None
        )

    def _embed_at_leisure(self, texts: Sequence[str], *, is_query: bool) -> Matrix:
        """Embed texts that no person waits for, with the model that the server has now."""
        if texts:
            before = self.fingerprint if self.dimension else None
            self.prepare()
            if before not in {None, self.fingerprint}:
                raise ModelError(f"{self.name}: {self._service.place} has another model now; the index is built again with it")
        return self._embed(texts, self._request(AT_LEISURE, is_query=is_query))

    def _embed(self, texts: Sequence[str], request: _Request) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)

        def fits(text: str) -> bool:
            return estimate_tokens([request.prompt + text])[0] + SPECIAL_TOKENS <= self.window

        return embed_whole(
            texts, fits, lambda parts: np.concatenate([self._batch(batch, request) for batch in self._batches(parts, request)])
        )

    def _batches(self, texts: Sequence[str], request: _Request) -> Iterator[list[str]]:
        batch: list[str] = []
        tokens = 0
        for text, count in zip(texts, estimate_tokens([request.prompt + text for text in texts]), strict=True):
            if batch and (len(batch) >= self._most_texts or tokens + count > self._service.most_tokens):
                yield batch
                batch, tokens = [], 0
            batch.append(text)
            tokens += count
        yield batch

    def _batch(self, texts: Sequence[str], request: _Request) -> Matrix:
        """Give the vectors of one request; if it is too much for the server, of its halves."""
        try:
            vectors = self._vectors(texts, request)
        except ProviderError as refusal:
            is_too_many = refusal.is_too_many
        else:
            return self._checked(vectors, request)
        if len(texts) == 1:
            pieces = halves(texts[0])
            return joined(pieces, self._batch(pieces, request))
        middle = len(texts) // 2
        if is_too_many:
            self._most_texts = middle
        return np.concatenate([self._batch(half, request) for half in (texts[:middle], texts[middle:])])

    def _checked(self, vectors: Matrix, request: _Request) -> Matrix:
        if request.dimension not in {None, vectors.shape[1]}:
            raise self._other_dimension(vectors.shape[1], request)
        return vectors

    def _vectors(self, texts: Sequence[str], request: _Request) -> Matrix:
        prompted = [request.prompt + text for text in texts]
        ask = partial(self._service.embed, prompted, is_query=request.is_query)
        return unit_vectors(self._ask(ask, request, texts), len(texts), self._service.place)

    def _other_dimension(self, found: int, request: _Request) -> ModelError:
        """Forget what was known, since it is of another model."""
        if self._asking.acquire(blocking=False):  # else the server is being asked what it has
            try:
                if self.dimension != found:
                    self._known.learn(ModelInfo(found, 0, "", self._service.place))
                    self._confirmed.stop()
            finally:
                self._asking.release()
        return ModelError(
            f"{self.name}: {self._service.place} answered vectors of {found} numbers, not {request.dimension} as before: "
            "it has another model; the index is built again with it"
        )

    def _ask(self, ask: Callable[[float], T], request: _Request, texts: Sequence[str] = ()) -> T:
        """Give the answer. Errors: `ProviderError` of what is too long or too many, else `ModelError`."""
        try:
            answer = ask_persistently(ask, request.patience, self._pace, request.until)
        except ProviderError as refusal:
            if refusal.is_too_long or refusal.is_too_many:
                raise
            if refusal.is_passing and (request.is_waited_for or not request.is_query):
                self._cooldown.start(_PAUSE_SECONDS)
            raise self._error(refusal, self._told(refusal, request, texts)) from None
        self._cooldown.stop()
        return answer

    def _told(self, refusal: ProviderError, request: _Request, texts: Sequence[str]) -> str:
        """Give why a server refuses: in its own words only what repeats no text, and nothing at all of what a person asks."""
        if request.is_query or refusal.status in {401, 403}:
            return refusal.reason
        prompted = [request.prompt + text for text in texts] if request.prompt else []
        return quote(refusal.said, self._service.secrets, [*texts, *prompted]) or refusal.reason

    def _error(self, refusal: ProviderError, told: str) -> ModelError:
        reason = ", ".join(filter(None, (f"HTTP {refusal.status}" if refusal.status else "", told)))
        text = f"{self.name}: {self._service.place} does not give vectors ({reason}); {self._service.cure(refusal.status)}"
        if not refusal.is_passing:
            return ModelError(text)
        self._confirmed.stop()
        return ModelUnreachableError(text)

    def _asked(self) -> ModelInfo:
        request = self._request(ASKED_WHAT_IT_IS, is_query=False)._replace(prompt="", dimension=None)
        told = self._ask(self._service.describe, request)
        sample = self._batch([_SAMPLE], request)[0]
        known = self._known.facts
        if known is None or not _is_same(known, told, sample):
            digest = told.digest or hashlib.blake2b(sample.tobytes(), digest_size=12).hexdigest()
            known = ModelInfo(len(sample), 0, digest, self._service.place, tuple(map(float, sample)))
        window = told.window or (known.window if known.place == self._service.place else 0)
        if not window and not self._settings.model_window:
            window = find_window(partial(self._tried, request._replace(patience=TRYING_ITS_WINDOW)))
        return replace(known, window=window, place=self._service.place)

    def _tried(self, request: _Request, texts: Sequence[str]) -> Matrix | None:
        try:
            return self._vectors(texts, request)
        except ProviderError:
            return None


def _is_same(known: ModelInfo, told: ModelDescription, sample: Matrix) -> bool:
    """Tell whether a model is the one that is known: by its digest, else by its vector of the sample."""
    if len(sample) != known.dimension:
        return False
    if told.digest:
        return told.digest == known.digest
    return len(known.sample) == len(sample) and float(np.dot(known.sample, sample)) >= _SAME
