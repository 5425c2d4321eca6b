"""A model on a server: identified once per start, sent no text longer than it reads, and checked in every answer."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import structs

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import ModelError, ModelUnreachableError
from otterwiki_semantic.core.http import ProviderError
from otterwiki_semantic.core.redact import redact
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import ESTIMATING_COUNTER, SPECIAL_TOKENS
from otterwiki_semantic.embedding.model_info import ModelInfo, ModelWithInfo
from otterwiki_semantic.embedding.remote import retry
from otterwiki_semantic.embedding.remote.provider import (
    EmbeddingProvider,
    ModelDescription,
    is_batch_too_large,
    is_text_too_long,
)
from otterwiki_semantic.embedding.vectors import embed_long_texts, mean_vector, split_in_half, unit_vectors

T = TypeVar("T")
_INTERACTIVE = (retry.INTERACTIVE, retry.INTERACTIVE_BATCH)
_SAMPLE = "The boiler in the cellar warms the radiators of every room from October to April."
_PAUSE_SECONDS = 10.0
"""How long queries fail immediately after the server has failed."""
_IDENTIFIED_SECONDS = 3600.0
"""How long the model is assumed to be the same, unless the server was away: it may return with a different one."""
_SAME = 0.995
"""The cosine from which two vectors of one text count as the same model's. Rounding makes less difference."""

_PROBE_SIZES = (2048, 1024, 512, 256)
"""Numbers of words in the probe texts. Each word is one token for most tokenizers."""
_COMMON_SHARE = 0.75
_SAME_COSINE = 0.9999
"""The cosine from which the model has read the same of both texts: it cut off their different ends."""
_COMMON_WORDS = ("river", "stone", "garden", "winter", "letter", "bridge", "market", "candle", "forest", "window", "harbour")
_LAST_WORDS = (
    ("engine", "voltage", "switch", "cable", "motor", "sensor"),
    ("apple", "bread", "honey", "butter", "onion", "pepper"),
)


class _Request(NamedTuple):
    prompt: str
    policy: retry.RetryPolicy
    deadline: float
    """When the whole request must be done, in the time of `time.monotonic`."""
    is_query: bool
    dimension: int | None


