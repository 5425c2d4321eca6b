"""Files damaged, deleted and overwritten, a full disk, a set clock, pages that break things: it goes on, says so, and recovers.

Whatever reads damaged files may be killed by them, so that the index is opened by its own process, as in a wiki.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import cache
from pathlib import Path

import pytest

from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import Document, IndexStatus, Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.indexing.scheduler import Scheduler
from tests.support.live_wiki import commit, eventually, make_repository
from tests.support.paths import ROOT
from tests.support.processes import is_running

FEW, MANY = 40, 1_100
"""Pages. Of many ChromaDB writes its graph to files, as it does each thousand vectors; few are embedded sooner."""
LIMIT = 120.0


def page(number: int) -> str:
    return f"# Page {number}\n\nunit{number}\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Gives a repository of so many pages with its index, to be copied."""

    @cache
    def build(pages: int) -> Path:
        place = tmp_path_factory.mktemp("built")
        make_repository(place / "repository", {f"p{number:04}.md": page(number) for number in range(pages)})
        index = IndexClient(Settings(place / "repository", place / "index", sync_interval=3600, map=False))
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
    shutil.copytree(built(mark.args[0] if mark else FEW), tmp_path / "copy", copy_function=shutil.copy2)
    return tmp_path / "copy"


@pytest.fixture
def index(place: Path) -> Iterator[IndexClient]:
    made = IndexClient(Settings(place / "repository", place / "index", sync_interval=1, map=False))
    yield made
    made.close()


def is_ready(index: IndexClient) -> IndexStatus | None:
    try:
        status = index.status()
    except SemanticError:
        return None
    is_equal = status.status == "ready" and status.index.commit == status.index.head and not status.index.pending_pages
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


WAYS = ("delete", "empty", "half", "garbage", "stretch")


def catalog_files(place: Path) -> list[Path]:
    return list(place.glob("index/generations/*/catalog.sqlite3"))


def chroma_files(place: Path) -> list[Path]:
    return [path for path in place.glob("index/generations/*/chroma-*/**/*") if path.is_file()]


@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
@pytest.mark.parametrize("how", WAYS)
def test_a_damaged_catalog_is_built_again(place: Path, index: IndexClient, how: str, running: bool) -> None:
    if running:
        eventually(lambda: is_ready(index), LIMIT)
    damage(catalog_files(place), how)
    check_recovery(index, place)


@pytest.mark.pages(MANY)
@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
@pytest.mark.parametrize("how", WAYS)
def test_a_damaged_chroma_is_filled_again_without_the_model(place: Path, index: IndexClient, how: str, running: bool) -> None:
    if running:
        eventually(lambda: is_ready(index), LIMIT)
    damage(chroma_files(place), how)
    assert check_recovery(index, place).embedded_texts == 1


@pytest.mark.parametrize("what", ["catalog", "chroma", "generations", "current", "everything"])
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
        case "generations":
            shutil.rmtree(data_dir / "generations")
        case _:
            shutil.rmtree(data_dir)
    check_recovery(index, place)


@pytest.mark.pages(MANY)
def test_an_owner_that_dies_while_it_has_chroma_open_is_not_killed_for_ever(place: Path, index: IndexClient) -> None:
    graphs = list(place.glob("index/generations/*/chroma-*/*/data_level0.bin"))
    assert [path for path in graphs if path.stat().st_size > 1_000_000]
    for path in graphs:
        facts = path.stat()
        damage([path], "garbage")
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert check_recovery(index, place).embedded_texts <= 1


# The disk

