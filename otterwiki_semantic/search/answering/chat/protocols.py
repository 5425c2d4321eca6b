"""The protocols of Ollama, OpenAI and Anthropic: what is sent to continue a conversation, and what comes back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from otterwiki_semantic.core.ollama_host import host_url
from otterwiki_semantic.search.answering.chat.base import Message

MAX_ANSWER_TOKENS = 1_024
_ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True)
class Delta:
    """A part of an answer."""

    text: str = ""
    ending: str | None = None
    """Why the answer ends here, as the server says; empty if it does not say."""
    error: str | None = None
    """What the server says has gone wrong."""


@dataclass(frozen=True, slots=True)
class Check:
    """A request that says whether a server has a model, and what it answers about it."""

    path: str
    body: Mapping[str, Any] | None = None


class ChatProtocol(Protocol):
    """One kind of server."""

    url: str
    """Where it is unless the settings say otherwise."""
    path: str
    reserved: tuple[str, ...]
    """Options that are decided by this program."""
    whole: tuple[str, ...]
    """Endings of an answer that is complete."""

    def headers(self, key: str | None) -> dict[str, str]:
        """Return headers in addition to the key as a bearer token."""
        ...

    def body(self, model: str, messages: Sequence[Message], window: int, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a request."""
        ...

    def read(self, event: Mapping[str, Any]) -> Delta:
        """Return what an event says. Thoughts are no part of an answer. Errors: `KeyError`, `TypeError`, `AttributeError`."""
        ...

    def check(self, model: str) -> Check:
        """Return how to ask about a model."""
        ...


class Ollama:
    """`POST /api/chat`. Without `num_ctx` Ollama cuts what is longer than its own default, and says nothing of it."""

    path = "/api/chat"
    reserved: tuple[str, ...] = ("model", "messages", "stream", "tools")
    whole: tuple[str, ...] = ("stop", "")

    def __init__(self) -> None:
        self.url = host_url(os.environ.get("OLLAMA_HOST", ""))

    def headers(self, key: str | None) -> dict[str, str]:  # noqa: ARG002 - the protocol
        return {}

    def body(self, model: str, messages: Sequence[Message], window: int, options: Mapping[str, Any]) -> dict[str, Any]:
        own = {"num_ctx": window, "num_predict": MAX_ANSWER_TOKENS, "temperature": 0}
        given = options.get("options", {})
        told = [{"role": each.role, "content": each.text} for each in messages]
        return {**options, "model": model, "messages": told, "stream": True, "options": {**own, **given}}

    def read(self, event: Mapping[str, Any]) -> Delta:
        if "error" in event:
            return Delta(error=str(event["error"]))
        ending = event.get("done_reason") or "" if event.get("done") else None
        return Delta(event["message"].get("content") or "", ending)

    def check(self, model: str) -> Check:
        return Check("/api/show", {"model": model})


class OpenAI:
    """`POST /chat/completions`, as OpenAI, Mistral, llama.cpp, vLLM, LM Studio and many others have it."""

    url = "https://api.openai.com/v1"
    path = "/chat/completions"
    reserved: tuple[str, ...] = ("model", "messages", "stream", "tools", "n")
    whole: tuple[str, ...] = ("stop", "eos", "")

    def headers(self, key: str | None) -> dict[str, str]:  # noqa: ARG002 - the protocol
        return {}

    def body(self, model: str, messages: Sequence[Message], window: int, options: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        told = [{"role": each.role, "content": each.text} for each in messages]
        return {**options, "model": model, "messages": told, "stream": True}

    def read(self, event: Mapping[str, Any]) -> Delta:
        if event.get("error"):
            error = event["error"]
            return Delta(error=str(error.get("message", error) if isinstance(error, dict) else error))
        if not event["choices"]:  # the last event may only have what was used
            return Delta()
        choice = event["choices"][0]
        part = choice.get("delta") or choice.get("message") or {}
        if part.get("refusal"):
            return Delta(error=str(part["refusal"]))
        return Delta(part.get("content") or "", choice.get("finish_reason"))

    def check(self, model: str) -> Check:  # noqa: ARG002 - few servers have more than the list
        return Check("/models")


class Anthropic:
    """`POST /messages`."""

    url = "https://api.anthropic.com/v1"
    path = "/messages"
    reserved: tuple[str, ...] = ("model", "messages", "system", "stream", "tools")
    whole: tuple[str, ...] = ("end_turn", "stop_sequence", "")

    def headers(self, key: str | None) -> dict[str, str]:
        return {"anthropic-version": _ANTHROPIC_VERSION} | ({"x-api-key": key} if key else {})

    def body(self, model: str, messages: Sequence[Message], window: int, options: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        told = [{"role": each.role, "content": each.text} for each in messages if each.role != "system"]
        rules = "\n\n".join(each.text for each in messages if each.role == "system")
        own = {"max_tokens": MAX_ANSWER_TOKENS, "temperature": 0}
        return {**own, **options, "model": model, "system": rules, "messages": told, "stream": True}

    def read(self, event: Mapping[str, Any]) -> Delta:
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

    def check(self, model: str) -> Check:
        return Check(f"/models/{quote(model, safe='')}")


PROTOCOLS: dict[str, type[ChatProtocol]] = {"ollama": Ollama, "openai": OpenAI, "anthropic": Anthropic}
"""By the name of the provider in `SEMANTIC_ANSWERS`."""
