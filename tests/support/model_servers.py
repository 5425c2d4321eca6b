"""Servers of embedding models, over real HTTP: vectors are sums of word vectors, so that similar texts are near."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from otterwiki_semantic.core.settings import Settings
from tests.support.http_server import Handler, HttpServer

DIMENSION = 48
_HELD_SECONDS = 50.0  # less than indexing waits for an answer


@cache
def word_vector(word: str, seed: str = "") -> Any:
    number = int.from_bytes(hashlib.blake2b(f"{seed}{word}".lower().encode(), digest_size=8).digest())
    return np.random.default_rng(number).standard_normal(DIMENSION)


@dataclass(slots=True)
class Reply:
    """An answer to send instead of vectors."""

    status: int
    body: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class ModelServer:
    """A server and what it does."""

    url: str = ""
    dimension: int = DIMENSION
    seed: str = ""
    longest: int | None = None
    """Words of the longest text; longer ones are refused with `complaint`."""
    complaint: tuple[int, str] = (400, "This model's maximum context length is 8 tokens, however you requested more")
    cut: int | None = None
    """Words that are read of a text; the rest is silently cut off."""
    most: int = 4096
    """Texts in a request."""
    held_after: int | None = None
    """Texts of passages that are answered before the next ones wait until `released` is set."""
    released: Event = field(default_factory=Event)
    told: dict[str, Any] = field(default_factory=dict)
    """What the server says about the model, by path."""
    replies: deque[Reply] = field(default_factory=deque)
    """Answers to the next requests for vectors."""
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    """Every request: path, headers, body."""

    @property
    def environment(self) -> dict[str, Any]:
        """The settings of a wiki that uses this model."""
        names = {"MODEL": "openai:words", "MODEL_URL": f"{self.url}/v1", "MODEL_KEY": "key", "MODEL_WINDOW": "256"}
        return {f"SEMANTIC_{name}": value for name, value in names.items()}

    def embed(self, text: str) -> list[float]:
        words = re.findall(r"\w+", text)[: self.cut] or [""]
        total = sum(word_vector(word, self.seed) for word in words)
        return [float(number) for number in total[: self.dimension]]

    @property
    def texts(self) -> list[list[str]]:
        """The texts of each request for vectors."""
        return [texts for _, _, body in self.asked if (texts := _texts(body)) is not None]

    def answer(self, path: str, body: Any) -> Reply:
        texts = _texts(body)
        if texts is None:
            return Reply(200, json.dumps(self.told[path])) if path in self.told else Reply(404, '{"error": "not found"}')
        if self.held_after is not None and len(texts) > 1:  # a query comes alone
            self.held_after -= len(texts)
            if self.held_after < 0:
                self.released.wait(_HELD_SECONDS)
        if self.replies:
            return self.replies.popleft()
        if len(texts) > self.most:
            return Reply(422, json.dumps({"error": f"batch size {len(texts)} > maximum allowed batch size {self.most}"}))
        if self.longest is not None and any(len(re.findall(r"\w+", text)) > self.longest for text in texts):
            status, complaint = self.complaint
            return Reply(status, json.dumps({"error": {"message": complaint}}))
        return Reply(200, json.dumps(_shaped(path, [self.embed(text) for text in texts])))


def _texts(body: Any) -> list[str] | None:
    names = ("input", "inputs", "text")
    return next((body[name] for name in names if name in body), None) if isinstance(body, dict) else None


def _shaped(path: str, vectors: list[list[float]]) -> Any:
    if path == "/api/embed":
        return {"embeddings": vectors}
    if path == "/huggingface":
        return vectors
    if path == "/cloudflare":
        return {"result": {"data": vectors}}
    items = [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]
    return {"data": items[::-1]}  # out of order: the index decides


@contextmanager
def serving(server: ModelServer) -> Iterator[ModelServer]:
    """Serve while the block runs, again at the same address if the server was served before."""

    connections: list[socket.socket] = []

    class Asked(Handler):
        wbufsize = -1  # one packet for each answer: a second one would be delayed

        def setup(self) -> None:
            super().setup()
            connections.append(self.connection)

        def answer(self, body: bytes) -> None:
            asked = json.loads(body or b"null")
            server.asked.append((self.path, dict(self.headers), asked))
            reply = server.answer(self.path, asked)
            self.send(reply.status, reply.body.encode(), reply.headers)

    with HttpServer(Asked, int(server.url.rpartition(":")[2]) if server.url else 0) as served:
        server.url = served.url
        try:
            yield server
        finally:
            served.shutdown()
            for connection in connections:  # left open, they would still be answered
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


def ollama_told(model: str, digest: str = "sha256:1", window: int = 512) -> dict[str, Any]:
    return {
        "/api/show": {"model_info": {"bert.context_length": window}, "parameters": ""},
        "/api/tags": {"models": [{"name": f"{model}:latest", "digest": digest}]},
    }


def settings_in(place: Path, model: str, **told: object) -> Settings:
    """Return settings that name a model."""
    return replace(Settings(place / "repository", place / "index", model=model), **told)  # type: ignore[arg-type]
