"""The protocols of Ollama, OpenAI and Anthropic: what is sent to continue a conversation, and what comes back."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from otterwiki_semantic.core.addresses import ollama_url

MAX_ANSWER_TOKENS = 1_024
_ANTHROPIC_VERSION = "2023-06-01"

Json = Mapping[str, Any]


class Message(NamedTuple):
    """A part of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


class Delta(NamedTuple):
    """A part of an answer."""

    text: str = ""
    ending: str | None = None
    """Why the answer ends here, as the server says; empty if it does not say."""
    error: str | None = None
    """What the server says has gone wrong."""


class ChatProtocol(ABC):
    """One kind of server."""

    url: str
    """Its address unless the settings have another."""
    path: str
    reserved: tuple[str, ...] = ("model", "messages", "stream", "tools")
    """Options that are decided by this program."""
    whole: tuple[str, ...] = ("stop", "eos", "")
    """Endings of an answer that is complete."""

    def headers(self, key: str | None) -> dict[str, str] | None:  # noqa: ARG002 - used by one of them
        """Return headers that take the place of the key as a bearer token."""
        return None

    def body(self, model: str, messages: Sequence[Message], window: int, options: Json) -> Json:  # noqa: ARG002
        """Return the body of a request."""
        return {**options, "model": model, "messages": [each._asdict() for each in messages], "stream": True}

    @abstractmethod
    def read(self, event: Json) -> Delta:
        """Return what an event says. Thoughts are no part of an answer. Errors: `KeyError`, `TypeError`, `AttributeError`."""

    @abstractmethod
    def check(self, model: str) -> tuple[str, Json | None]:
        """Return the path and the body of a request that says whether a server has a model."""


class Ollama(ChatProtocol):
    """`POST /api/chat`. Without `num_ctx` Ollama cuts what is longer than its own default, and says nothing of it."""

    path = "/api/chat"

    def __init__(self) -> None:
        self.url = ollama_url(os.environ.get("OLLAMA_HOST", ""))

    def body(self, model: str, messages: Sequence[Message], window: int, options: Json) -> Json:
        own = {"num_ctx": window, "num_predict": MAX_ANSWER_TOKENS, "temperature": 0}
        return {**super().body(model, messages, window, options), "options": {**own, **options.get("options", {})}}

    def read(self, event: Json) -> Delta:
        if "error" in event:
            return Delta(error=str(event["error"]))
        ending = event.get("done_reason") or "" if event.get("done") else None
        return Delta(event["message"].get("content") or "", ending)

    def check(self, model: str) -> tuple[str, Json | None]:
        return "/api/show", {"model": model}


class OpenAI(ChatProtocol):
    """`POST /chat/completions`, as OpenAI, Mistral, llama.cpp, vLLM, LM Studio and many others have it."""

    url = "https://api.openai.com/v1"
    path = "/chat/completions"
    reserved = (*ChatProtocol.reserved, "n")

    def read(self, event: Json) -> Delta:
        if error := event.get("error"):
            return Delta(error=str(error.get("message", error) if isinstance(error, dict) else error))
        if not event["choices"]:  # the last event may only have what was used
            return Delta()
        choice = event["choices"][0]
        part = choice.get("delta") or choice.get("message") or {}
        if part.get("refusal"):
            return Delta(error=str(part["refusal"]))
        return Delta(part.get("content") or "", choice.get("finish_reason"))

    def check(self, model: str) -> tuple[str, Json | None]:  # noqa: ARG002 - few servers have more than the list
        return "/models", None


class Anthropic(ChatProtocol):
    """`POST /messages`."""

    url = "https://api.anthropic.com/v1"
    path = "/messages"
    reserved = (*ChatProtocol.reserved, "system")
    whole = ("end_turn", "stop_sequence", "")

    def headers(self, key: str | None) -> dict[str, str]:
        return {"anthropic-version": _ANTHROPIC_VERSION} | ({"x-api-key": key} if key else {})

    def body(self, model: str, messages: Sequence[Message], window: int, options: Json) -> Json:
        own = {"max_tokens": MAX_ANSWER_TOKENS, "temperature": 0}
        rules = "\n\n".join(each.content for each in messages if each.role == "system")
        told = [each for each in messages if each.role != "system"]
        return {**own, **super().body(model, told, window, options), "system": rules}

    def read(self, event: Json) -> Delta:
        match event["type"]:
            case "error":
                return Delta(error=str(event["error"].get("message", "")))
            case "content_block_delta" if event["delta"]["type"] == "text_delta":
                return Delta(event["delta"]["text"])
            case "message_delta":
                return Delta(ending=event["delta"].get("stop_reason"))
            case "message_stop":
                return Delta(ending="")
        return Delta()

    def check(self, model: str) -> tuple[str, Json | None]:
        return f"/models/{quote(model, safe='')}", None


PROTOCOLS: dict[str, type[ChatProtocol]] = {"ollama": Ollama, "openai": OpenAI, "anthropic": Anthropic}
"""By the name of the provider in `SEMANTIC_ANSWERS`."""
