"""A server with Cohere's ``POST /v2/rerank``, which scores texts by the words that they share with the query."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any, Self

from tests.support.http_server import Handler, HttpServer

Reply = tuple[int, bytes]


def shared_words(query: str, text: str) -> float:
    """Return how many different words of the query a text has, minus a little for its length."""
    words = set(re.findall(r"\w+", text.lower()))
    return len(words & set(re.findall(r"\w+", query.lower()))) - len(text) / 1e6


def ranked(body: dict[str, Any], score: Callable[[str, str], float] = shared_words) -> Reply:
    """Return the answer of a server that works: the best text first, each by its index in the request."""
    scores = [(score(body["query"], text), place) for place, text in enumerate(body["documents"])]
    results = [{"index": place, "relevance_score": value} for value, place in sorted(scores, reverse=True)]
    return 200, json.dumps({"id": "1", "results": results[: body["top_n"]]}).encode()


def saying(status: int, message: str) -> Callable[[dict[str, Any]], Reply]:
    """Return a reply that is an error in Cohere's format."""
    return lambda _: (status, json.dumps({"message": message}).encode())


class RerankServer:
    """The server, on a port of its own, in a `with` statement. `reply` makes its answers; `requests` are those it received."""

    def __init__(self) -> None:
        self.reply: Callable[[dict[str, Any]], Reply] = ranked
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.goes_on = threading.Event()
        """While it is not set, no request is answered."""
        self.goes_on.set()
        self._http = HttpServer(self._handler())
        self.url = self._http.url

    def __enter__(self) -> Self:
        self._http.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.goes_on.set()
        self._http.__exit__()

    def _handler(self) -> type[Handler]:
        server = self

        class Asked(Handler):
            def answer(self, body: bytes) -> None:
                asked = json.loads(body)
                server.requests.append(asked)
                server.paths.append(self.path)
                server.keys.append(self.headers["Authorization"])
                server.goes_on.wait()
                self.send(*server.reply(asked), {"Content-Type": "application/json"})

        return Asked
