"""The interface of embedding providers, and the meaning of their refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.http import JsonClient, ProviderError

KEY_REMEDY = "set SEMANTIC_MODEL_KEY to a key that it accepts"
_TOO_LONG = re.compile(
    r"maximum context|context (length|size|window)|(input|text|prompt|sequence|document)s?\b.{0,40} too (long|large|big)"
    r"|too many tokens|(must have )?less than \d+ tokens|max(imum)?[ _](input|sequence|token)|token limit|physical batch size"
    r"|exceed.{0,40}(tokens?|length)\b",
    re.IGNORECASE,
)
_TOO_MANY = re.compile(
    r"batch size \d|maximum (allowed )?batch|too many (inputs|texts|documents)|array too long", re.IGNORECASE
)


class ModelDescription(NamedTuple):
    """What a server reports about its model; None for unknown properties."""

    window: int | None = None
    digest: str | None = None


class EmbeddingProvider(Protocol):
    """One kind of server. Each method sends one request, within `seconds`. Errors: `ProviderError`, `ModelError`."""

    max_texts: int
    max_tokens: int
    """Maximum number of tokens per request, by `ESTIMATING_COUNTER`."""

    @property
    def place(self) -> str:
        """The location of the model, for people."""

    @property
    def secrets(self) -> tuple[str | None, ...]:
        """Texts that must not appear in messages."""

    def describe(self, seconds: float) -> ModelDescription:
        """Return what the server reports about the model."""

    def embed(self, texts: Sequence[str], seconds: float, *, is_query: bool) -> Any:
        """Return a list of vectors, unchecked."""

    def remedy(self, status: int | None) -> str:
        """Return the remedy for a refusal with this HTTP status (None: no answer)."""


def model_client(url: str, key: str | None) -> JsonClient:
    """Return a client for the model server at `url`. Errors: `ModelError` for a key that cannot be sent."""
    if key and not re.fullmatch(r"[!-~]+", key):  # the client's own error would reveal it
        raise ModelError("SEMANTIC_MODEL_KEY has characters that no key has, such as a space or a line break")
    return JsonClient(url, key)


def is_batch_too_large(refusal: ProviderError) -> bool:
    """Whether the server would accept fewer texts at once."""
    return refusal.status in {400, 413, 422} and _TOO_MANY.search(refusal.server_message) is not None


def is_text_too_long(refusal: ProviderError) -> bool:
    """Whether the server would accept a shorter text."""
    if is_batch_too_large(refusal) or refusal.status not in {400, 413, 422, 500}:
        return False
    return refusal.status == 413 or _TOO_LONG.search(refusal.server_message) is not None


def is_temporary(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    if not isinstance(error, ProviderError) or is_batch_too_large(error) or is_text_too_long(error):
        return False
    return error.is_temporary
