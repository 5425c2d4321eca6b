"""The chat model, and the protocols of its server: Ollama's, OpenAI's and Anthropic's."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from otterwiki_semantic.core.addresses import ollama_url
from otterwiki_semantic.core.errors import ChatModelError, ConfigError
from otterwiki_semantic.core.http import JsonClient, ProviderError, ProviderTimeoutError
from otterwiki_semantic.core.redact import redact
from otterwiki_semantic.core.settings import Settings

MAX_ANSWER_TOKENS = 1_024
_ANTHROPIC_VERSION = "2023-06-01"

Json = Mapping[str, Any]

_CONNECT_SECONDS = 5.0
_MAX_BYTES = 4 << 20
_RETRY_SECONDS = 1.0
_POLL_SECONDS = 0.1
_LONGEST_PAUSE = 10.0
_MAX_SHOWN = 60
_TOOL = "asked for a tool instead of answering"
_ENDINGS = {
    "length": "reached its longest answer",
    "max_tokens": "reached its longest answer",
    "model_context_window_exceeded": "reached the end of its window",
    "content_filter": "was stopped by the provider's filter",
    "refusal": "refused to answer",
    "tool_calls": _TOOL,
    "tool_use": _TOOL,
    "function_call": _TOOL,
}
_THOUGHTS = ("<think>", "<thinking>", "<reasoning>")


class Message(NamedTuple):
    """A part of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


class Delta(NamedTuple):
    """A part of an answer."""

    text: str = ""
    ending: str | None = None
    """Why the answer ends here, according to the server; empty if it gives no reason."""


class OpenAI:
    """`POST /chat/completions`, as implemented by OpenAI, Mistral, llama.cpp, vLLM, LM Studio and many more."""

    url = "https://api.openai.com/v1"
    path = "/chat/completions"
    reserved: tuple[str, ...] = ("model", "messages", "stream", "tools", "n")
    """Options that users cannot set."""
    whole: tuple[str, ...] = ("stop", "eos", "")
    """Reasons for ending that mean the answer is complete."""

    def headers(self, key: str | None) -> dict[str, str] | None:  # noqa: ARG002 - used by one of them
        """Return headers that replace the bearer token."""
        return None

    def body(self, model: str, messages: Sequence[Message], window: int, options: Json) -> Json:  # noqa: ARG002
        """Return the body of a request."""
        return {**options, "model": model, "messages": [each._asdict() for each in messages], "stream": True}

    def read(self, event: Json) -> Delta:
        """Return the content of an event, without the model's thoughts.

        Errors: `ProviderError` that the server reports; `KeyError`, `TypeError` or `AttributeError` for another protocol.
        """
        if error := event.get("error"):
            raise _reported(error.get("message", error) if isinstance(error, dict) else error)
        if not event["choices"]:  # the last event may contain only token counts
            return Delta()
        choice = event["choices"][0]
        part = choice.get("delta") or choice.get("message") or {}
        if part.get("refusal"):
            raise _reported(part["refusal"])
        return Delta(part.get("content") or "", choice.get("finish_reason"))

    def check(self, model: str) -> tuple[str, Json | None]:  # noqa: ARG002 - few servers have more than the list
        """Return the path and the body of a request that checks whether the server has a model."""
        return "/models", None


class Ollama(OpenAI):
    """`POST /api/chat`. Without `num_ctx`, Ollama silently cuts input that is longer than its own default."""

    path = "/api/chat"
    reserved = ("model", "messages", "stream", "tools")

    def __init__(self) -> None:
        self.url = ollama_url(os.environ.get("OLLAMA_HOST", ""))

    def body(self, model: str, messages: Sequence[Message], window: int, options: Json) -> Json:
        own = {"num_ctx": window, "num_predict": MAX_ANSWER_TOKENS, "temperature": 0}
        return {**super().body(model, messages, window, options), "options": {**own, **options.get("options", {})}}

    def read(self, event: Json) -> Delta:
        if "error" in event:
            raise _reported(event["error"])
        ending = event.get("done_reason") or "" if event.get("done") else None
        return Delta(event["message"].get("content") or "", ending)

    def check(self, model: str) -> tuple[str, Json | None]:
        return "/api/show", {"model": model}


