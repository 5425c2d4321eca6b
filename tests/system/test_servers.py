"""Real servers of several processes: one owner of the index, whichever worker saves, is killed or reloads."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from tests.support.live_wiki import KEY, eventually, make_repository
from tests.support.processes import owners_of, parent_of, private_megabytes, wait_until_ended
from tests.support.wiki_servers import GUNICORN, SERVERS, Pages, Served, first, search

AS_PROGRAM = {"Authorization": f"Bearer {KEY}"}
MOST_MEGABYTES = 30.0
KILLS = 2
HEAVY = ["onnxruntime", "tokenizers"]
QUESTIONS = {
    "when to plant tomatoes": "garden",
    "keep the pipe from bursting in a cold night": "house/heating",
    "how often is the siren tested": "house/alarm",
    "a failed disk of the mirror": "machines/nas",
}


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


@pytest.fixture(scope="module", params=SERVERS, ids=lambda server: server.name)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, handbook: Pages) -> Iterator[Served]:
    """A server whose index looks at HEAD only when it is told to."""
    server, place = request.param, tmp_path_factory.mktemp("served")
    repository = make_repository(place / "repository", handbook)
    with server.wiki(repository, place / "index", SEMANTIC_SYNC_INTERVAL="3600") as live:
        live.wait_until_indexed()
        yield Served(server, live)


@pytest.mark.parametrize("served", GUNICORN, indirect=True, ids=lambda server: server.name)
def test_the_wikis_log_says_once_when_search_is_ready(served: Served) -> None:
    live = served.live
    eventually(lambda: "search is ready: 5 pages, 6 chunks in " in live.log)
    live.save("shed", "# Shed\n\nThe lawn mower stands here.\n")
    eventually(lambda: live.search("lawn mower", n=1)[0]["path"] == "shed")
    assert live.log.count("search is ready") == 1
    live.api("POST", "/reindex")
    eventually(lambda: "search is ready: 6 pages, 7 chunks in " in live.log)
    assert live.log.count("search is ready") == 2


@pytest.mark.parametrize("served", GUNICORN, indirect=True, ids=lambda server: server.name)
def test_a_worker_is_hardly_bigger_with_the_plugin(served: Served, tmp_path: Path, handbook: Pages) -> None:
    def worker_size(served: Served) -> float:
        for path in ["/", "/house/heating", "/garden/edit", *map(search, QUESTIONS)] * 2:
            served.ask_each(path)
        return statistics.median(map(private_megabytes, served.workers()))

    alone = replace(served.server, workers=1)
    with alone.wiki(make_repository(tmp_path / "repository", handbook), tmp_path / "none", plugin=False) as bare:
        assert bare.api("GET", "/semantic-search/status").status == 404
        added = worker_size(served) - worker_size(Served(alone, bare))
    assert added <= MOST_MEGABYTES


def test_a_page_saved_through_any_worker_is_found_through_every_worker(served: Served) -> None:
    savers: set[int] = set()
    while savers != served.workers():  # one that was still busy may have left its turn to another
        savers |= served.save_and_find(served.server.workers)


@pytest.mark.parametrize("served", GUNICORN, indirect=True, ids=lambda server: server.name)
def test_searches_outlive_the_owner(served: Served) -> None:
    done = Event()
    answers: dict[str, list[tuple[float, str]]] = {question: [] for question in QUESTIONS}
    """When each was asked, and the page that came first; empty for an error, which a killed owner may leave behind."""

    def ask(question: str) -> None:
        while not done.is_set():
            asked = time.monotonic()
            reply = served.live.request("GET", search(question), headers=AS_PROGRAM)
            answers[question].append((asked, (first(reply) or "nothing") if reply.status == 200 else ""))

    def all_are_answered_after(moment: float) -> bool:
        return all(any(page and asked > moment for asked, page in given) for given in answers.values())

    with ThreadPoolExecutor(len(QUESTIONS)) as pool:
        asking = [pool.submit(ask, question) for question in QUESTIONS]
        try:
            for _ in range(KILLS):
                pid = served.live.status()["owner_pid"]
                os.kill(pid, signal.SIGKILL)
                eventually(partial(all_are_answered_after, time.monotonic()))
                assert served.live.status()["owner_pid"] != pid
        finally:
            done.set()
    assert not any(future.result() for future in asking)
    assert {question: {page for _, page in given} - {""} for question, given in answers.items()} == {
        question: {page} for question, page in QUESTIONS.items()
    }
    assert served.owner() == served.live.status()["owner_pid"]


def test_one_process_owns_the_index_and_only_it_loads_the_model(served: Served) -> None:
    assert served.all_find(QUESTIONS)
    workers, owner = served.workers(), served.owner()
    assert owner == served.live.status()["owner_pid"]
    assert owner not in workers
    eventually(lambda: mapped(owner) == HEAVY, why="the model is opened in the background")
    for pid in workers | {parent_of(worker) for worker in workers}:
        assert not mapped(pid)


def test_a_killed_worker_takes_nothing_along(served: Served) -> None:
    workers, owner = served.workers(), served.owner()
    starters = [worker for worker in workers if pipes(worker) & pipes(owner)]
    victim = (starters or sorted(workers))[0]
    os.kill(victim, signal.SIGKILL)
    assert len(served.workers(gone=frozenset({victim})) - workers) == 1
    assert served.all_find(QUESTIONS)
    served.save_and_find()
    assert served.owner() == served.live.status()["owner_pid"]


def test_a_graceful_reload_keeps_the_index(served: Served) -> None:
    workers = served.workers()
    assert served.live.process is not None
    served.live.process.send_signal(signal.SIGHUP)
    assert not served.workers(gone=workers) & workers
    assert served.all_find(QUESTIONS)
    served.save_and_find()
    assert served.owner() == served.live.status()["owner_pid"]


def test_a_server_that_is_stopped_leaves_no_owner(served: Served) -> None:
    owner = served.owner()
    served.live.stop()
    wait_until_ended(owner)
    assert not owners_of(served.live.data_dir)
