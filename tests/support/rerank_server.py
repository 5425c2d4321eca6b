"""A server with Cohere's ``POST /v2/rerank``, which scores texts by the words that they share with the query."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

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
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.goes_on.set()
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(body)
                server.paths.append(self.path)
                server.keys.append(self.headers["Authorization"])
                server.goes_on.wait()
                status, content = server.reply(body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of the class above
                """Say nothing."""

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:
                    self.close_connection = True

        return Handler
