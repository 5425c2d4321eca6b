"""Models on an Ollama server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from otterwiki_semantic.core.addresses import ollama_url
from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.http import JsonClient
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.model_info import check_not_reserved, model_options
from otterwiki_semantic.embedding.remote.provider import KEY_REMEDY, ModelDescription, model_client

_RESERVED = ("input", "model", "truncate")


class OllamaProvider:
    """An `EmbeddingProvider` for Ollama's own protocol, which reports a model's context window and digest."""

    max_texts = 64
    """Small, because the server may be slow."""
    max_tokens = 50_000

    def __init__(self, settings: Settings) -> None:
        self._model = settings.model.partition(":")[2]
        self._url, self._key = settings.model_url, settings.model_key
        self._host = os.environ.get("OLLAMA_HOST", "")
        self._options = model_options(settings)
        self.secrets = (settings.model_key,)

    @property
    def place(self) -> str:
        return self._url or ("the server in OLLAMA_HOST" if "@" in self._host else host_url(self._host))

    @cached_property
    def _client(self) -> JsonClient:
        return model_client(self._url or host_url(self._host), self._key)

    def describe(self, seconds: float) -> ModelDescription:
        shown = self._client.send("/api/show", seconds, {"model": self._model}).answer()
        tags = self._client.send("/api/tags", seconds).answer()
        return ModelDescription(self._window(shown), self._digest(tags))

    def embed(self, texts: Sequence[str], seconds: float, *, is_query: bool) -> Any:  # noqa: ARG002 - the protocol has no such distinction
        check_not_reserved(self._options, _RESERVED)
        body = {**self._options, "model": self._model, "input": list(texts), "truncate": False}
        answer = self._client.send("/api/embed", seconds, body).answer()
        if not isinstance(answer, dict) or "embeddings" not in answer:
            raise ModelError(f'{self.place} answered no {{"embeddings": […]}}: is it an Ollama server?')
        return answer["embeddings"]

    def remedy(self, status: int | None) -> str:
        if status == 404:
            return f"run `ollama pull {self._model}` there"
        if status in {401, 403}:
            return KEY_REMEDY
        if status is not None and 400 <= status < 500 and status != 429:
            return (
                f"make sure that {self._model} is a model for embeddings, and correct SEMANTIC_MODEL or SEMANTIC_MODEL_OPTIONS"
            )
        if status is not None and status < 400:
            return "correct SEMANTIC_MODEL_URL: this is not an Ollama server"
        return "searches answer by words until it does; start it with `ollama serve`, or correct SEMANTIC_MODEL_URL"

    def _window(self, shown: Any) -> int | None:
        """Return the smallest of the model's context window and the windows configured for running it."""
        shown = shown if isinstance(shown, dict) else {}
        info = shown.get("model_info")
        found = [value for name, value in info.items() if name.endswith(".context_length")] if isinstance(info, dict) else []
        lines = [line.split() for line in str(shown.get("parameters") or "").splitlines()]
        found += [int(line[1]) for line in lines if len(line) == 2 and line[0] == "num_ctx" and line[1].isdigit()]
        run_with = self._options.get("options")
        found += [run_with.get("num_ctx")] if isinstance(run_with, dict) else []
        return min((number for number in found if type(number) is int and number > 0), default=None)

    def _digest(self, tags: Any) -> str | None:
        models = tags.get("models") if isinstance(tags, dict) else None
        names = {self._model, f"{self._model}:latest"}
        models = models if isinstance(models, list) else []
        found = [model.get("digest") for model in models if isinstance(model, dict) and model.get("name") in names]
        return found[0] if found and isinstance(found[0], str) else None


def host_url(host: str) -> str:
    """Return the URL for a value of OLLAMA_HOST. Errors: `ModelError` if it contains a user name or a password."""
    if "@" in host:  # the message does not repeat the value
        raise ModelError("OLLAMA_HOST must not contain a user name or a password; set SEMANTIC_MODEL_KEY instead")
    return ollama_url(host)
