"""Models behind a server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from otterwiki_semantic.core.errors import ChatModelError, ConfigError
from otterwiki_semantic.core.http import JsonClient, ProviderError, ProviderTimeoutError
from otterwiki_semantic.core.redact import redact
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.search.answering.chat.base import Message
from otterwiki_semantic.search.answering.chat.protocols import PROTOCOLS, Delta
from otterwiki_semantic.search.answering.chat.thoughts import ThoughtFilter

_CONNECT_SECONDS = 5.0
_MAX_BYTES = 4 << 20
_RETRY_SECONDS = 1.0
_POLL_SECONDS = 0.1
_LONGEST_PAUSE = 10.0
_MAX_SHOWN = 60
_ENDINGS = {
    "length": "reached its longest answer",
    "max_tokens": "reached its longest answer",
    "model_context_window_exceeded": "reached the end of its window",
    "content_filter": "was stopped by the provider's filter",
    "refusal": "refused to answer",
    "tool_calls": "asked for a tool instead of answering",
    "tool_use": "asked for a tool instead of answering",
    "function_call": "asked for a tool instead of answering",
}


class RemoteChatModel:
    """A `ChatModel` behind a server of one of the `PROTOCOLS`. The key is sent to this server only, and never shown."""

    def __init__(self, settings: Settings) -> None:
        assert settings.answers is not None
        provider, _, self._model = settings.answers.partition(":")
        self._protocol = PROTOCOLS[provider]()
        self._options: dict[str, Any] = json.loads(settings.answers_options)
        self._key = settings.answers_key
        self._needs_key = settings.answers_url is None and provider != "ollama"
        self.name = settings.answers
        self.place = settings.answers_url or self._protocol.url
        self.window = settings.answers_window
        bearer = None if provider == "anthropic" else self._key
        headers = self._protocol.headers(self._key)
        self._client = JsonClient(self.place, bearer, connect_seconds=_CONNECT_SECONDS, max_bytes=_MAX_BYTES, headers=headers)

    def stream(self, messages: Sequence[Message], seconds: float, is_cancelled: Callable[[], bool]) -> Iterator[str]:
        self._check_settings()
        body = self._protocol.body(self._model, messages, self.window, self._options)
        sent = [message.text for message in messages]
        deadline = time.monotonic() + seconds
        thoughts = ThoughtFilter()
        ending: str | None = None
        has_text = False
        try:
            for delta in self._deltas(body, deadline, is_cancelled):
                if delta.error is not None:
                    raise ProviderError(None, "it reports an error", server_message=delta.error)
                if delta.ending is not None:
                    ending = delta.ending or ending or ""
                text = thoughts.feed(delta.text)
                has_text = has_text or bool(text.strip())
                if text:
                    yield text
        except ProviderError as error:
            raise self._error(error, sent) from None
        if is_cancelled():
            return
        if ending is None:
            raise ChatModelError(f"{self.name}: {self.place} ended the answer before its end; what came of it is shown")
        if ending not in self._protocol.whole:
            said = redact(ending, (self._key,), sent)[:_MAX_SHOWN]
            raise ChatModelError(f"{self.name} {_ENDINGS.get(ending, f'ended with {said!r}')}")
        if not has_text:
            raise ChatModelError(f"{self.name}: {self.place} answered nothing; try another model")

    def check(self, seconds: float) -> str:
        self._check_settings()
        asked = self._protocol.check(self._model)
        try:
            answer = self._client.send(asked.path, seconds, asked.body).answer()
        except ProviderError as error:
            raise self._error(error, ()) from None
        listed = answer.get("data") if isinstance(answer, dict) else None
        names = [each.get("id") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        if names and self._model not in names:
            known = ", ".join(str(name)[:_MAX_SHOWN] for name in names[:5])
            raise ChatModelError(f"{self.place} has no model {self._model!r}; it has {known}; correct SEMANTIC_ANSWERS")
        return f"{self.name} at {self.place}, a window of {self.window:,} tokens"

    def close(self) -> None:
        self._client.close()

    def _check_settings(self) -> None:
        """Raise `ChatModelError` for settings with which no request can be sent."""
        if "@" in self.place:  # not repeated: it may hold a password
            raise ChatModelError("OLLAMA_HOST must not contain a user name or a password; set SEMANTIC_ANSWERS_KEY instead")
        if self._needs_key and not self._key:
            raise ChatModelError(f"{self.place} wants a key; set SEMANTIC_ANSWERS_KEY")
        if reserved := sorted(set(self._options) & set(self._protocol.reserved)):
            raise ChatModelError(f"SEMANTIC_ANSWERS_OPTIONS may not have {', '.join(reserved)}: this program decides it")

    def _deltas(self, body: Mapping[str, Any], deadline: float, is_cancelled: Callable[[], bool]) -> Iterator[Delta]:
        """Yield what the server sends; until it has sent something, a failure that may pass is tried again once."""
        has_begun, may_retry = False, True
        while True:
            events = self._client.stream(self._protocol.path, deadline - time.monotonic(), body, is_cancelled)
            try:
                for event in events:
                    has_begun = True
                    yield self._read(event)
            except ProviderError as error:
                pause = min(error.retry_after or _RETRY_SECONDS, _LONGEST_PAUSE)
                is_possible = may_retry and error.is_temporary and time.monotonic() + pause < deadline
                if has_begun or not is_possible or is_cancelled():
                    raise
                may_retry = False
                _sleep(pause, is_cancelled)
                if is_cancelled():
                    return
            else:
                return

    def _read(self, event: Any) -> Delta:
        with suppress(KeyError, TypeError, AttributeError, IndexError, ConfigError):
            delta = self._protocol.read(event) if isinstance(event, dict) else None
            if delta and isinstance(delta.text, str) and isinstance(delta.ending, str | None):
                return delta
        provider = self.name.partition(":")[0]
        raise ProviderError(200, f"it does not speak the protocol of {provider}")

    def _error(self, error: ProviderError, sent: Sequence[str]) -> ChatModelError:
        """Return what to tell people: what is wrong, and what they can do."""
        said = redact(error.server_message, (self._key,), sent)
        status = f"answers {error.status}" if error.status is not None and error.status != 200 else ""
        reason = ", ".join(filter(None, (status, error.reason, said))) or "cannot be reached"
        return ChatModelError(f"{self.name}: {self.place}: {reason}; {self._remedy(error)}")

    def _remedy(self, error: ProviderError) -> str:
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


def _sleep(seconds: float, is_cancelled: Callable[[], bool]) -> None:
    """Wait, or until somebody cancels."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not is_cancelled():
        time.sleep(min(left, _POLL_SECONDS))
