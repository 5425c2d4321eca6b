from __future__ import annotations

import os
import socket
from contextlib import suppress
from itertools import count

_FIRST, _PORTS, _WORKERS = 10_000, 20_000, 8
"""Ports below those that the kernel gives to connections, divided among the processes that test at the same time."""
_SHARE = _PORTS // _WORKERS
_NUMBERS = count()


def free_port() -> int:
    """Return a port that nobody listens on, nobody else in this session gets, and no connection takes by chance."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    start = hash(session)  # sessions at the same time begin in different places
    while True:
        port = _FIRST + worker * _SHARE + (start + next(_NUMBERS)) % _SHARE
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
