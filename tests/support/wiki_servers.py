"""The ways to serve a wiki, and a served one, each of whose workers can be asked."""

from __future__ import annotations

import http.client
import os
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.fork_server import started
from tests.support.light_parts import PYTHON
from tests.support.live_wiki import KEY, LiveWiki, Reply, eventually, make_repository
from tests.support.processes import owners_of

Pages = dict[str, str | bytes]

_ANIMALS = ("ant", "bee", "cat", "dog", "elk", "fox", "goat", "hare", "lynx", "mole", "otter", "wolf")


@dataclass(frozen=True)
class Server:
    """A way to serve the wiki, and the number of processes that answer."""

    name: str
    workers: int
    command: tuple[str, ...]
    finds_interpreter: bool = False
    """Whether the index daemon is started by what the plugin finds, instead of forked."""

    def wiki(self, repository: Path, data_dir: Path, *, plugin: bool = True, **settings: Any) -> LiveWiki:
        """Return the wiki, not started yet. It is forked from a process that has imported what the wiki needs, but in uWSGI."""
        (data_dir.parent / f"{data_dir.name}.sqlite").write_bytes(database())
        command = [part.replace("{workers}", str(self.workers)) for part in self.command]
        settings["WITHOUT_PLUGIN"] = "" if plugin else "1"
        if command[0] == sys.executable and PYTHON in os.environ:
            command[0] = started("web")
        if self.finds_interpreter:
            settings[PYTHON] = ""
        return LiveWiki(repository, data_dir, command=command, **settings)


@cache
def database() -> bytes:
    """Return the wiki's database, made by one process: of several that find none all but one fail to make it."""
    with TemporaryDirectory() as name:
        place = Path(name)
        with LiveWiki(make_repository(place / "repository", {}), place / "wiki", plugin=False):
            return (place / "wiki.sqlite").read_bytes()


def _gunicorn(*options: str) -> tuple[str, ...]:
    start = (sys.executable, "-m", "gunicorn", "--no-control-socket", "--workers={workers}", "--bind", "127.0.0.1:{port}")
    return (*start, *options, "tests.support.served_app:app")


def _uwsgi(**options: str) -> tuple[str, ...]:
    """Return the settings of the wiki's official image, with a port of its own, and what its reload has to start."""
    flags = ("need-app", "die-on-term", "single-interpreter", "vacuum", "master", "enable-threads", "disable-logging")
    settings = dict.fromkeys((*flags, "wsgi-disable-file-wrapper"), "true") | {
        "module": "tests.support.served_app",
        "callable": "app",
        "processes": "{workers}",
        "reload-mercy": "5",
        "worker-reload-mercy": "5",
        "hook-master-start": "unix_signal:15 gracefully_kill_them_all",
        "http-socket": "127.0.0.1:{port}",
        "binary-path": sys.executable,
        **options,
    }
    return (str(Path(sys.executable).with_name("uwsgi")), *(f"--set={name}={value}" for name, value in settings.items()))


_WAITRESS = (sys.executable, "-m", "waitress", "--listen", "127.0.0.1:{port}", "--channel-request-lookahead=1")
# pytest brings the tests of one server together by its place in the list: any other list has to be the beginning of this one.
SERVERS = [
    Server("gunicorn", 2, _gunicorn()),
    Server("gunicorn --preload", 2, _gunicorn("--preload")),
    Server("uwsgi of 3", 3, _uwsgi(), finds_interpreter=True),
]
GUNICORN = SERVERS[:1]
OF_THREADS = [
    Server("gunicorn of 4 threads", 1, _gunicorn("--threads=4")),
    Server("uwsgi of 4 threads", 1, _uwsgi(threads="4")),
    Server("waitress", 1, (*_WAITRESS, "tests.support.served_app:app")),
]
OF_ONE_THREAD = [Server("uwsgi of 1 thread", 1, _uwsgi())]


