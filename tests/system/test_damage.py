"""Files of the index damaged, deleted and overwritten, while it runs and before it starts: it goes on, says so, and recovers.

Nothing else has ChromaDB itself read damaged files, which may crash it. The index is opened in this process: what ends an index
ends the tests.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import IndexStatus, Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.interface import IndexService
from tests.support.light_parts import GRAPH_AFTER
from tests.support.live_wiki import commit, eventually, is_settled, make_repository
from tests.support.model_servers import ModelServer, serving

pytestmark = pytest.mark.real_parts

PAGES = 40
LIMIT = 120.0
NOWHERE = b"\xff\xff\x00\x7f"
"""Repeated, a graph of ChromaDB each of whose vectors has thousands of neighbours far outside its memory."""
CATALOG, CHROMA = "catalog.sqlite3", "chroma-*/**/*"
_NUMBERS = count(PAGES)


class Started(NamedTuple):
    engine: IndexEngine
    repository: Path
    data_dir: Path


@contextmanager
def started(settings: Settings) -> Iterator[Started]:
    index = IndexEngine(settings)
    index.start()
    yield Started(index, settings.repository, settings.data_dir)
    index.close()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A repository and its index, stopped, to be copied. ChromaDB has written its graph to files."""
    place = tmp_path_factory.mktemp("built")
    pages: dict[str, str | bytes] = {f"p{number:04}.md": f"# Page {number}\n\nunit{number}\n" for number in range(PAGES)}
    with serving(ModelServer()) as model, pytest.MonkeyPatch.context() as patch:
        settings = Settings(
            make_repository(place / "repository", pages),
            place / "index",
            sync_interval=1,
            pages=(),
            model="openai:words",
            model_url=f"{model.url}/v1",
            model_key="key",
            model_window=256,
        )
        patch.setenv(GRAPH_AFTER, "8")
        with started(settings) as made:
            eventually(lambda: is_ready(made.engine), LIMIT)
        patch.undo()
        yield settings


def copied(built: Settings, place: Path) -> Settings:
    shutil.copytree(built.data_dir.parent, place, symlinks=True)
    return replace(built, repository=place / "repository", data_dir=place / "index")


@pytest.fixture
def stopped(built: Settings, tmp_path: Path) -> Settings:
    """An index that has not been started yet."""
    return copied(built, tmp_path / "copy")


@pytest.fixture(scope="module")
def running(built: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """An index that each test damages and leaves whole."""
    with started(copied(built, tmp_path_factory.mktemp("running") / "copy")) as made:
        yield made


def is_ready(index: IndexService) -> IndexStatus | None:
    try:
        status = index.status()
    except SemanticError:
        return None
    is_equal = is_settled(status) and status.index.commit == status.index.head and not status.index.pending_pages
    return status if is_equal and status.vectors == status.pages else None


def finds(index: IndexService, query: str, path: str, mode: Mode = Mode.HYBRID) -> bool:
    """Ask; fail on a wrong answer that does not say that it is not whole."""
    try:
        answer = index.search([query], SearchOptions(1, 1, mode))[0]
    except SemanticError:
        return False
    found = [hit.path for hit in answer.results]
    assert found == [path] or answer.index.commit != answer.index.head or answer.degraded, found
    return found == [path] and answer.degraded is None


def check_recovery(made: Started) -> int:
    """Ask until the index is well again, and keeps up with HEAD; return how many texts it has embedded."""
    index, repository, data_dir = made
    eventually(lambda: finds(index, "unit33", "p0033") and is_ready(index), LIMIT)
    new = f"hive{next(_NUMBERS)}"
    commit(repository, {f"{new}.md": f"# New\n\nThe {new} stands behind a hedge.\n"})
    index.notify()
    for mode in (Mode.SEMANTIC, Mode.KEYWORD):
        eventually(lambda mode=mode: finds(index, f"{new} behind a hedge", new, mode), LIMIT)  # type: ignore[misc]
    status = eventually(lambda: is_ready(index), LIMIT)
    pages = len(list(repository.glob("*.md")))
    assert (status.pages, status.chunks, status.vectors) == (pages, pages, pages)
    assert status.problems == ()
    (generation,) = (data_dir / "generations").iterdir()
    assert (data_dir / "current").read_text().strip() == generation.name
    assert (generation / "catalog.sqlite3").exists()
    assert len(list(generation.glob("chroma-*"))) == 1
    return status.embedded_texts


def stretch(path: Path) -> None:
    """Overwrite the middle third of a file."""
    third = path.stat().st_size // 3
    with path.open("r+b") as file:
        file.seek(third)
        file.write(os.urandom(third))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "delete": Path.unlink,
    "empty": lambda path: os.truncate(path, 0),
    "half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "garbage": lambda path: path.write_bytes(os.urandom(path.stat().st_size)),
    "stretch": stretch,
}


def damage(how: str, data_dir: Path, pattern: str) -> None:
    """Damage the files of the serving index that match a pattern."""
    files = [path for path in data_dir.glob(f"generations/*/{pattern}") if path.is_file()]
    assert files
    for path in files:
        DAMAGE[how](path)


@pytest.mark.parametrize("how", ["half", "garbage"])
def test_a_catalog_that_is_damaged_while_it_runs_is_built_again(running: Started, how: str) -> None:
    eventually(lambda: is_ready(running.engine), LIMIT)
    damage(how, running.data_dir, CATALOG)
    check_recovery(running)


def test_a_chroma_that_is_damaged_while_it_runs_is_filled_again_without_the_model(running: Started) -> None:
    before = eventually(lambda: is_ready(running.engine), LIMIT).embedded_texts
    damage("half", running.data_dir, CHROMA)
    assert check_recovery(running) == before + 1


@pytest.mark.parametrize("what", ["generations/*/catalog.sqlite3*", "generations/*/chroma-*", "generations", "current"])
def test_what_is_deleted_while_it_runs_comes_back(running: Started, what: str) -> None:
    eventually(lambda: is_ready(running.engine), LIMIT)
    for path in list(running.data_dir.glob(what)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    check_recovery(running)


@pytest.mark.parametrize("how", ["delete", "empty", "stretch"])
def test_a_damaged_catalog_is_built_again(stopped: Settings, how: str) -> None:
    damage(how, stopped.data_dir, CATALOG)
    with started(stopped) as made:
        check_recovery(made)


def test_a_damaged_chroma_is_filled_again_without_the_model(stopped: Settings) -> None:
    damage("stretch", stopped.data_dir, CHROMA)
    with started(stopped) as made:
        assert check_recovery(made) == 1


def test_a_graph_that_crashes_chroma_does_not_end_the_index(stopped: Settings, caplog: pytest.LogCaptureFixture) -> None:
    (graph,) = stopped.data_dir.glob("generations/*/chroma-*/*/data_level0.bin")
    facts = graph.stat()
    graph.write_bytes(NOWHERE * (facts.st_size // len(NOWHERE)))
    os.utime(graph, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with started(stopped) as made:
        assert check_recovery(made) == 1
    assert f"ended the process that does it, with status {-signal.SIGSEGV}" in caplog.text
