"""Files damaged, deleted and overwritten: it goes on, says so, and recovers.

Whatever reads damaged files may be killed by them, so that the index is opened by its own process, as in a wiki.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import IndexStatus, Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from tests.support.live_wiki import commit, eventually, is_settled, make_repository
from tests.support.model_servers import ModelServer, serving
from tests.support.processes import is_running

FEW, MANY = 40, 1_010
"""Pages. Of many ChromaDB writes its graph to files, as it does each thousand vectors."""
LIMIT = 120.0


def page(number: int) -> str:
    return f"# Page {number}\n\nunit{number}\n"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    """A model whose vectors cost next to nothing."""
    with serving(ModelServer()) as server:
        yield server


def settings(place: Path, model: ModelServer, interval: float) -> Settings:
    told: dict[str, Any] = {"model": "openai:words", "model_url": f"{model.url}/v1", "model_key": "key", "model_window": 256}
    return Settings(place / "repository", place / "index", sync_interval=interval, pages=(), **told)


@pytest.fixture(scope="module")
def built(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Gives a repository of so many pages with its index, to be copied."""

    @cache
    def build(pages: int) -> Path:
        place = tmp_path_factory.mktemp("built")
        make_repository(place / "repository", {f"p{number:04}.md": page(number) for number in range(pages)})
        index = IndexClient(settings(place, model, 3600))
        eventually(lambda: is_ready(index), LIMIT)
        pid = index.status().owner_pid
        index.close()
        eventually(lambda: not is_running(pid))
        return place

    return build


@pytest.fixture
def place(built: Callable[[int], Path], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy with few pages, or with as many as the test is marked with."""
    mark = request.node.get_closest_marker("pages")
    shutil.copytree(built(mark.args[0] if mark else FEW), tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


@pytest.fixture
def index(place: Path, model: ModelServer) -> Iterator[IndexClient]:
    made = IndexClient(settings(place, model, 1))
    yield made
    made.close()


def is_ready(index: IndexClient) -> IndexStatus | None:
    try:
        status = index.status()
    except SemanticError:
        return None
    is_equal = is_settled(status) and status.index.commit == status.index.head and not status.index.pending_pages
    return status if is_equal and status.vectors == status.pages else None


def finds(index: IndexClient, query: str, path: str, mode: Mode = Mode.HYBRID) -> bool:
    """Ask; fail on a wrong answer that does not say that it is not whole."""
    try:
        answer = index.search([query], SearchOptions(1, 1, mode))[0]
    except SemanticError:
        return False
    found = [hit.path for hit in answer.results]
    assert found == [path] or answer.index.commit != answer.index.head or answer.degraded, found
    return found == [path] and answer.degraded is None


def check_recovery(index: IndexClient, place: Path) -> IndexStatus:
    """Ask until the index is well again, and keeps up with HEAD."""
    eventually(lambda: finds(index, "unit33", "p0033") and is_ready(index), LIMIT)
    commit(place / "repository", {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    index.notify()
    eventually(lambda: finds(index, "hives behind a hedge", "bees", Mode.SEMANTIC), LIMIT)
    eventually(lambda: finds(index, "hives behind a hedge", "bees", Mode.KEYWORD), LIMIT)
    status = eventually(lambda: is_ready(index), LIMIT)
    assert status is not None
    pages = len(list((place / "repository").glob("*.md")))
    assert (status.pages, status.chunks, status.vectors) == (pages, pages, pages)
    assert status.problems == ()
    (generation,) = (place / "index" / "generations").iterdir()
    assert len(list(generation.glob("chroma-*"))) == 1
    return status


def damage(files: Sequence[Path], how: str) -> None:
    for path in files:
        size = path.stat().st_size
        match how:
            case "delete":
                path.unlink()
            case "empty":
                os.truncate(path, 0)
            case "half":
                os.truncate(path, size // 2)
            case "garbage":
                path.write_bytes(os.urandom(size))
            case "stretch":
                with path.open("r+b") as file:
                    file.seek(size // 3)
                    file.write(os.urandom(size // 3))


def catalog_files(place: Path) -> list[Path]:
    return list(place.glob("index/generations/*/catalog.sqlite3"))


def chroma_files(place: Path) -> list[Path]:
    return [path for path in place.glob("index/generations/*/chroma-*/**/*") if path.is_file()]


HOW = ("how", "running")


@pytest.mark.parametrize(HOW, [("delete", False), ("empty", False), ("stretch", False), ("half", True), ("garbage", True)])
def test_a_damaged_catalog_is_built_again(place: Path, index: IndexClient, how: str, running: bool) -> None:
    if running:
        eventually(lambda: is_ready(index), LIMIT)
    damage(catalog_files(place), how)
    check_recovery(index, place)


@pytest.mark.pages(MANY)
@pytest.mark.parametrize(HOW, [("stretch", False), ("half", True)])
def test_a_damaged_chroma_is_filled_again_without_the_model(place: Path, index: IndexClient, how: str, running: bool) -> None:
    if running:
        eventually(lambda: is_ready(index), LIMIT)
    damage(chroma_files(place), how)
    assert check_recovery(index, place).embedded_texts == 1


@pytest.mark.parametrize("what", ["catalog", "chroma", "generations", "current"])
def test_what_is_deleted_while_it_runs_comes_back(place: Path, index: IndexClient, what: str) -> None:
    eventually(lambda: is_ready(index), LIMIT)
    data_dir = place / "index"
    match what:
        case "catalog":
            for path in data_dir.glob("generations/*/catalog.sqlite3*"):
                path.unlink()
        case "chroma":
            shutil.rmtree(next(data_dir.glob("generations/*/chroma-*")))
        case "current":
            (data_dir / "current").unlink()
        case _:
            shutil.rmtree(data_dir / "generations")
    check_recovery(index, place)


@pytest.mark.pages(MANY)
def test_a_graph_that_crashes_chroma_does_not_end_the_owner(place: Path, index: IndexClient) -> None:
    graphs = list(place.glob("index/generations/*/chroma-*/*/data_level0.bin"))
    assert [path for path in graphs if path.stat().st_size > 100_000]
    for path in graphs:
        facts = path.stat()
        damage([path], "garbage")
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    owner = index.status().owner_pid
    status = check_recovery(index, place)
    assert (status.embedded_texts, status.owner_pid) == (1, owner)
