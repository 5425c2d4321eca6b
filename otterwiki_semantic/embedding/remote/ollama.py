"""Models that an Ollama server has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.http import JsonServer
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.options import check_free, options_of
from otterwiki_semantic.embedding.remote.model import ModelDescription

_FIXED = ("input", "model", "truncate")
_PORT = 11434


class OllamaProvider:
    """A `Service` of Ollama's own protocol, which tells a model's window and digest; few texts a request: it may be slow."""

    most_texts = 64
    most_tokens = 50_000

    def __init__(self, settings: Settings, environment: Mapping[str, str] = os.environ) -> None:
        self._model = settings.model.partition(":")[2]
        self._url, self._key = settings.model_url, settings.model_key
        self._host = environment.get("OLLAMA_HOST", "")
        self._options = options_of(settings)
        self.secrets = (settings.model_key,) if settings.model_key else ()

    @property
    def place(self) -> str:
        """See `Service`."""
        return self._url or ("the server that OLLAMA_HOST names" if "@" in self._host else host_url(self._host))

    @cached_property
    def _server(self) -> JsonServer:
        return JsonServer(self._url or host_url(self._host), self._key)

    def describe(self, seconds: float) -> ModelDescription:
        """See `Service`."""
        shown = self._server.ask("/api/show", seconds, {"model": self._model})
        return ModelDescription(self._window(shown), self._digest(self._server.ask("/api/tags", seconds)))

    def embed(self, texts: Sequence[str], seconds: float, *, is_query: bool) -> Any:  # noqa: ARG002 - one way for both
        """See `Service`; what is too long is refused, not cut."""
        check_free(self._options, _FIXED)
        body = {**self._options, "model": self._model, "input": list(texts), "truncate": False}
        answer = self._server.ask("/api/embed", seconds, body)
        if not isinstance(answer, dict) or "embeddings" not in answer:
            raise ModelError(f'{self.place} answered no {{"embeddings": […]}}: is it an Ollama server?')
        return answer["embeddings"]

    def cure(self, status: int | None) -> str:
        """See `Service`."""
        if status == 404:
            return f"run `ollama pull {self._model}` there"
        if status in {401, 403}:
            return "set SEMANTIC_MODEL_KEY to a key that it takes"
        if status is not None and 400 <= status < 500 and status != 429:
            return f"see that {self._model} is a model for embeddings, and correct SEMANTIC_MODEL or SEMANTIC_MODEL_OPTIONS"
        return "searches answer by words until it does; start it with `ollama serve`, or correct SEMANTIC_MODEL_URL"

    def _window(self, shown: Any) -> int | None:
        """Give the least of what the model can take and what it is run with."""
        shown = shown if isinstance(shown, dict) else {}
        info = shown.get("model_info")
        told = [value for name, value in info.items() if name.endswith(".context_length")] if isinstance(info, dict) else []
        lines = [line.split() for line in str(shown.get("parameters") or "").splitlines()]
        told += [int(line[1]) for line in lines if len(line) == 2 and line[0] == "num_ctx" and line[1].isdigit()]
        run_with = self._options.get("options")
        told += [run_with.get("num_ctx")] if isinstance(run_with, dict) else []
        return min((number for number in told if type(number) is int and number > 0), default=None)

    def _digest(self, tags: Any) -> str | None:
        models = tags.get("models") if isinstance(tags, dict) else None
        names = {self._model, f"{self._model}:latest"}
        models = models if isinstance(models, list) else []
        found = [model.get("digest") for model in models if isinstance(model, dict) and model.get("name") in names]
        return found[0] if found and isinstance(found[0], str) else None


def host_url(host: str) -> str:
    """Give the address that OLLAMA_HOST means, as Ollama's own programs read it; this machine's if it is empty.

    Errors: `ModelError` for a user name or a password in it.
    """
    if "@" in host:  # the value is not repeated
        raise ModelError("OLLAMA_HOST holds a user name or a password, which it may not; set SEMANTIC_MODEL_KEY instead")
    scheme, separator, rest = host.strip().rstrip("/").rpartition("://")
    place, slash, path = rest.partition("/")
    name, colon, port = place.rpartition(":") if not place.endswith("]") else (place, "", "")
    if not colon:
        name, port = place, str({"http": 80, "https": 443}[scheme] if scheme in {"http", "https"} else _PORT)
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)
    return f"{scheme if separator else 'http'}://{name}:{port}{slash}{path}"