FULL_DISK = """
import os, sys, time
from pathlib import Path
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.daemon import IndexClient
sys.path.insert(0, os.getcwd())
from tests.support.live_wiki import commit, eventually
repository, disk = map(Path, sys.argv[1:])
index = IndexClient(Settings(repository, disk / "index", sync_interval=1, map=False))
eventually(lambda: index.status().status == "ready")
filler = (disk / "filler").open("wb", buffering=0)
for size in (1 << 20, 1 << 12, 1):
    try:
        while True:
            filler.write(b"x" * size)
    except OSError:
        pass
big = {f"q{i}.md": f"# Unit {i}\\n\\n" + f"The unit of the number {i} is long. " * 400 for i in range(20)}
head = commit(repository, big)
index.notify()
eventually(lambda: index.status().status == "error", 60)
status = index.status()
print(status.problems)
assert "make room on the disk" in status.problems[0].hint, status.problems
assert index.search(["vegetables"], SearchOptions(1, 1))[0].results[0].path == "garden"
filler.close()
(disk / "filler").unlink()
eventually(lambda: index.status().index.commit == head and index.status().status == "ready", 90)
assert index.status().problems == ()
assert index.search(["unit 13"], SearchOptions(1, 1))[0].results[0].path == "q13"
index.close()
"""

READ_ONLY = """
import subprocess, sys
from pathlib import Path
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.errors import DaemonUnavailableError
from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.daemon import IndexClient
from tests.support.live_wiki import eventually
repository, disk = map(Path, sys.argv[1:])
subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
index = IndexClient(Settings(repository, disk / "index", map=False))
index.notify()
try:
    index.status()
except DaemonUnavailableError as error:
    assert "set SEMANTIC_DATA_DIR" in str(error), error
else:
    raise AssertionError("it works on a disk that cannot be written to")
subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
eventually(lambda: index.status().status == "ready")
assert index.search(["vegetables"], SearchOptions(1, 1))[0].results[0].path == "garden"
index.close()
"""


def on_a_disk_of_its_own(script: str, place: Path, repository: Path, size: str = "24m") -> None:
    """Run a script with a small disk, which a user namespace lets anybody mount."""
    disk = place / "disk"
    disk.mkdir()
    inner = f'mount -t tmpfs -o size={size} tmpfs "$1" && exec "$2" -c "$3" "$4" "$1"'
    command = ["unshare", "-rm", "sh", "-c", inner, "sh", str(disk), sys.executable, script, str(repository)]
    try:
        probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(disk)], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if probe.returncode:
        pytest.skip(f"no user namespaces here: {probe.stderr.decode().strip()}")
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_a_full_disk_stops_nothing_but_new_pages(tmp_path: Path, handbook: dict[str, str | bytes]) -> None:
    on_a_disk_of_its_own(FULL_DISK, tmp_path, make_repository(tmp_path / "repository", handbook))


def test_a_disk_that_cannot_be_written_to_is_named(tmp_path: Path, handbook: dict[str, str | bytes]) -> None:
    on_a_disk_of_its_own(READ_ONLY, tmp_path, make_repository(tmp_path / "repository", handbook))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_data_directory_of_another_user_is_named(tmp_path: Path, handbook: dict[str, str | bytes]) -> None:
    data_dir = tmp_path / "index"
    data_dir.mkdir()
    os.chown(data_dir, 65534, 65534)
    index = IndexClient(Settings(make_repository(tmp_path / "repository", handbook), data_dir, map=False))
    index.notify()
    with pytest.raises(SemanticError, match="belongs to another user; run this as the user that the wiki runs as"):
        index.status()
    os.chown(data_dir, os.geteuid(), os.getegid())
    eventually(lambda: index.status().status == "ready")
    index.close()


# The clock


