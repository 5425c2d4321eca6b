"""Clients that send or read slowly, or leave."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.live_wiki import KEY


@contextmanager
def posted(port: int, path: str, body: dict[str, Any]) -> Iterator[socket.socket]:
    """Send a request with the API key, and lend the connection, whose answer nobody has read; close it at the end."""
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {KEY}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.encode() + content)
        yield connection


def status_of(connection: socket.socket) -> int | None:
    """Return the status of the answer, of which nothing is read; None before it has come."""
    is_there, _, _ = select.select([connection], [], [], 0)
    return int(connection.recv(64, socket.MSG_PEEK).split()[1]) if is_there else None