class Anthropic(OpenAI):
    """`POST /messages`."""

    url = "https://api.anthropic.com/v1"
    path = "/messages"
    reserved = ("model", "messages", "stream", "tools", "system")
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
                raise _reported(event["error"].get("message", ""))
            case "content_block_delta" if event["delta"]["type"] == "text_delta":
                return Delta(event["delta"]["text"])
            case "message_delta":
                return Delta(ending=event["delta"].get("stop_reason"))
            case "message_stop":
                return Delta(ending="")
        return Delta()

    def check(self, model: str) -> tuple[str, Json | None]:
        return f"/models/{quote(model, safe='')}", None


_PROTOCOLS: dict[str, type[OpenAI]] = {"ollama": Ollama, "openai": OpenAI, "anthropic": Anthropic}


def _reported(error: object) -> ProviderError:
    return ProviderError(None, "it reports an error", server_message=str(error))


def open_chat_model(settings: Settings) -> ChatModel | None:
    """Return the configured model, or None without one or for `extractive`. Sends no request."""
    return ChatModel(settings) if settings.has_chat_model else None


class ChatModel:
    """A model that continues a conversation.

    The key is sent only to the model's server. Methods raise `ChatModelError`, which shows neither the key nor any text that
    was sent.
    """

    def __init__(self, settings: Settings) -> None:
        assert settings.answers is not None
        provider, _, self._model = settings.answers.partition(":")
        self._protocol = _PROTOCOLS[provider]()
        self._options: Json = json.loads(settings.answers_options)
        self._key = settings.answers_key
        self._needs_key = settings.answers_url is None and provider != "ollama"
        self.name = settings.answers
        self.place = settings.answers_url or self._protocol.url
        self.window = settings.answers_window
        """Tokens of conversation and answer together."""
        headers = self._protocol.headers(self._key)
        bearer = self._key if headers is None else None
        self._client = JsonClient(self.place, bearer, connect_seconds=_CONNECT_SECONDS, max_bytes=_MAX_BYTES, headers=headers)

    def stream(self, messages: Sequence[Message], seconds: float, is_cancelled: Callable[[], bool]) -> Iterator[str]:
        """Yield the text of an answer as it is written, within `seconds` in total.

        The connection is closed when the caller stops or `is_cancelled` returns true, so that the server stops writing.
        """
        self._check_settings()
        sent = [message.content for message in messages]
        ending: str | None = None
        has_text = False

        def texts() -> Iterator[str]:
            nonlocal ending
            body = self._protocol.body(self._model, messages, self.window, self._options)
            for delta in self._deltas(body, time.monotonic() + seconds, is_cancelled):
                if delta.ending is not None:
                    ending = delta.ending or ending or ""
                yield delta.text

        try:
            for text in _without_thoughts(texts()):
                has_text = has_text or bool(text.strip())
                yield text
        except ProviderError as error:
            raise self._error(error, sent) from None
        if not is_cancelled():
            self._check_ending(ending, sent)
            if not has_text:
                raise ChatModelError(f"{self.name}: {self.place} answered nothing; try another model")

    def check(self, seconds: float) -> str:
        """Return the server's description of the model, without generating text."""
        self._check_settings()
        path, body = self._protocol.check(self._model)
        try:
            answer = self._client.send(path, seconds, body).answer()
        except ProviderError as error:
            raise self._error(error, ()) from None
        listed = answer.get("data") if isinstance(answer, dict) else None
        names = [each.get("id") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        if names and self._model not in names:
            known = ", ".join(str(name)[:_MAX_SHOWN] for name in names[:5])
            raise ChatModelError(f"{self.place} has no model {self._model!r}; it has {known}; correct SEMANTIC_ANSWERS")
        return f"{self.name} at {self.place}, a window of {self.window:,} tokens"

    def close(self) -> None:
        """Release all resources for good."""
        self._client.close()

    def _check_settings(self) -> None:
        """Raise `ChatModelError` if the settings cannot produce a valid request."""
        if "@" in self.place:  # not shown: may contain a password
            raise ChatModelError("OLLAMA_HOST must not contain a user name or a password; set SEMANTIC_ANSWERS_KEY instead")
        if self._needs_key and not self._key:
            raise ChatModelError(f"{self.place} wants a key; set SEMANTIC_ANSWERS_KEY")
        if reserved := sorted(set(self._options) & set(self._protocol.reserved)):
            raise ChatModelError(f"SEMANTIC_ANSWERS_OPTIONS may not have {', '.join(reserved)}: this program decides it")

    def _check_ending(self, ending: str | None, sent: Sequence[str]) -> None:
        """Raise `ChatModelError` if the answer is incomplete."""
        if ending is None:
            raise ChatModelError(f"{self.name}: {self.place} ended the answer before its end; what came of it is shown")
        if ending not in self._protocol.whole:
            said = redact(ending, (self._key,), sent)[:_MAX_SHOWN]
            raise ChatModelError(f"{self.name} {_ENDINGS.get(ending, f'ended with {said!r}')}")

    def _deltas(self, body: Json, deadline: float, is_cancelled: Callable[[], bool]) -> Iterator[Delta]:
        """Yield the server's events. Before the first event, a temporary failure is retried once."""
        has_begun, may_retry = False, True
        while True:
            try:
                for event in self._client.stream(self._protocol.path, deadline - time.monotonic(), body, is_cancelled):
                    has_begun = True
                    yield self._read(event)
            except ProviderError as error:
                pause = min(error.retry_after or _RETRY_SECONDS, _LONGEST_PAUSE)
                is_possible = may_retry and error.is_temporary and time.monotonic() + pause < deadline
                if has_begun or not is_possible or is_cancelled():
                    raise
                may_retry, end = False, time.monotonic() + pause
                while time.monotonic() < end and not is_cancelled():
                    time.sleep(_POLL_SECONDS)
                if not is_cancelled():
                    continue
            return

    def _read(self, event: Any) -> Delta:
        with suppress(KeyError, TypeError, AttributeError, IndexError, ConfigError):
            delta = self._protocol.read(event) if isinstance(event, dict) else None
            if delta and isinstance(delta.text, str) and isinstance(delta.ending, str | None):
                return delta
        raise ProviderError(200, f"it does not speak the protocol of {self.name.partition(':')[0]}")

    def _error(self, error: ProviderError, sent: Sequence[str]) -> ChatModelError:
        """Return an error message for people: what is wrong, and what to do."""
        said = redact(error.server_message, (self._key,), sent)
        status = f"answers {error.status}" if error.status is not None and error.status != 200 else ""
        reason = ", ".join(filter(None, (status, error.reason, said))) or "cannot be reached"
        return ChatModelError(f"{self.name}: {self.place}: {reason}; {_remedy(error)}")


def _remedy(error: ProviderError) -> str:
    status = error.status
    if isinstance(error, ProviderTimeoutError):
        return "make sure that it runs, or raise SEMANTIC_ANSWERS_SECONDS"
    if status in {401, 403}:
        return "set SEMANTIC_ANSWERS_KEY to a key that it accepts"
    if status == 429:
        return "wait, or raise the limits of the key's account"
    if status is not None and status < 500:
        return "correct SEMANTIC_ANSWERS, SEMANTIC_ANSWERS_URL or SEMANTIC_ANSWERS_OPTIONS"
    return "make sure that it runs and can be reached, or correct SEMANTIC_ANSWERS_URL"


def _without_thoughts(texts: Iterator[str]) -> Iterator[str]:
    """Yield texts without the reasoning that some models put in tags such as ``<think>…</think>``."""
    waiting, closing = "", None
    for text in texts:
        waiting += text
        while closing is None or closing in waiting:
            if closing is not None:
                waiting, closing = waiting.partition(closing)[2], None
            begun = waiting.lstrip()
            opening = next((each for each in _THOUGHTS if begun.lower().startswith(each)), None)
            if opening is None:
                break
            waiting, closing = begun[len(opening) :], f"</{opening[1:]}"
        if closing is not None:
            waiting = waiting[-len(closing) :]
        elif not any(each.startswith(begun.lower()) for each in _THOUGHTS):
            break
    else:
        return
    yield waiting
    yield from filter(None, texts)
