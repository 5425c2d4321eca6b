"""Many pages are read by several processes: in order, as one would read them, and each page for itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from otterwiki_semantic.content import PageFile
from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.indexing.page_loader import CrashLog, PageLoader
from tests.support.live_wiki import eventually, make_repository
from tests.support.processes import is_running

pytestmark = pytest.mark.real_parts

PAGES = 60
BOMB = "".join(" " * (2 * (depth % 400)) + "- x\n" for depth in range(4_000))
PROFILE = Profile(window=254)

Loading = Callable[..., PageLoader]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Pages of very different lengths, some with front matter."""
    pages = {
        f"p{number:03}.md": f"---\ntags: [a{number % 7}]\nsearch: {'true' if number % 11 else 'words'}\n---\n# P{number}\n\n"
        + f"The TargetWords of unit{number} are in [[p{number // 2:03}]].\n\n## Part\n\n" * (1 + number * number % 7)
        for number in range(PAGES)
    }
    return Repository(make_repository(tmp_path_factory.mktemp("many") / "repository", pages))


@pytest.fixture
def loading(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loading]:
    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader._IDLE_SECONDS", 600.0)  # none ends because the machine is busy
    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader._MANY_PAGES", 20)
    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader._PAGES_AHEAD", 20)
    made: list[PageLoader] = []

    def load(**options: object) -> PageLoader:
        made.append(PageLoader(repository, BundledModel(), **options))  # type: ignore[arg-type]
        return made[-1]

    yield load
    for loader in made:
        loader.close()


def files_of(repository: Repository) -> list[PageFile]:
    return sorted(repository.pages("HEAD").values(), key=lambda file: (file.size, file.path))


def processes(loader: PageLoader) -> list[int]:
    """Return the ids of the processes that read, the lasting one first."""
    started = (worker._process for worker in (loader._worker, *loader._others))
    return [process.pid for process in started if process is not None and is_running(process.pid)]


def test_several_processes_read_what_one_reads_in_the_same_order(repository: Repository, loading: Loading) -> None:
    files, one, two = files_of(repository), loading(processes=1), loading(processes=2)
    pages = list(two.load(files, PROFILE))
    assert [page.path for page in pages] == [file.path for file in files]
    assert pages == list(one.load(files, PROFILE))
    assert all(page.words is not None and len(page.words.chunks) == len(page.chunks) for page in pages)
    assert (len(processes(one)), len(processes(two))) == (1, 1 + 2)


def test_an_edit_is_read_by_one_process_which_stays(repository: Repository, loading: Loading) -> None:
    loader, files = loading(processes=2), files_of(repository)
    list(loader.load(files[:3], PROFILE))
    (warm,) = processes(loader)
    list(loader.load(files[3:4], PROFILE))
    assert processes(loader) == [warm]


def test_one_process_stays_while_idle(repository: Repository, loading: Loading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader._IDLE_SECONDS", 0.05)
    loader = loading(processes=2)
    list(loader.load(files_of(repository), PROFILE))
    first = processes(loader)[0]
    eventually(lambda: processes(loader) == [first])
    assert len(list(loader.load(files_of(repository), PROFILE))) == PAGES


def test_a_page_that_takes_too_long_only_concerns_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader._MANY_PAGES", 20)
    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader.parse_seconds", lambda _: 0.5)
    monkeypatch.setattr("otterwiki_semantic.core.worker_process._CLOCK_FACTOR", 100)  # the machine may be busy
    pages = {f"p{number:03}.md": f"# Page {number}\n\nText.\n" for number in range(30)} | {"p015.md": BOMB + "\nThe quokka.\n"}
    repository = Repository(make_repository(tmp_path / "repository", pages))
    loader = PageLoader(repository, BundledModel(), processes=2)
    files = sorted(repository.pages("HEAD").values(), key=lambda file: file.path)
    found = {page.path: page for page in loader.load(files, PROFILE)}
    loader.close()
    assert [path for path, page in found.items() if page.problem] == ["p015"]
    assert "took longer than" in (found["p015"].problem or "")
    assert any("quokka" in chunk.text for chunk in found["p015"].chunks)


@pytest.mark.parametrize("number", [2, 25, 50])
def test_processes_that_are_killed_are_replaced(repository: Repository, loading: Loading, number: int) -> None:
    loader, files = loading(processes=2), files_of(repository)
    loaded = loader.load(files, PROFILE)
    pages = list(islice(loaded, number))
    for process in processes(loader):  # only once: a page that is killed twice is given up
        os.kill(process, signal.SIGKILL)
    pages += loaded
    assert [page.path for page in pages] == [file.path for file in files]
    assert [page.path for page in pages if page.problem] == []


def test_no_process_is_left_when_reading_is_given_up(repository: Repository, loading: Loading) -> None:
    loader = loading(processes=2)
    pages = loader.load(files_of(repository), PROFILE)
    list(islice(pages, 10))
    started = processes(loader)
    assert started
    pages.close()  # type: ignore[attr-defined]
    loader.close()
    assert not any(map(is_running, started))
    assert processes(loader) == []


def test_pages_near_one_that_ended_the_daemon_are_read_singly(repository: Repository, loading: Loading, tmp_path: Path) -> None:
    files = files_of(repository)
    with suppress(RuntimeError), CrashLog(tmp_path / "reading").reading(files[10]):
        raise RuntimeError("the process ends")
    loader = loading(processes=2, data_dir=tmp_path)
    counts = [len(processes(loader)) for _ in loader.load(files, PROFILE)]
    assert counts[:30] == [1] * 30
    assert counts[-1] == 1 + 2
