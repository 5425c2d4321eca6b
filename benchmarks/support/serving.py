"""Wikis served for measuring: by gunicorn as in production, or by Flask's development server, with the plugin or without it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from benchmarks.support.client import Client
from benchmarks.support.options import ROOT
from benchmarks.support.wikis import built, copied, scratch
from tests.support.live_wiki import LiveWiki, eventually, make_repository
from tests.support.processes import owners_of

PROCESSORS = frozenset(os.sched_getaffinity(0))
_START_SECONDS = 60.0
_LOOK_SECONDS = 0.002
_OPENING_SECONDS = 300.0
_ENDING_SECONDS = 60.0


@dataclass(frozen=True)
class Server:
    """A way to serve the wiki; `{port}` in the command stands for the port."""

    name: str
    command: tuple[str, ...]
    keeps_connections: bool = True


def gunicorn(workers: int = 2) -> Server:
    """Return gunicorn with so many workers of 4 threads each, and connections that stay open."""
    options = (
        "--no-control-socket",
        "--workers",
        str(workers),
        "--threads",
        "4",
        "--keep-alive",
        "60",
        "--graceful-timeout",
        "5",
    )
    start = (sys.executable, "-m", "gunicorn", *options, "--bind", "127.0.0.1:{port}")
    return Server(f"gunicorn, {workers} x 4", (*start, "tests.support.served_app:app"))


GUNICORN = gunicorn()
FLASK = Server(
    "flask's development server",
    (sys.executable, "-m", "flask", "--app", "tests.support.served_app", "run", "--port", "{port}"),
    keeps_connections=False,
)


class ServedWiki(LiveWiki):
    """A wiki and its index, on the given processors, by the code below `root`.

    The index process has ended, too, when the `with` statement has.
    """

    def __init__(
        self,
        repository: Path,
        data_dir: Path,
        server: Server = GUNICORN,
        *,
        plugin: bool = True,
        processors: frozenset[int] = PROCESSORS,
        settings: Mapping[str, str] | None = None,
        root: Path = ROOT,
    ) -> None:
        data_dir.with_name(f"{data_dir.name}.sqlite").write_bytes(_database())
        cores = ",".join(map(str, sorted(processors)))
        command = ["env", f"--chdir={root}", "taskset", "--cpu-list", cores, *server.command]
        without = "" if plugin else "1"
        settings = {"SEMANTIC_PAGES": "", **(settings or {})}
        super().__init__(
            repository, data_dir, plugin=True, command=command, PYTHONPATH=str(root), WITHOUT_PLUGIN=without, **settings
        )
        if "SEMANTIC_PAGES" not in (root / "docs" / "configuration.md").read_text(encoding="utf-8"):
            del self._settings["SEMANTIC_PAGES"]  # of a commit that has other settings
            self._settings["SEMANTIC_MAP"] = "false"
        self.has_plugin = plugin
        self.start_seconds = 0.0
        """Time from the last start of the process until it answered."""

    def __enter__(self) -> Self:
        start = time.perf_counter()
        self._serve()
        with Client(self.port) as client:
            while not self._is_up(client):
                assert time.perf_counter() - start < _START_SECONDS, f"the wiki does not answer: {self.log}"
                time.sleep(_LOOK_SECONDS)
        self.start_seconds = time.perf_counter() - start
        return self

    def _is_up(self, client: Client) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log
        with suppress(OSError):
            return client.get("/-/healthz").status == 200
        return False

    def stop(self, name: signal.Signals = signal.SIGTERM) -> None:
        """End the wiki, and wait until its index process has followed, a few seconds later."""
        super().stop(name)
        if self.has_plugin:
            eventually(lambda: not owners_of(self.data_dir), _ENDING_SECONDS, "the index process ends")

    def client(self) -> Client:
        """Return a client with a connection of its own; use it in a `with` statement."""
        return Client(self.port)

    def wait_until_open(self) -> None:
        """Wait until the index answers from ChromaDB: equal to HEAD, and nothing left to do."""

        def is_open() -> bool:
            status = self.status()
            chroma = (status["chroma"] or {}).get("state")
            return bool(status["status"] == chroma == "ready" and status["pending_pages"] == 0)

        eventually(is_open, _OPENING_SECONDS, "the index is ready")

    def owner(self) -> int:
        """Return the index process's id."""
        return int(self.status()["owner_pid"])


@contextmanager
def served(pages: int, server: Server = GUNICORN) -> Iterator[ServedWiki]:
    """Serve a copy of a generated wiki with its index, which may be changed; the index is open and equals HEAD."""
    with scratch() as place:
        wiki = copied(built(pages), place)
        with ServedWiki(wiki.repository, wiki.data_dir, server) as live:
            live.wait_until_open()
            yield live


@cache
def _database() -> bytes:
    """Return the wiki's own database, made by one process: of several that find none all but one fail to make it."""
    with TemporaryDirectory() as name:
        place = Path(name)
        with LiveWiki(make_repository(place / "repository", {}), place / "wiki", plugin=False):
            return (place / "wiki.sqlite").read_bytes()
