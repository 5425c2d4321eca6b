"""Whatever is wrong with the index, the wiki's pages are shown and saved; and once it is right, all is found."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.support.live_wiki import LiveWiki, eventually, make_repository
from tests.support.processes import frozen

pytestmark = pytest.mark.real_parts


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, handbook: dict[str, str | bytes]) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("live")
    repository = make_repository(place / "repository", handbook)
    with LiveWiki(repository, place / "index", SEMANTIC_SYNC_INTERVAL="1") as wiki:
        wiki.wait_until_indexed()
        yield wiki


def owner_pid(live: LiveWiki) -> int:
    pid = live.status()["owner_pid"]
    assert isinstance(pid, int)
    return pid


@contextmanager
def a_frozen_owner(live: LiveWiki) -> Iterator[None]:
    with frozen(owner_pid(live)):
        yield


@contextmanager
def a_killed_owner(live: LiveWiki) -> Iterator[None]:
    os.kill(owner_pid(live), signal.SIGKILL)
    yield


@contextmanager
def a_file_in_the_way(live: LiveWiki) -> Iterator[None]:
    shutil.rmtree(live.data_dir)
    live.data_dir.write_text("in the way")
    eventually(lambda: live.api("GET", "/semantic-search", q="x").status == 503)
    answer = live.api("GET", "/semantic-search/status")
    assert answer.status == 503
    assert answer.json["status"] == "unavailable"
    assert "SEMANTIC_DATA_DIR" in answer.json["problems"][0]["message"]
    yield
    live.data_dir.unlink()


@contextmanager
def a_garbled_index(live: LiveWiki) -> Iterator[None]:
    for path in live.data_dir.rglob("*"):
        if path.is_file() and path.name not in {"owner.lock", "owner.log"}:
            path.write_bytes(os.urandom(5_000))
    yield


@contextmanager
def a_deleted_index(live: LiveWiki) -> Iterator[None]:
    shutil.rmtree(live.data_dir)
    yield


@contextmanager
def a_broken_repository(live: LiveWiki) -> Iterator[None]:
    """HEAD cannot be read by the index; the wiki itself is not asked meanwhile."""
    head = live.repository / ".git" / "HEAD"
    content = head.read_text()
    head.write_text("garbage\n")
    eventually(lambda: live.status()["status"] == "error")
    assert "REPOSITORY" in live.status()["problems"][0]["hint"]
    assert live.search("vegetables", n=1)[0]["path"] == "garden"
    head.write_text(content)
    yield


TROUBLES = (a_frozen_owner, a_killed_owner, a_file_in_the_way, a_garbled_index, a_deleted_index, a_broken_repository)


@pytest.mark.parametrize("trouble", TROUBLES, ids=[trouble.__name__ for trouble in TROUBLES])
def test_pages_are_shown_and_saved_and_found_afterwards(
    live: LiveWiki, trouble: Callable[[LiveWiki], AbstractContextManager[None]]
) -> None:
    name = trouble.__name__.replace("_", "")
    with trouble(live):
        live.save(name, f"# {name}\n\nA page about the trouble with {name}.\n")
        assert "A page about the trouble" in live.get(f"/{name.capitalize()}").text + live.get(f"/{name}").text
        assert live.get("/-/changelog").status == 200
    assert eventually(lambda: whole(live))
    eventually(lambda: live.search(name, n=1)[0]["path"].lower() == name)
    assert live.api("GET", "/semantic-search", q="vegetables", n=1).json["results"][0]["path"] == "garden"


def whole(live: LiveWiki) -> bool:
    answer = live.api("GET", "/semantic-search/status")
    if answer.status != 200:
        return False
    status = answer.json
    pages = len(list(Path(live.repository).rglob("*.md")))
    is_equal = status["indexed_commit"] == status["head_commit"] and status["pages"] == pages
    return is_equal and status["status"] == "ready" and not status["problems"]
