"""Whose index a data directory holds: a wiki never gets the answers of another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.records import Answer, Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.live_wiki import commit, eventually, git, make_repository

pytestmark = pytest.mark.real_parts

Open = Callable[[Settings], IndexEngine]
SECRET = "The quokka is the secret of this wiki."


@pytest.fixture
def mine(tmp_path: Path) -> Settings:
    repository = make_repository(tmp_path / "mine", {"secret.md": f"# Secret\n\n{SECRET}\n"})
    return Settings(repository, tmp_path / "index", sync_interval=3600, pages=())


def ask(index: IndexEngine) -> Answer:
    return index.search(["quokka"], SearchOptions(mode=Mode.KEYWORD))[0]  # any page is similar in meaning, once it is indexed


def is_whole(index: IndexEngine) -> bool:
    status = index.status()
    return status.status == "ready" and status.index.pending_pages == 0


def build(opened: Open, settings: Settings) -> None:
    index = opened(settings)
    eventually(lambda: is_whole(index))
    index.search(["quokka"], SearchOptions())
    index.close()


@pytest.mark.parametrize("replaced", ["another directory", "the same directory"])
def test_the_index_of_another_wiki_never_answers(mine: Settings, opened: Open, tmp_path: Path, replaced: str) -> None:
    build(opened, replace(mine, search_log=True))
    if replaced == "the same directory":
        mine.repository.rename(tmp_path / "away")
    theirs = make_repository(tmp_path / ("mine" if "same" in replaced else "theirs"), {"open.md": "# Open\n\nA page.\n"})
    index = IndexEngine(replace(mine, repository=theirs, search_log=True))
    left = [path for path in mine.data_dir.rglob("*") if path.is_file() and b"quokka" in path.read_bytes()]
    assert left == []
    index.start()
    assert ask(index).results == ()
    eventually(lambda: is_whole(index))
    assert [page.path for page in index.search(["page"], SearchOptions())[0].results] == ["open"]
    index.close()


@pytest.mark.parametrize("how", ["moved", "cloned", "rewritten"])
def test_the_same_wiki_keeps_its_index(mine: Settings, opened: Open, tmp_path: Path, how: str) -> None:
    build(opened, mine)
    there = tmp_path / "there"
    if how == "cloned":
        git(tmp_path, "clone", "-q", str(mine.repository), str(there))
    else:
        mine.repository.rename(there)
    if how == "rewritten":
        git(there, "commit", "-q", "--amend", "-m", "another message")
    index = opened(replace(mine, repository=there))
    assert [hit.path for hit in ask(index).results] == ["secret"]
    eventually(lambda: is_whole(index))
    assert index.status().embedded_texts == 0


def test_an_index_that_was_being_built_for_another_wiki_is_removed(mine: Settings, opened: Open, tmp_path: Path) -> None:
    index = opened(mine)
    eventually(lambda: index.status().pages)
    assert index._manager.serving is not None
    index._manager.serving.catalog.begin_change(git(mine.repository, "rev-parse", "HEAD"))
    index.close()
    (mine.data_dir / "repository.json").unlink()
    other = opened(replace(mine, repository=make_repository(tmp_path / "theirs", {"open.md": "# Open\n\nA page.\n"})))
    assert ask(other).results == ()


def test_without_git_nobody_can_say_whose_an_index_is(mine: Settings, opened: Open, tmp_path: Path) -> None:
    build(opened, mine)
    with pytest.raises(RepositoryError):
        IndexEngine(replace(mine, repository=tmp_path / "nothing"))
    mine.repository.rename(tmp_path / "away")
    assert [hit.path for hit in ask(opened(mine)).results] == ["secret"], "its own path is enough"
    (tmp_path / "away").rename(mine.repository)
    commit(mine.repository, {"more.md": "# More\n"})
