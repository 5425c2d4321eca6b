"""A model on a server: asked once after each start what it is, never sent more than it reads, never trusted unchecked."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from otterwiki_semantic.config import Settings
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.embedding.answers import unit_vectors
from otterwiki_semantic.embedding.asking import AT_LEISURE, SOMEBODY_WAITS, Breaker, Pace, Patience, Refusal, ask_persistently
from otterwiki_semantic.embedding.estimating import SPECIAL_TOKENS, estimate_tokens
from otterwiki_semantic.embedding.facts import Facts, KnownFacts, shown_name
from otterwiki_semantic.embedding.minilm_model import CALIBRATION
from otterwiki_semantic.embedding.whole import embed_whole, halves, joined
from otterwiki_semantic.embedding.windows import find_window
from otterwiki_semantic.errors import ModelError, ModelUnreachableError

T = TypeVar("T")
_SAMPLE = "The boiler in the cellar warms the radiators of every room from October to April."
_SAME = 0.995
"""The cosine from which on two vectors of one text are taken to be of one model: rounding makes less difference."""


class Described(NamedTuple):
    """What a server tells of its model: the most word pieces of a text, and a digest of the model; None where it does not."""

    window: int | None = None
    digest: str | None = None


class Service(Protocol):
    """One kind of server. Its methods make one request within the seconds given; errors: `Refusal`, `ModelError`."""

    place: str
    """Where it is, for people."""
    most_texts: int
    most_tokens: int

    def describe(self, seconds: float) -> Described:
        """Give what it tells of the model."""
        ...

    def embed(self, texts: Sequence[str], seconds: float, *, is_query: bool) -> Any:
        """Give a list of vectors, as they came."""
        ...

    def cure(self, status: int | None) -> str:
        """Give what a person can do about a refusal with an HTTP status (None: no answer)."""
        ...


class _Request(NamedTuple):
    """How texts are embedded: what is put before each, how long to wait, and the dimension to expect, if it is known."""

    prompt: str
    patience: Patience
    is_query: bool
    dimension: int | None


class ServedModel:
    """An `Embedder` whose model a service has. `pace` is the clock and the chance of its pauses."""

    calibration = CALIBRATION
    is_calibrated = False
    asks_server = True

    def __init__(self, settings: Settings, service: Service, pace: Pace) -> None:
        self.name = shown_name(settings)
        self._settings = settings
        self._service = service
        self._pace = pace
        self._known = KnownFacts(settings)
        self._prompts = {True: settings.query_prompt or "", False: settings.passage_prompt or ""}
        self._most_texts = service.most_texts
        self._breaker = Breaker()
        self._asking = threading.Lock()
        self._is_confirmed = False

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

    def prepare(self) -> None:
        """Ask the server what its model is, once after each start; if it is another one, the fingerprint changes."""
        self._confirm(AT_LEISURE)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder`."""
        return self._embed(texts, AT_LEISURE, is_query=False)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder`; fails at once for some seconds after the server has failed."""
        if self._breaker.is_open(self._pace.clock()):
            raise ModelUnreachableError(
                f"{self.name}: {self._service.place} has just failed, and is asked again in some seconds"
            )
        return self._embed(texts, SOMEBODY_WAITS, is_query=True)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Give an estimate: the server's tokenizer is not here."""
        return estimate_tokens(texts)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        """Give an estimate, with the prompt before passages and two special tokens."""
        prompt = self._prompts[False]
        return [count + SPECIAL_TOKENS for count in estimate_tokens([prompt + text for text in texts])]

    def _embed(self, texts: Sequence[str], patience: Patience, *, is_query: bool) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        self._confirm_unchanged(patience)
        request = _Request(self._prompts[is_query], patience, is_query, self.dimension)

        def fits(text: str) -> bool:
            return estimate_tokens([request.prompt + text])[0] + SPECIAL_TOKENS <= self.window

        return embed_whole(
            texts, fits, lambda parts: np.concatenate([self._batch(batch, request) for batch in self._batches(parts, request)])
        )

    def _confirm_unchanged(self, patience: Patience) -> None:
        before = self.fingerprint if self.dimension else None
        self._confirm(patience)
        if before not in {None, self.fingerprint}:
            raise ModelError(f"{self.name}: {self._service.place} has another model now; the index is built again with it")

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
        except Refusal as refusal:
            if len(texts) == 1:
                pieces = halves(texts[0])
                return joined(pieces, self._batch(pieces, request))
            middle = len(texts) // 2
            if refusal.is_too_many:
                self._most_texts = middle
            return np.concatenate([self._batch(half, request) for half in (texts[:middle], texts[middle:])])
        if request.dimension not in {None, vectors.shape[1]}:
            raise self._other_dimension(vectors.shape[1], request)
        return vectors

    def _vectors(self, texts: Sequence[str], request: _Request) -> Matrix:
        prompted = [request.prompt + text for text in texts]
        ask = partial(self._service.embed, prompted, is_query=request.is_query)
        return unit_vectors(self._ask(ask, request.patience), len(texts), self._service.place)

    def _other_dimension(self, found: int, request: _Request) -> ModelError:
        """Forget what was known, since it is of another model."""
        with self._asking:
            if self.dimension != found:
                self._known.learn(Facts(found, 0, "", self._service.place))
                self._is_confirmed = False
        return ModelError(
            f"{self.name}: {self._service.place} answered vectors of {found} numbers, not {request.dimension} as before: "
            "it has another model; the index is built again with it"
        )

    def _ask(self, ask: Callable[[float], T], patience: Patience) -> T:
        """Give the answer. Errors: `Refusal` of what is too long or too many, else `ModelError`."""
        try:
            answer = ask_persistently(ask, patience, self._pace)
        except Refusal as refusal:
            if refusal.is_too_long or refusal.is_too_many:
                raise
            raise self._error(refusal) from None
        self._breaker.reset()
        return answer

    def _error(self, refusal: Refusal) -> ModelError:
        reason = f"HTTP {refusal.status}" if refusal.status else refusal.reason
        if refusal.status not in {None, 401, 403} and refusal.reason:
            reason += f", {refusal.reason}"
        text = f"{self.name}: {self._service.place} does not give vectors ({reason}); {self._service.cure(refusal.status)}"
        if not refusal.is_passing:
            return ModelError(text)
        self._breaker.trip(self._pace.clock())
        return ModelUnreachableError(text)

    def _confirm(self, patience: Patience) -> None:
        """See that the facts are those of the model that the server has now."""
        if self._is_confirmed:
            return
        if not self._asking.acquire(timeout=min(patience.total, threading.TIMEOUT_MAX)):
            raise ModelUnreachableError(f"{self.name}: {self._service.place} is still being asked what model it has")
        try:
            if not self._is_confirmed:
                self._known.learn(self._asked(patience))
                has_window = self._settings.model_window or (self._known.facts and self._known.facts.window)
                self._is_confirmed = patience is AT_LEISURE or bool(has_window)
        finally:
            self._asking.release()

    def _asked(self, patience: Patience) -> Facts:
        told = self._ask(self._service.describe, patience)
        sample = self._batch([_SAMPLE], _Request("", patience, is_query=False, dimension=None))[0]
        known = self._known.facts
        if known is None or not _is_same(known, told, sample):
            digest = told.digest or hashlib.blake2b(sample.tobytes(), digest_size=12).hexdigest()
            known = Facts(len(sample), 0, digest, self._service.place, tuple(map(float, sample)))
        window = told.window or (known.window if known.place == self._service.place else 0)
        if not window and not self._settings.model_window and patience is AT_LEISURE:
            window = find_window(self._tried)
        return replace(known, window=window, place=self._service.place)

    def _tried(self, texts: Sequence[str]) -> Matrix | None:
        try:
            return self._vectors(texts, _Request("", AT_LEISURE, is_query=False, dimension=None))
        except Refusal:
            return None


def _is_same(known: Facts, told: Described, sample: Matrix) -> bool:
    """Tell whether a model is the one that is known: by its digest, else by its vector of the sample."""
    if len(sample) != known.dimension:
        return False
    if told.digest:
        return told.digest == known.digest
    return len(known.sample) == len(sample) and float(np.dot(known.sample, sample)) >= _SAME