class RemoteModel(ModelWithInfo):
    """An `Embedder` for a model on a server."""

    asks_server = True
    device = ""
    word_counter = ESTIMATING_COUNTER

    def __init__(self, settings: Settings, provider: EmbeddingProvider) -> None:
        super().__init__(settings)
        self._provider = provider
        self._prompts = {True: settings.query_prompt or "", False: settings.passage_prompt or ""}
        self._max_texts = provider.max_texts
        self._cooldown = Cooldown(_PAUSE_SECONDS)
        self._identifying = threading.Lock()
        self._identified = Cooldown(_IDENTIFIED_SECONDS)

    @property
    def overhead(self) -> int:
        prompt = self._prompts[False]
        return min(SPECIAL_TOKENS + (self.count_tokens([prompt])[0] if prompt else 0), self.window // 2)

    def prepare(self) -> None:
        """Ask the server for its model, unless this was done recently; a different model changes the fingerprint."""
        with self._identifying:
            if not self._identified.is_active:
                self._learn(self._identify())
                self._identified.start()

    def embed(self, texts: Sequence[str]) -> Matrix:
        return self._embed_patiently(texts, is_query=False)

    def embed_queries(self, texts: Sequence[str], *, interactive: bool = True) -> Matrix:
        """If interactive, fail immediately for some seconds after a server failure, and while the model is unknown."""
        if not interactive:
            return self._embed_patiently(texts, is_query=True)
        if self._cooldown.is_active:
            raise ModelUnreachableError(f"{self.name}: {self._provider.place} has just failed; it is retried in a few seconds")
        if texts and not self.dimension:
            raise ModelUnreachableError(
                f"{self.name}: the model of {self._provider.place} is not known yet; it is asked as soon as it can be reached"
            )
        policy = retry.INTERACTIVE if len(texts) == 1 else retry.INTERACTIVE_BATCH
        return self._embed(texts, self._request(policy, is_query=True))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return estimates: the model's own tokenizer is on the server."""
        return self.word_counter.count_tokens(texts)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        prompt = self._prompts[False]
        return [count + SPECIAL_TOKENS for count in self.count_tokens([prompt + text for text in texts])]

    def _request(self, policy: retry.RetryPolicy, *, is_query: bool) -> _Request:
        return _Request(self._prompts[is_query], policy, policy.deadline(), is_query, self.dimension or None)

    def _embed_patiently(self, texts: Sequence[str], *, is_query: bool) -> Matrix:
        """Embed texts in the background. Errors: `ModelError` if the server has a different model now."""
        if texts:
            before = self.fingerprint if self.dimension else None
            self.prepare()
            if before not in {None, self.fingerprint}:
                raise ModelError(f"{self.name}: {self._provider.place} has another model now; the index is rebuilt with it")
        return self._embed(texts, self._request(retry.INDEXING, is_query=is_query))

    def _embed(self, texts: Sequence[str], request: _Request) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)

        def fits(text: str) -> bool:
            return self.count_tokens([request.prompt + text])[0] + SPECIAL_TOKENS <= self.window

        def embed(parts: Sequence[str]) -> Matrix:
            return np.concatenate([self._embed_batch(batch, request) for batch in self._batches(parts, request)])

        return embed_long_texts(texts, fits, embed)

    def _batches(self, texts: Sequence[str], request: _Request) -> Iterator[list[str]]:
        batch: list[str] = []
        tokens = 0
        for text, count in zip(texts, self.count_tokens([request.prompt + text for text in texts]), strict=True):
            if batch and (len(batch) >= self._max_texts or tokens + count > self._provider.max_tokens):
                yield batch
                batch, tokens = [], 0
            batch.append(text)
            tokens += count
        yield batch

    def _embed_batch(self, texts: Sequence[str], request: _Request) -> Matrix:
        """Return the vectors of one request; split it in half if it is too large for the server."""
        try:
            vectors = self._vectors(texts, request)
        except ProviderError as refusal:
            is_too_large = is_batch_too_large(refusal)
        else:
            if request.dimension not in {None, vectors.shape[1]}:
                raise self._other_dimension(vectors.shape[1], request)
            return vectors
        if len(texts) == 1:
            parts = split_in_half(texts[0])
            return mean_vector(parts, self._embed_batch(parts, request))
        middle = len(texts) // 2
        if is_too_large:
            self._max_texts = middle
        return np.concatenate([self._embed_batch(half, request) for half in (texts[:middle], texts[middle:])])

    def _vectors(self, texts: Sequence[str], request: _Request) -> Matrix:
        prompted = [request.prompt + text for text in texts]
        embed = partial(self._provider.embed, prompted, is_query=request.is_query)
        return unit_vectors(self._call(embed, request, texts), len(texts), self._provider.place)

    def _other_dimension(self, found: int, request: _Request) -> ModelError:
        """Forget the known properties of the model: the server has a different one."""
        if self.dimension != found:
            self._learn(ModelInfo(found, 0, "", self._provider.place))
            self._identified.stop()
        return ModelError(
            f"{self.name}: {self._provider.place} answered vectors of {found} numbers, not {request.dimension} as before: "
            "it has another model; the index is rebuilt with it"
        )

    def _call(self, call: Callable[[float], T], request: _Request, texts: Sequence[str] = ()) -> T:
        """Return the answer of `call`. Errors: `ProviderError` if the batch or a text is too large, else `ModelError`."""
        try:
            answer = retry.call_with_retries(call, request.policy, request.deadline)
        except ProviderError as refusal:
            if is_text_too_long(refusal) or is_batch_too_large(refusal):
                raise
            message = self._message(refusal, request, texts)
            if not refusal.is_temporary:
                raise ModelError(message) from None
            self._identified.stop()
            # Ollama fails if a model returns NaN for one text of a batch.
            may_be_one_text = request.policy is retry.INTERACTIVE_BATCH and (refusal.status or 0) >= 500
            if not request.is_query or (request.policy in _INTERACTIVE and not may_be_one_text):
                self._cooldown.start()
            raise ModelUnreachableError(message) from None
        self._cooldown.stop()
        return answer

    def _message(self, refusal: ProviderError, request: _Request, texts: Sequence[str]) -> str:
        """Explain a refusal, quoting the server only if it repeats no text, and never for a query."""
        reason = ""
        if not request.is_query and refusal.status not in {401, 403}:
            prompted = [request.prompt + text for text in texts] if request.prompt else []
            reason = redact(refusal.server_message, self._provider.secrets, [*texts, *prompted])
        said = ", ".join(filter(None, (f"HTTP {refusal.status}" if refusal.status else "", reason or refusal.reason)))
        return f"{self.name}: {self._provider.place} does not give vectors ({said}); {self._provider.remedy(refusal.status)}"

    def _identify(self) -> ModelInfo:
        request = self._request(retry.IDENTIFICATION, is_query=False)._replace(prompt="", dimension=None)
        description = self._call(self._provider.describe, request)
        sample = self._embed_batch([_SAMPLE], request)[0]
        info = self._info
        if not _is_same(info, description, sample):
            digest = description.digest or hashlib.blake2b(sample.tobytes(), digest_size=12).hexdigest()
            info = ModelInfo(len(sample), 0, digest, self._provider.place, tuple(map(float, sample)))
        window = description.window or (info.window if info.place == self._provider.place else 0)
        if not window and not self._settings.model_window:
            window = find_window(partial(self._embed_if_short_enough, request._replace(policy=retry.WINDOW_PROBE)))
        return structs.replace(info, window=window, place=self._provider.place)

    def _embed_if_short_enough(self, request: _Request, texts: Sequence[str]) -> Matrix | None:
        try:
            return self._vectors(texts, request)
        except ProviderError:
            return None


def _is_same(info: ModelInfo, description: ModelDescription, sample: Matrix) -> bool:
    """Whether a model is the known one, by its digest or else by its vector of the sample."""
    if len(sample) != info.dimension:
        return False
    if description.digest:
        return description.digest == info.digest
    return len(info.sample) == len(sample) and float(np.dot(info.sample, sample)) >= _SAME


def find_window(embed: Callable[[Sequence[str]], Matrix | None]) -> int:
    """Return a lower bound of the model's context window; `embed` returns None for texts refused as too long."""
    for words in _PROBE_SIZES:
        common = [*islice(cycle(_COMMON_WORDS), int(words * _COMMON_SHARE))]
        vectors = embed([" ".join([*common, *islice(cycle(end), words - len(common))]) for end in _LAST_WORDS])
        if vectors is not None and float(np.dot(*vectors)) <= _SAME_COSINE:
            return int(words * _COMMON_SHARE)
    return int(_PROBE_SIZES[-1] * _COMMON_SHARE / 2)
