"""Each way to serve a wiki: one owner of the index beside any number of workers, of which any may save, be killed or reload."""

from __future__ import annotations

import http.client
import logging
import os
import signal
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest

from tests.support.live_wiki import KEY, LiveWiki, eventually, make_repository
from tests.support.processes import owners_of, private_megabytes
from tests.support.wiki_servers import GUNICORN, OF_SEVERAL, SERVERS, Pages, Served, Server, first, search

FOUND_SECONDS = 2.0
FAILING_SECONDS = 2.0
ENDING_SECONDS = 15.0
MOST_MEGABYTES = 30.0
KILLS = 5
HEAVY = ["onnxruntime", "tokenizers"]
QUESTIONS = {
    "when to plant tomatoes": "garden",
    "keep the pipe from bursting in a cold night": "house/heating",
    "how often is the siren tested": "house/alarm",
    "a failed disk of the mirror": "machines/nas",
}

log = logging.getLogger(__name__)


def mapped(pid: int) -> list[str]:
    """Return the heavy libraries that a process has loaded."""
    libraries = Path(f"/proc/{pid}/maps").read_text()
    return [name for name in HEAVY if name in libraries]


def pipes(pid: int) -> set[str]:
    """Return the pipes that a process has an end of."""
    found = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(path.readlink().name)
    return {name for name in found if name.startswith("pipe:")}


class Fleet:
    """Runs one server at a time; those that were stopped are watched in the background until their owners have ended."""

    def __init__(self, place: Path, pages: Pages) -> None:
        self._place = place
        self._pages = pages
        self._served: Served | None = None
        self._endings: dict[Server, Future[None]] = {}
        self._background = ThreadPoolExecutor()

    def run(self, server: Server) -> Served:
        self.stop()
        place = self._place / server.name
        self._served = Served(server, server.wiki(make_repository(place / "repository", self._pages), place / "index"))
        self._served.live.__enter__()
        self._served.live.wait_until_indexed()
        return self._served

    def stop(self) -> None:
        if self._served is not None:
            self._endings[self._served.server] = self._background.submit(stop, self._served.live)
            self._served = None

    def ending(self, server: Server) -> Future[None]:
        """Return what became of a server that was stopped, and of its owner."""
        if server not in self._endings and (self._served is None or self._served.server != server):
            self.run(server)
        self.stop()
        return self._endings[server]

    def close(self) -> None:
        self.stop()
        self._background.shutdown()


def stop(live: LiveWiki) -> None:
    live.stop()
    eventually(lambda: not owners_of(live.data_dir), ENDING_SECONDS, "the owner ends")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, handbook: Pages) -> Iterator[Fleet]:
    with closing(Fleet(tmp_path_factory.mktemp("servers"), handbook)) as fleet:
        yield fleet


@pytest.fixture(scope="module", params=SERVERS, ids=lambda server: server.name)
def served(request: pytest.FixtureRequest, fleet: Fleet) -> Served:
    return fleet.run(request.param)


@pytest.mark.parametrize("served", SERVERS[::3], indirect=True, ids=lambda server: server.name)
def test_a_worker_is_hardly_bigger_with_the_plugin(served: Served, tmp_path: Path, handbook: Pages) -> None:
    def worker_size(served: Served) -> float:
        for path in ["/", "/house/heating", "/garden/edit", *map(search, QUESTIONS)] * 2:
            served.ask_each(path)
        return statistics.median(map(private_megabytes, served.workers()))

    alone = replace(served.server, workers=1)
    with alone.wiki(make_repository(tmp_path / "repository", handbook), tmp_path / "none", plugin=False) as bare:
        assert bare.api("GET", "/semantic-search/status").status == 404
        added = worker_size(served) - worker_size(Served(alone, bare))
    log.info("%s: a worker is %.1f MB bigger with the plugin", served.server.name, added)
    assert added <= MOST_MEGABYTES


def test_a_page_saved_through_any_worker_is_found_through_every_worker(served: Served) -> None:
    wanted = min(3, served.server.workers)
    savers: set[int] = set()
    for attempt in range(30):  # the kernel chooses who answers
        worker, seconds = served.save_and_find(blockers=attempt % served.server.workers)
        log.info("%s: saved through %d, found through all after %.2f s", served.server.name, worker, seconds)
        assert seconds <= FOUND_SECONDS
        savers.add(worker)
        if attempt >= 2 and len(savers) >= wanted:
            break
    assert len(savers) >= wanted