@pytest.mark.parametrize("days", [-400, 400])
def test_a_clock_that_is_set_stops_no_sync(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    """The clock of APScheduler and of ours is exchanged: no test may set the machine's."""
    shift = timedelta(0)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + shift

    real = time.time
    monkeypatch.setattr("otterwiki_semantic.indexing.scheduler._CLOCK_SECONDS", 0.1)
    for module in ("otterwiki_semantic.indexing.scheduler", "apscheduler.schedulers.base", "apscheduler.triggers.interval"):
        monkeypatch.setattr(f"{module}.datetime", Clock)
    monkeypatch.setattr("otterwiki_semantic.indexing.scheduler.time.time", lambda: real() + shift.total_seconds())
    runs: list[float] = []
    jobs = Scheduler(lambda: runs.append(time.monotonic()), 1.0)
    jobs.start()
    eventually(lambda: len(runs) >= 2)
    shift = timedelta(days=days)
    before = len(runs)
    eventually(lambda: len(runs) >= before + 2, 10, "it syncs after the clock was set")
    jobs.stop(5)


# Pages that break things


def opened(settings: Settings) -> IndexEngine:
    index = IndexEngine(settings)
    index.start()
    eventually(lambda: index.status().index.commit is not None and index.status().status != "indexing")
    return index


def best(index: IndexEngine, query: str, mode: Mode = Mode.HYBRID) -> str | None:
    hits = index.search([query], SearchOptions(1, 1, mode))[0].results
    return hits[0].path if hits else None


POISON = {"poison.md": "# Poison\n\nThe quokka makes it choke.\n", "after.md": "# After\n\nThe wombat comes after it.\n"}


def test_a_page_that_breaks_the_parser_is_plain_text(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def choke(text: str) -> Document:
        if "quokka" in text:
            raise RecursionError("too deep")
        return parse_markdown(text)

    monkeypatch.setattr("otterwiki_semantic.indexing.sync.parse_markdown", choke)
    commit(settings.repository, POISON)
    index = opened(settings)
    assert best(index, "quokka") == "poison"
    assert best(index, "wombat") == "after"
    assert index.status().problems == ()
    index.close()


def failing(method: Callable[..., Matrix], is_bad: Callable[[str], bool]) -> Callable[..., Matrix]:
    def embed(self: BundledModel, texts: Sequence[str]) -> Matrix:
        if any(map(is_bad, texts)):
            raise RuntimeError("a node of the graph failed")
        return method(self, texts)

    return embed


def test_a_page_that_breaks_the_model_is_found_by_its_words(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BundledModel, "embed", failing(BundledModel.embed, lambda text: "quokka" in text))
    commit(settings.repository, POISON)
    index = opened(settings)
    assert best(index, "quokka") == "poison"
    assert best(index, "wombat", Mode.SEMANTIC) == "after"
    assert best(index, "choking on a small marsupial", Mode.SEMANTIC) != "poison"
    status = index.status()
    assert status.index.pending_pages == 1
    (problem,) = status.problems
    assert "poison: a node of the graph failed" in problem.message
    assert index.related("after", 5).results
    monkeypatch.undo()
    commit(settings.repository, {"more.md": "# More\n\nAnd more.\n"})
    index.notify()
    eventually(lambda: index.status().index.pending_pages == 0 and index.status().pages == 8)
    assert best(index, "choking on a small marsupial", Mode.SEMANTIC) == "poison"
    assert index.status().problems == ()
    index.close()


def test_a_model_that_fails_on_everything_leaves_the_words(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def note(text: str) -> bool:
        asked.append(text)
        return True

    monkeypatch.setattr(BundledModel, "embed", failing(BundledModel.embed, note))
    monkeypatch.setattr(BundledModel, "embed_queries", failing(BundledModel.embed_queries, lambda _: True))
    monkeypatch.setattr("otterwiki_semantic.indexing.manager._RETRY_UNFINISHED_SECONDS", 0.0)
    index = opened(settings)
    assert len(asked) < 12, "it is not asked again and again"
    answer = index.search(["radiator"], SearchOptions(1, 1))[0]
    assert answer.results[0].path == "house/heating"
    assert "the embedding model failed" in (answer.degraded or "")
    status = index.status()
    assert status.index.pending_pages == 5
    assert len(status.problems) == 2
    monkeypatch.undo()
    index._manager._unfinished_backoff.reset()
    index.notify()
    eventually(lambda: index.status().index.pending_pages == 0)
    assert best(index, "insects that make honey", Mode.SEMANTIC)
    assert index.status().problems == ()
    index.close()
