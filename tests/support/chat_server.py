"""A server that speaks the chat protocols of Ollama, OpenAI and Anthropic, and answers by script."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Self

from tests.support.http_server import Handler, HttpServer

PROVIDERS = ("ollama", "openai", "anthropic")
_PROVIDER_OF_PATH = {"/api/chat": "ollama", "/chat/completions": "openai", "/messages": "anthropic"}
_TYPES = {"ollama": "application/x-ndjson", "openai": "text/event-stream", "anthropic": "text/event-stream"}
_ENDINGS = {"ollama": "stop", "openai": "stop", "anthropic": "end_turn"}


class RefusalError(Exception):
    """An answer with an error status."""

    def __init__(self, status: int, body: Any, headers: dict[str, str]) -> None:
        super().__init__(status, body)
        self.status, self.body, self.headers = status, body, headers


Script = Callable[[dict[str, Any], str], Iterable[bytes]]
"""Yields the pieces of an answer, from the body of the request and the provider; or raises `RefusalError`."""


def text_event(provider: str, text: str) -> bytes:
    """Return a piece of text as the provider sends it."""
    if provider == "ollama":
        return json.dumps({"message": {"role": "assistant", "content": text}, "done": False}).encode() + b"\n"
    if provider == "openai":
        return sse({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})
    return sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})


def end_event(provider: str, ending: str | None = None) -> bytes:
    """Return the end of an answer as the provider sends it."""
    ending = ending or _ENDINGS[provider]
    if provider == "ollama":
        end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": ending}
        return json.dumps(end).encode() + b"\n"
    if provider == "openai":
        return sse({"choices": [{"index": 0, "delta": {}, "finish_reason": ending}]}) + b"data: [DONE]\n\n"
    return sse({"type": "message_delta", "delta": {"stop_reason": ending}}) + sse({"type": "message_stop"})


def sse(event: dict[str, Any]) -> bytes:
    """Return an event of a stream."""
    return f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n".encode()


def saying(*pieces: str, ending: str | None = None) -> Script:
    """Return a script that writes these pieces."""

    def script(_body: dict[str, Any], provider: str) -> Iterator[bytes]:
        yield from (text_event(provider, piece) for piece in pieces)
        yield end_event(provider, ending)

    return script


def dripping(text: str, seconds: float) -> Script:
    """Return a script that writes a character each `seconds`, without end."""

    def script(_body: dict[str, Any], provider: str) -> Iterator[bytes]:
        while True:
            for character in text:
                yield text_event(provider, character)
                time.sleep(seconds)

    return script


def refusing(status: int, message: str, **headers: str) -> Script:
    """Return a script that refuses with a status."""

    def script(_body: dict[str, Any], _provider: str) -> Iterable[bytes]:
        raise RefusalError(
            status, {"error": {"message": message}}, {name.replace("_", "-"): value for name, value in headers.items()}
        )

    return script


def sending(*pieces: bytes) -> Script:
    """Return a script that sends these bytes, and nothing else."""
    return lambda _body, _provider: pieces


class ChatServer:
    """The server, on a port of its own, in a `with` statement.

    `script` answers; `requests` are the bodies that it received, `headers` theirs; `hung_up` is set when a client leaves.
    """

    def __init__(self, script: Script, *, content_type: str | None = None, models: Sequence[str] = ("small",)) -> None:
        self.script = script
        self.content_type = content_type
        self.models = models
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.hung_up = threading.Event()
        self._http = _Http(_Asked)
        self._http.owner = self
        self.url = self._http.url
        self.settings: dict[str, Any] = {"SEMANTIC_ANSWERS": "openai:small", "SEMANTIC_ANSWERS_URL": self.url}

    def __enter__(self) -> Self:
        self._http.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.__exit__()

    def told(self) -> str:
        """Return all that the last request said to the model."""
        return json.dumps(self.requests[-1], ensure_ascii=False)


class _Http(HttpServer):
    owner: ChatServer


class _Asked(Handler):
    server: _Http

    def answer(self, body: bytes) -> None:
        owner = self.server.owner
        if self.command == "GET":
            self._send_json(200, {"data": [{"id": name} for name in owner.models]})
            return
        asked = json.loads(body)
        if self.path == "/api/show":
            is_known = asked["model"] in owner.models
            self._send_json(200 if is_known else 404, {} if is_known else {"error": "model not found"})
            return
        owner.requests.append(asked)
        owner.headers.append(dict(self.headers))
        provider = _PROVIDER_OF_PATH[self.path]
        try:
            pieces = iter(owner.script(asked, provider))
            first = next(pieces, b"")
        except RefusalError as refusal:
            self._send_json(refusal.status, refusal.body, refusal.headers)
            return
        self.send_response(200)
        self.send_header("Content-Type", owner.content_type or _TYPES[provider])
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for piece in chain([first], pieces):
                self._write(piece)
        except OSError:
            owner.hung_up.set()

    def _write(self, piece: bytes) -> None:
        if not self._is_read():
            raise ConnectionError
        self.wfile.write(piece)
        self.wfile.flush()

    def _is_read(self) -> bool:
        """Whether the client is still there."""
        self.connection.setblocking(False)
        try:
            return bool(self.connection.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        finally:
            self.connection.setblocking(True)

    def _send_json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self.send(status, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})
