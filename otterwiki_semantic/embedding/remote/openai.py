"""Servers with the OpenAI embeddings protocol: OpenAI, vLLM, Text Embeddings Inference, LM Studio, llama.cpp and many more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any
from urllib.parse import quote

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.http import JsonClient, ProviderError
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.model_info import check_not_reserved, model_options
from otterwiki_semantic.embedding.remote.provider import KEY_REMEDY, ModelDescription, model_client

DEFAULT_URL = "https://api.openai.com/v1"
_WINDOWS = ("max_model_len", "max_input_length", "max_input_tokens", "context_length", "max_context_length", "context_window")
_METADATA_SECONDS = 10
_RESERVED = ("input", "model", "encoding_format")


class OpenAIProvider:
    """An `EmbeddingProvider` for this protocol."""

    max_texts = 2048
    max_tokens = 200_000
    """OpenAI allows 300,000, by its own count."""

    def __init__(self, settings: Settings) -> None:
        self._model = settings.model.partition(":")[2]
        self._key = settings.model_key
        self._options = model_options(settings)
        self.place = settings.model_url or DEFAULT_URL
        self.secrets = (settings.model_key,)

    @cached_property
    def _client(self) -> JsonClient:
        return model_client(self.place, self._key)

    def describe(self, seconds: float) -> ModelDescription:
        """Return the context window, if the server reports it in one of the common ways; few do."""
        return ModelDescription(window=next(filter(None, map(_window, self._descriptions(seconds))), None))

    def embed(self, texts: Sequence[str], seconds: float, *, is_query: bool) -> Any:  # noqa: ARG002 - the protocol has no such distinction
        check_not_reserved(self._options, _RESERVED)
        body = {**self._options, "model": self._model, "input": list(texts), "encoding_format": "float"}
        return _in_order(self._client.send("/embeddings", seconds, body).answer(), self.place)

    def remedy(self, status: int | None) -> str:
        if status in {401, 403}:
            return KEY_REMEDY
        if status == 404 or (status is not None and status < 400):  # a server, but with another protocol
            return f"correct SEMANTIC_MODEL ({self._model}) or SEMANTIC_MODEL_URL, which for most servers ends in /v1"
        if status is not None and 400 <= status < 500 and status != 429:
            return "correct SEMANTIC_MODEL, SEMANTIC_MODEL_OPTIONS or SEMANTIC_MODEL_URL"
        return "searches answer by words until it does; make sure that it runs, or correct SEMANTIC_MODEL_URL"

    def _descriptions(self, seconds: float) -> Iterator[Any]:
        """Yield the server's descriptions of the model from each possible place, ignoring refusals."""
        seconds = min(seconds, _METADATA_SECONDS)
        with suppress(ProviderError, ModelError):
            yield self._client.send(f"/models/{quote(self._model, safe='/')}", seconds).answer()
        with suppress(ProviderError, ModelError):  # Text Embeddings Inference, which serves a single model
            yield model_client(self.place.removesuffix("/v1"), self._key).send("/info", seconds).answer()


def _window(answer: Any) -> int | None:
    found = [answer.get(name) for name in _WINDOWS] if isinstance(answer, dict) else []
    return next((number for number in found if type(number) is int and number > 0), None)


def _in_order(answer: Any, place: str) -> list[Any]:
    """Return the vectors in the order of the texts, sorted by index if the answer has one."""
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) and "embedding" in item for item in items):
        raise ModelError(f'{place} answered no {{"data": [{{"embedding": …}}, …]}}: is it a server of OpenAI\'s protocol?')
    numbers = [item.get("index", number) for number, item in enumerate(items)]
    if not all(type(number) is int for number in numbers) or sorted(numbers) != list(range(len(items))):
        raise ModelError(f"{place} answered vectors whose index is not 0 to {len(items) - 1}, each once")
    vectors = dict(zip(numbers, (item["embedding"] for item in items), strict=True))
    return [vectors[number] for number in range(len(items))]
