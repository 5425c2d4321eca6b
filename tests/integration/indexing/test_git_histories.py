"""What people do with git: whatever it was, the index equals HEAD, and nothing is embedded twice."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.indexing.sync import Indexer
from tests.support.large_wikis import index_and_move
from tests.support.live_wiki import commit, git, make_repository
from tests.support.sync_bench import Bench, section

PAGES: dict[str, str | bytes] = {
    "Home.md": "# Home\n\n" + section("the house"),
    "Rooms/Kitchen.md": "# Kitchen\n\n" + section("the stove"),
    "Rooms/Cellar.md": "# Cellar\n\n" + section("the boiler") + section("the wine"),
    "Garden.md": "# Garden\n\n" + section("the hedge"),
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, PAGES)
    made.sync()
    yield made
    made.generation.close()


def clone(bench: Bench, place: Path) -> Path:
    git(place, "clone", "-q", str(bench.repository), str(place / "clone"))
    return place / "clone"


def edit(repository: Path, name: str, text: str) -> None:
    commit(repository, {name: text}, f"edit {name}")


def push_several(repository: Path) -> None:
    edit(repository, "One.md", "# One\n\n" + section("one"))
    edit(repository, "Two.md", "# Two\n\n" + section("two"))
    commit(repository, {"One.md": None})
    git(repository, "push", "-q", "origin", "main")


def force_push(repository: Path) -> None:
    edit(repository, "Lost.md", "# Lost\n\n" + section("lost"))
    git(repository, "push", "-q", "origin", "main")
    git(repository, "reset", "-q", "--hard", "HEAD~1")
    edit(repository, "Instead.md", "# Instead\n\n" + section("instead"))
    git(repository, "push", "-qf", "origin", "main")


def diverge(repository: Path) -> None:
    git(repository, "checkout", "-qb", "topic")
    edit(repository, "Topic.md", "# Topic\n\n" + section("topic"))
    git(repository, "checkout", "-q", "main")
    edit(repository, "Garden.md", "# Garden\n\n" + section("roses"))


def rebase(repository: Path) -> None:
    diverge(repository)
    git(repository, "checkout", "-q", "topic")
    git(repository, "rebase", "-q", "main")
    git(repository, "push", "-q", "origin", "topic:main")


def merge(repository: Path) -> None:
    diverge(repository)
    git(repository, "merge", "-q", "--no-ff", "-m", "merged", "topic")
    git(repository, "push", "-q", "origin", "main")


def rename_a_directory(repository: Path) -> None:
    git(repository, "mv", "Rooms", "House rooms")
    git(repository, "commit", "-qm", "moved")
    git(repository, "push", "-q", "origin", "main")


def rename_case_only(repository: Path) -> None:
    git(repository, "mv", "Rooms/Kitchen.md", "Rooms/kitchen.md")
    git(repository, "mv", "Garden.md", "GARDEN.md")
    git(repository, "commit", "-qm", "case")
    git(repository, "push", "-q", "origin", "main")


def new_texts_of(bench: Bench, before: set[str]) -> int:
    return len({text for texts in bench.afresh().values() for text in texts} - before)


@pytest.mark.parametrize("do", [push_several, force_push, rebase, merge, rename_a_directory, rename_case_only])
def test_whatever_was_pushed_the_index_equals_head(bench: Bench, tmp_path: Path, do: Callable[[Path], None]) -> None:
    before = {text for texts in bench.snippets().values() for text in texts}
    do(clone(bench, tmp_path))
    embedded = bench.sync()
    assert len(embedded) == len(set(embedded)) == new_texts_of(bench, before)
    assert bench.snippets() == bench.afresh()


def test_a_branch_that_is_reset_takes_the_index_back(bench: Bench) -> None:
    before = bench.snippets()
    edit(bench.repository, "Garden.md", "# Garden\n\n" + section("roses"))
    bench.sync()
    git(bench.repository, "reset", "-q", "--hard", "HEAD~1")
    bench.sync()
    assert bench.snippets() == before


def test_another_branch_is_another_wiki(bench: Bench) -> None:
    before = bench.snippets()
    git(bench.repository, "checkout", "-q", "--orphan", "other")
    git(bench.repository, "rm", "-rfq", ".")
    edit(bench.repository, "Only.md", "# Only\n\n" + section("only"))
    bench.sync()
    assert list(bench.snippets()) == ["Only"]
    git(bench.repository, "checkout", "-q", "main")
    bench.sync()
    assert bench.snippets() == before


def test_submodules_and_symbolic_links_are_no_pages(bench: Bench, tmp_path: Path) -> None:
    make_repository(tmp_path / "sub", {"Inside.md": "# Inside\n\n" + section("inside")})
    git(bench.repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "sub"), "Sub")
    (bench.repository / "Link.md").symlink_to("Home.md")
    (bench.repository / "Loop").symlink_to(".")
    (bench.repository / "Outside.md").symlink_to("/etc/passwd")
    commit(bench.repository, {"Real.md": "# Real\n\n" + section("real")})
    bench.sync()
    assert sorted(bench.snippets()) == ["Garden", "Home", "Real", "Rooms/Cellar", "Rooms/Kitchen"]


def test_a_page_that_becomes_a_link_or_a_directory_goes(bench: Bench) -> None:
    (bench.repository / "Garden.md").unlink()
    (bench.repository / "Garden.md").symlink_to("Home.md")
    (bench.repository / "Home.md").unlink()
    commit(bench.repository, {"Home.md/Page.md": "# Page\n\n" + section("page")})
    bench.sync()
    assert sorted(bench.snippets()) == ["Home.md/Page", "Rooms/Cellar", "Rooms/Kitchen"]


def test_names_that_are_not_utf_8_are_pages_like_any_other(bench: Bench) -> None:
    at = bench.repository
    for name in (b"caf\xe9.md", b"caf\xe8.md", "Größe 🦦.md".encode(), b"with\nnewline.md", b'"quoted".md'):
        (at / os.fsdecode(name)).write_text("# Odd\n\n" + section(repr(name)))
    commit(bench.repository, {})
    bench.sync()
    odd = {"caf\\xe9", "caf\\xe8", "Größe 🦦", "with\nnewline", '"quoted"'}
    assert odd <= bench.snippets().keys()
    (at / os.fsdecode(b"caf\xe9.md")).rename(at / os.fsdecode(b"caf\xea.md"))
    commit(bench.repository, {})
    assert bench.sync() == []
    assert "caf\\xea" in bench.snippets()
    assert "caf\\xe9" not in bench.snippets()


def test_tidying_up_changes_nothing(bench: Bench) -> None:
    git(bench.repository, "gc", "-q", "--prune=now")
    assert bench.sync() == []
    edit(bench.repository, "Garden.md", "# Garden\n\n" + section("roses"))
    assert len(bench.sync()) == 1
    assert bench.snippets() == bench.afresh()


def test_a_repository_that_is_cloned_anew_is_the_same_wiki(bench: Bench, tmp_path: Path) -> None:
    copy = clone(bench, tmp_path)
    shutil.rmtree(bench.repository)
    copy.rename(bench.repository)
    assert bench.sync() == []
    edit(bench.repository, "Garden.md", "# Garden\n\n" + section("roses"))
    bench.sync()
    assert bench.snippets() == bench.afresh()


def test_many_pages_are_indexed_and_moved(tmp_path: Path) -> None:
    index_and_move(tmp_path, 200)


def shallow(origin: Path, place: Path) -> None:
    git(place.parent, "clone", "-q", "--depth", "1", origin.as_uri(), place.name)


def bare(origin: Path, place: Path) -> None:
    git(place.parent, "clone", "-q", "--bare", str(origin), place.name)


def detached(origin: Path, place: Path) -> None:
    git(place.parent, "clone", "-q", str(origin), place.name)
    git(place, "checkout", "-q", "--detach", "HEAD")
    git(place, "branch", "-q", "-D", "main")


@pytest.mark.parametrize("make", [shallow, bare, detached])
def test_a_clone_with_less_history_is_the_same_wiki(bench: Bench, tmp_path: Path, make: Callable[[Path, Path], None]) -> None:
    edit(bench.repository, "Garden.md", "# Garden\n\n" + section("roses"))
    bench.sync()
    make(bench.repository, tmp_path / "clone")
    repository = Repository(tmp_path / "clone")
    bench.indexer = Indexer(repository, bench.recipe, lambda: bench.stop)
    assert bench.sync() == []
    assert bench.snippets() == bench.afresh()
    assert repository.last_changes(repository.head() or "").keys() == bench.snippets().keys()
