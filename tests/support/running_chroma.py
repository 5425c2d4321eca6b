"""A real ChromaDB server, and one that is only let in to over TLS, with a token, and in small portions."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support.http_server import Handler, HttpServer
from tests.support.ports import free_port

_CHROMA = (sys.executable, "-c", "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(['chroma', *sys.argv[1:]])")
"""The command `chroma`, but for the client that it imports first, which takes a second."""


class RunningChroma:
    """A ChromaDB server on this machine, as `chroma run` starts it; it keeps its port and directory when started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self._process = subprocess.Popen(
            [*_CHROMA, "run", "--path", self.directory, "--host", "127.0.0.1", "--port", str(self.port)],
            env={**os.environ, "RUST_LOG": "error"},
            stdout=subprocess.DEVNULL,
            restore_signals=False,  # a file that may not grow is an error, and not the end of the process
        )
        deadline = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None, "chroma run ended"
            assert time.monotonic() < deadline, "chroma run does not listen"
            time.sleep(0.01)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process id of a server that runs."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """End it; nothing is lost."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=30)
            self._process = None

    def ask(self, method: str, path: str) -> object:
        """Return the answer to a request below ``/api/v2``, as another client of the server gets it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, f"/api/v2{path}")
            return json.load(connection.getresponse())
        finally:
            connection.close()

    def collections(self, database: str = "default_tenant/default_database") -> list[str]:
        """Return the names of the collections in a database, which is named by its tenant and its name."""
        tenant, name = database.split("/")
        found = self.ask("GET", f"/tenants/{tenant}/databases/{name}/collections")
        assert isinstance(found, list)
        return sorted(collection["name"] for collection in found)

    def collection_id(self, name: str) -> str | None:
        """Return the id of a collection of the default database; None if there is no such collection."""
        found = self.ask("GET", f"/tenants/default_tenant/databases/default_database/collections/{name}")
        return found.get("id") if isinstance(found, dict) else None

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=0.1):
            return True
        return False


class GuardedChroma:
    """A proxy before a ChromaDB server: TLS, a token in a header, and what Chroma's own service is like.

    It takes and gives no more than 300 records at a time, and no configuration of an HNSW index.

    `certificate` is the file to trust it by.
    """

    PORTION = 300

    def __init__(self, behind: RunningChroma, directory: Path, token: str, header: str = "Authorization") -> None:
        self.certificate = directory / "certificate.pem"
        key = directory / "key.pem"
        make_certificate(self.certificate, key)
        self.refusals: dict[str, tuple[int, str]] = {}
        """Statuses and errors that are answered to requests, by how method and path begin."""
        guard, wanted = self, f"Bearer {token}" if header == "Authorization" else token

        class Guarded(Handler):
            def answer(self, body: bytes) -> None:
                asked = f"{self.command} {self.path}"
                refusal = next((guard.refusals[start] for start in guard.refusals if asked.startswith(start)), None)
                if refusal is not None:
                    self._answer(refusal[0], "application/json", refusal[1].encode())
                elif self.headers.get(header) != wanted:
                    self._answer(401, "text/html", b"<h1>Who are you?</h1>")
                elif guard._is_too_much(body):
                    self._answer(422, "application/json", b'{"error": "SomeQuota", "message": "more than 300"}')
                elif b'"hnsw":{' in body:
                    self._answer(400, "application/json", b'{"error": "InvalidArgumentError", "message": "no HNSW"}')
                else:
                    self._forward(body)

            def _forward(self, body: bytes) -> None:
                connection = http.client.HTTPConnection("127.0.0.1", behind.port, timeout=10)
                try:
                    connection.request(self.command, self.path, body, {"Content-Type": "application/json"})
                    answer = connection.getresponse()
                    self._answer(answer.status, answer.headers["Content-Type"] or "", answer.read())
                finally:
                    connection.close()

            def _answer(self, status: int, kind: str, body: bytes) -> None:
                self.send(status, body, {"Content-Type": kind})

        class Server(HttpServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """Take a client that does not trust the certificate as it comes."""

        self._server = Server(Guarded)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        self._server.__enter__()

    def _is_too_much(self, body: bytes) -> bool:
        asked = json.loads(body or b"{}")
        portions = (len(asked.get("ids") or ()), asked.get("limit") or 0, asked.get("n_results") or 0)
        return max(portions) > self.PORTION

    def close(self) -> None:
        """End it."""
        self._server.__exit__()


def make_certificate(certificate: Path, key: Path) -> None:
    """Write a certificate for this machine that is its own authority, and its key."""
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=a test's own authority", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    command = ["openssl", "req", "-x509", *curve, *names, "-days", "2", *files]
    subprocess.run(command, check=True, capture_output=True)
