"""A server in this process for tests, over real HTTP."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self


class Handler(BaseHTTPRequestHandler):
    """Answers requests, and logs none."""

    protocol_version = "HTTP/1.1"

    def answer(self, body: bytes) -> None:
        """Answer a request of any method."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self.answer(self.rfile.read(int(self.headers["Content-Length"] or 0)))

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the base class's names

    def send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        """Send an answer."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


class HttpServer(ThreadingHTTPServer):
    """The server, in a `with` statement."""

    daemon_threads = True

    def __init__(self, handler: type[Handler], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error, unless the client has left."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