@dataclass
class Client:
    """Someone who asks one question again and again, and what the answers were."""

    live: LiveWiki
    question: str
    answers: list[tuple[float, float, str]] = field(default_factory=list)
    """When it was asked and answered, and the page that came first; empty for an error."""

    def ask_until(self, done: Event) -> None:
        while not done.is_set():
            asked, page = time.monotonic(), ""
            with suppress(OSError, http.client.HTTPException):
                reply = self.live.request("GET", search(self.question), headers={"Authorization": f"Bearer {KEY}"})
                page = (first(reply) or "nothing") if reply.status == 200 else ""
            self.answers.append((asked, time.monotonic(), page))

    def since(self, moment: float) -> list[tuple[float, float, str]]:
        return [answer for answer in self.answers if answer[1] > moment]


def kill_owner(served: Served, clients: list[Client]) -> None:
    """Kill the owner, and wait until another one has answered every client."""
    pid = served.live.status()["owner_pid"]
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    dead = time.monotonic()
    eventually(lambda: all(any(page and asked > dead for asked, _, page in client.answers) for client in clients))
    assert served.live.status()["owner_pid"] != pid
    for client in clients:
        answers = client.since(killed)
        failing = sum(answered - asked for asked, answered, page in answers if not page)
        waits = [later - earlier for earlier, later in pairwise([killed, *(answered for _, answered, page in answers if page)])]
        log.info("%s: waited %.2f s, of which errors took %.2f s", client.question, max(waits), failing)
        assert failing <= FAILING_SECONDS


@pytest.mark.parametrize("served", GUNICORN, indirect=True, ids=lambda server: server.name)
def test_searches_outlive_the_owner(served: Served) -> None:
    clients = [Client(served.live, question) for question in QUESTIONS]
    done = Event()
    with ThreadPoolExecutor(len(clients)) as pool:
        asking = [pool.submit(client.ask_until, done) for client in clients]
        try:
            for _ in range(KILLS):
                kill_owner(served, clients)
        finally:
            done.set()
    for future, client in zip(asking, clients, strict=True):
        future.result()
        assert {page for _, _, page in client.answers} - {""} == {QUESTIONS[client.question]}
    assert served.owner() == served.live.status()["owner_pid"]


def test_one_process_owns_the_index_and_only_it_loads_the_model(served: Served) -> None:
    assert served.all_find(QUESTIONS)
    workers, owner = served.workers(), served.owner()
    assert owner == served.live.status()["owner_pid"]
    assert owner not in workers
    eventually(lambda: mapped(owner) == HEAVY, why="the model is opened in the background")
    assert served.live.process is not None
    for pid in {served.live.process.pid, *workers}:
        assert not mapped(pid)


@pytest.mark.parametrize("served", OF_SEVERAL, indirect=True, ids=lambda server: server.name)
def test_a_killed_worker_takes_nothing_along(served: Served) -> None:
    workers, owner = served.workers(), served.owner()
    starters = [worker for worker in workers if pipes(worker) & pipes(owner)]
    victim = (starters or sorted(workers))[0]
    os.kill(victim, signal.SIGKILL)
    assert len(served.workers(gone=frozenset({victim})) - workers) == 1
    assert served.all_find(QUESTIONS)
    served.save_and_find()
    assert served.owner() == served.live.status()["owner_pid"]


@pytest.mark.parametrize("served", OF_SEVERAL, indirect=True, ids=lambda server: server.name)
def test_a_graceful_reload_keeps_the_index(served: Served) -> None:
    workers = served.workers()
    assert served.live.process is not None
    served.live.process.send_signal(signal.SIGHUP)
    assert not served.workers(gone=workers) & workers
    assert served.all_find(QUESTIONS)
    served.save_and_find()
    assert served.owner() == served.live.status()["owner_pid"]


def test_an_interrupted_first_build_is_carried_on(tmp_path: Path) -> None:
    pages: Pages = {f"boxes/{n}.md": f"# Box {n}\n\nIt holds {7 * n} screws, {n % 13} hinges and a key.\n" for n in range(300)}
    with SERVERS[1].wiki(make_repository(tmp_path / "repository", pages), tmp_path / "index") as live:
        eventually(lambda: live.status()["vectors"] >= len(pages) // 4, why="a quarter of the pages is embedded")
        half = live.status()
        os.kill(half["owner_pid"], signal.SIGKILL)
        assert half["status"] == "indexing"
        whole = live.wait_until_indexed()
        assert whole["owner_pid"] != half["owner_pid"]
        assert whole["pages"] == len(pages)
        assert 0 < whole["embedded_texts"] <= whole["chunks"] - half["vectors"]


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_a_server_that_is_stopped_leaves_no_owner(fleet: Fleet, server: Server) -> None:
    fleet.ending(server).result()