class Served:
    """A running wiki, each of whose workers can be asked."""

    def __init__(self, server: Server, live: LiveWiki) -> None:
        self.server = server
        self.live = live
        self._animals = _animals()

    def ask_each(self, path: str, gone: frozenset[int] = frozenset()) -> dict[int, Reply]:
        """Return what each worker answers, by its process id. If some have `gone`, their places may be empty for a while."""
        replies: dict[int, Reply] = {}

        def all_have_answered() -> bool:
            with suppress(*(OSError, http.client.HTTPException) if gone else ()):
                replies.update((worker, reply) for worker, reply in self._ask_at_once(path) if worker not in gone)
            return len(replies) == self.server.workers

        eventually(all_have_answered, why="every worker answers")
        return replies

    def _ask_at_once(self, path: str) -> Iterator[tuple[int, Reply]]:
        # A worker with one thread holds one connection: all are open before the first is used, so that each has another worker.
        with ExitStack() as stack:
            connections = [self._connect(stack) for _ in range(self.server.workers)]
            for connection in connections:
                connection.request("GET", path, headers={"Authorization": f"Bearer {KEY}"})
            for connection in connections:
                response = connection.getresponse()
                yield int(response.headers["X-Worker"]), Reply(response.status, dict(response.headers), response.read())

    def _connect(self, stack: ExitStack) -> http.client.HTTPConnection:
        connection = stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", self.live.port, timeout=60)))
        connection.connect()
        return connection

    def workers(self, gone: frozenset[int] = frozenset()) -> frozenset[int]:
        return frozenset(self.ask_each("/-/healthz", gone))

    def all_find(self, questions: dict[str, str]) -> bool:
        """Return whether through every worker the right page comes first."""
        return all(first(reply) == page for asked, page in questions.items() for reply in self.ask_each(search(asked)).values())

    def save_and_find(self, pages: int = 1) -> set[int]:
        """Save new pages through the wiki's form, and wait until each worker finds them; gives the workers that saved.

        Their connections are all open before the first is used, so that each has another worker.
        """
        animals, savers = [next(self._animals) for _ in range(pages)], set()
        form = {"csrf_token": self.live.csrf_token(f"/{animals[0]}/edit"), "commit": "new"}
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.live.cookies)
        headers = {"Cookie": cookies, "Content-Type": "application/x-www-form-urlencoded"}
        with ExitStack() as stack:
            connections = [self._connect(stack) for _ in animals]
            for animal, connection in zip(animals, connections, strict=True):
                form["content"] = (
                    f"# {animal.title()}\n\nThe {animal} sleeps behind the stove from dusk until the cook gets up.\n"
                )
                connection.request("POST", f"/{animal}/save", urllib.parse.urlencode(form), headers)
                response = connection.getresponse()
                answer = response.read()
                assert response.status == 302, answer
                savers.add(int(response.headers["X-Worker"]))
        questions = {f"where does the {animal} sleep": animal for animal in animals}
        eventually(lambda: self.all_find(questions), why="each worker finds the pages")
        return savers

    def owner(self) -> int:
        """Return the owner once no other process waits to be the next one."""

        def the_only_one() -> int:
            owners = owners_of(self.live.data_dir)
            return owners[0] if len(owners) == 1 else 0

        return eventually(the_only_one, why="one process owns the index")


def _animals() -> Iterator[str]:
    """Yield names without end, each once: animals, then pairs of them in one word, and so on."""
    for length in count(1):
        yield from map("".join, product(_ANIMALS, repeat=length))


def search(question: str) -> str:
    return f"/api/v1/semantic-search?{urllib.parse.urlencode({'q': question, 'n': 1})}"


def first(reply: Reply) -> str:
    """Return the page that comes first, empty if none was found."""
    assert reply.status == 200, reply.text
    results: list[dict[str, str]] = reply.json["results"]
    return results[0]["path"] if results else ""
