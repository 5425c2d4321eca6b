"""Readers of a stream who do not read are dropped, on real servers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from flask import Flask, Response
from werkzeug.serving import BaseWSGIServer, make_server

from otterwiki_semantic.web import answer_stream
from tests.support.ports import free_port


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[BaseWSGIServer, threading.Event]]:
    """A server of a stream without end, and what is set when nobody is sent any more of it."""
    monkeypatch.setattr(answer_stream, "_SEND_SECONDS", 0.2)
    app, ended = Flask(__name__), threading.Event()

    @app.route("/")
    def stream() -> Response:
        answer_stream.WaitingReader()

        def events() -> Iterator[bytes]:
            try:
                while True:
                    yield bytes(65_536)
            finally:
                ended.set()

        return Response(events())

    server = make_server("127.0.0.1", free_port(), app, threaded=True)
    running = threading.Thread(target=server.serve_forever, daemon=True)
    running.start()
    yield server, ended
    server.shutdown()
    running.join()


def test_a_reader_who_does_not_read_is_dropped(dropped: tuple[BaseWSGIServer, threading.Event]) -> None:
    server, ended = dropped
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert ended.wait(30)
