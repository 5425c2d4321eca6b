"""Several clients that search, in one process of its own that costs little processor time.

`Load` starts it and gives what came of it. Run as a program it reads from standard input the port, the pause and the questions
of each client as JSON, and asks, each client over a connection of its own and the next question so long after the last one is
answered, until the input ends; then it prints what it saw as JSON. It uses sockets as they are: the HTTP client of Python's
library takes several times as long, on processors that the wiki needs. The server has to keep connections open.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

from tests.support.live_wiki import KEY

ROOT = Path(__file__).resolve().parent.parent.parent
_READ_BYTES = 1 << 16
_TIMEOUT_SECONDS = 60.0
_READY = "ready\n"


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What the clients saw: for how long they searched, the processor time they took for it, and the seconds of each answer."""

    elapsed: float
    cpu_seconds: float
    seconds: list[float]

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.seconds) / self.elapsed

    @property
    def cores(self) -> float:
        """Processor cores that the clients themselves took."""
        return self.cpu_seconds / self.elapsed


class Load:
    """Clients that search for as long as the `with` statement runs, with a `pause` in seconds; `report` has what they saw.

    They share the questions, and begin again when these are used up: more than the index remembers are never remembered.
    """

    def __init__(self, port: int, questions: Sequence[str], clients: int = 4, pause: float = 0.0) -> None:
        shares = [list(questions[number::clients]) for number in range(clients)]
        self._order = {"port": port, "pause": pause, "questions": shares}
        self._process: subprocess.Popen[str] | None = None
        self._report: LoadReport | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "benchmarks.support.load"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(self._order), file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == _READY, "the clients did not start"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        output, _errors = self._process.communicate(timeout=_TIMEOUT_SECONDS)
        if self._process.returncode == 0:
            self._report = LoadReport(**json.loads(output))

    @property
    def report(self) -> LoadReport:
        """What the clients saw; fails if the wiki has not answered all of their questions."""
        assert self._report is not None, "the clients failed"
        return self._report


class _Asker:
    """One client: its connection, and the requests it sends over and over."""

    def __init__(self, port: int, questions: Sequence[str]) -> None:
        head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n\r\n"
        paths = (f"/api/v1/semantic-search?{urlencode({'q': question})}" for question in questions)
        self._requests = cycle([f"GET {path} HTTP/1.1\r\n{head}".encode() for path in paths])
        self.connection = socket.create_connection(("127.0.0.1", port), _TIMEOUT_SECONDS)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._sent = 0.0

    def ask(self) -> None:
        """Send the next question."""
        self._received = b""
        self._sent = time.perf_counter()
        self.connection.sendall(next(self._requests))

    def read(self) -> float | None:
        """Take what has come; gives the seconds since the question once the answer is whole."""
        part = self.connection.recv(_READ_BYTES)
        assert part, "the wiki closed a connection"
        self._received += part
        head, has_head, body = self._received.partition(b"\r\n\r\n")
        if not has_head:
            return None
        assert head.startswith(b"HTTP/1.1 200"), self._received[:500]
        length = int(head.lower().partition(b"content-length:")[2].split(maxsplit=1)[0])
        return time.perf_counter() - self._sent if len(body) >= length else None


def _ask_until_told(port: int, questions: Sequence[Sequence[str]], pause: float) -> LoadReport:
    askers = [_Asker(port, of_client) for of_client in questions]
    seconds: list[float] = []
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        for asker in askers:
            selector.register(asker.connection, selectors.EVENT_READ, asker)
        start, cpu = time.perf_counter(), time.process_time()
        resting = deque((start + pause * number / len(askers), asker) for number, asker in enumerate(askers))
        while True:
            while resting and resting[0][0] <= time.perf_counter():
                resting.popleft()[1].ask()
            wait = max(0.0, resting[0][0] - time.perf_counter()) if resting else None
            for key, _events in selector.select(wait):
                if key.data is None:
                    return LoadReport(time.perf_counter() - start, time.process_time() - cpu, seconds)
                answered = key.data.read()
                if answered is not None:
                    seconds.append(answered)
                    resting.append((time.perf_counter() + pause, key.data))


def main() -> None:
    """Ask, and print what came of it."""
    order = json.loads(sys.stdin.readline())
    print(_READY, end="", flush=True)
    print(json.dumps(asdict(_ask_until_told(order["port"], order["questions"], order["pause"]))))


if __name__ == "__main__":
    main()
