"""Servers of the OpenAI embeddings protocol: OpenAI, vLLM, Text Embeddings Inference, LM Studio, llama.cpp and many more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.http import JsonServer, ProviderError
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.options import check_free, options_of
from otterwiki_semantic.embedding.remote.model import ModelDescription

DEFAULT_URL = "https://api.openai.com/v1"
_WINDOWS = ("max_model_len", "max_input_length", "max_input_tokens", "context_length", "max_context_length", "context_window")
_METADATA_SECONDS = 10
_FIXED = ("input", "model", "encoding_format")


class OpenAIProvider:
    """A `Service` of this protocol; `most_tokens` stays under OpenAI's limit of 300,000, with room for its own counting."""

    most_texts = 2048
    most_tokens = 200_000

    def __init__(self, settings: Settings) -> None:
        self._model = settings.model.partition(":")[2]
        self._server = JsonServer(settings.model_url or DEFAULT_URL, settings.model_key)
        self._options = options_of(settings)
        self.place = self._server.url
        self.secrets = (settings.model_key,) if settings.model_key else ()

    def describe(self, seconds: float) -> ModelDescription:
        """Give the window, if the server tells it in one of the ways that are usual; few do."""
        return ModelDescription(window=next((window for answer in self._told(seconds) if (window := _window(answer))), None))

    def embed(self, texts: Sequence[str], seconds: float, *, is_query: bool) -> Any:  # noqa: ARG002 - one way for both
        """See `Service`."""
        check_free(self._options, _FIXED)
        body = {**self._options, "model": self._model, "input": list(texts), "encoding_format": "float"}
        answer = self._server.ask("/embeddings", seconds, body)
        return _in_order(answer, self.place)

    def cure(self, status: int | None) -> str:
        """See `Service`."""
        if status in {401, 403}:
            return "set SEMANTIC_MODEL_KEY to a key that it takes"
        if status == 404:
            return f"correct SEMANTIC_MODEL ({self._model}) or SEMANTIC_MODEL_URL, which most servers want to end in /v1"
        if status is not None and 400 <= status < 500 and status != 429:
            return "correct SEMANTIC_MODEL, SEMANTIC_MODEL_OPTIONS or SEMANTIC_MODEL_URL"
        return "searches answer by words until it does; see that it runs, or correct SEMANTIC_MODEL_URL"

    def _told(self, seconds: float) -> Iterator[Any]:
        """Give what the server tells of the model in one place after another; what it refuses there says nothing."""
        seconds = min(seconds, _METADATA_SECONDS)
        with suppress(ProviderError, ModelError):
            yield self._server.ask(f"/models/{quote(self._model, safe='/')}", seconds)
        with suppress(ProviderError, ModelError):
            yield self._info(seconds)

    def _info(self, seconds: float) -> Any:
        """Give what Text Embeddings Inference tells beside the protocol; it has one model only."""
        return self._server.at(self._server.url.removesuffix("/v1")).ask("/info", seconds)


def _window(answer: Any) -> int | None:
    found = [answer.get(name) for name in _WINDOWS] if isinstance(answer, dict) else []
    return next((number for number in found if type(number) is int and number > 0), None)


def _in_order(answer: Any, place: str) -> list[Any]:
    """Give the vectors of an answer in the order of the texts, by their numbers if they have any."""
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) and "embedding" in item for item in items):
        raise ModelError(f'{place} answered no {{"data": [{{"embedding": …}}, …]}}: is it a server of OpenAI\'s protocol?')
    numbers = [item.get("index", number) for number, item in enumerate(items)]
    if not all(type(number) is int for number in numbers) or sorted(numbers) != list(range(len(items))):
        raise ModelError(f"{place} answered vectors whose index is not 0 to {len(items) - 1}, each once")
    ordered: list[Any] = [None] * len(items)
    for number, item in zip(numbers, items, strict=True):
        ordered[number] = item["embedding"]
    return ordered
