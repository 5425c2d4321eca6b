"""What a person or git does to the wiki through its own forms and routes, and what is found then, with all parts real."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_wiki import LiveWiki, commit, eventually, git, head_of, make_repository
from tests.support.processes import is_running

pytestmark = pytest.mark.real_parts


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, handbook: dict[str, str | bytes]) -> Iterator[LiveWiki]:
    """A wiki whose names keep their case; they do not in most other tests."""
    place = tmp_path_factory.mktemp("wiki")
    repository = make_repository(place / "repository", handbook)
    with LiveWiki(repository, place / "index", RETAIN_PAGE_NAME_CASE="True", GIT_WEB_SERVER="True") as wiki:
        wiki.wait_until_indexed()
        yield wiki


def found(live: LiveWiki, query: str) -> list[str]:
    return [hit["path"] for hit in live.search(query, n=3)]


def first(live: LiveWiki, query: str) -> str:
    return (found(live, query) or [""])[0]


def test_a_created_page_is_found(live: LiveWiki) -> None:
    live.save("Pets/Dog", "# Dog\n\nThe puppy barks at the postman and sleeps in a basket.\n")
    eventually(lambda: first(live, "the puppy barks at the postman") == "Pets/Dog")
    hit = live.search("the puppy barks at the postman", n=1)[0]
    assert 'id="dog"' in live.get(hit["url"].partition("#")[0]).text


def test_a_renamed_page_takes_its_subpages_along(live: LiveWiki) -> None:
    live.save("Cars", "# Cars\n\nThe old estate car has a dent in its left door.\n")
    live.save("Cars/Tyres", "# Tyres\n\nThe winter tyres with studs are stored in the shed.\n")
    live.wait_until_indexed()
    embedded = live.status()["embedded_texts"]
    live.post_form("/Cars/rename", "/Cars/rename", new_pagename="Vehicles", message="")
    live.wait_until_indexed()
    assert first(live, "estate car with a dent in the door") == "Vehicles"
    tyres = first(live, "winter tyres with studs")
    assert tyres in {"Vehicles/Tyres", "Cars/Tyres"}
    assert (live.repository / f"{tyres}.md").is_file()
    assert live.status()["embedded_texts"] == embedded


def test_a_deleted_page_is_gone_with_its_subpages(live: LiveWiki) -> None:
    live.save("Trips", "# Trips\n\nWe sailed around the lighthouse in a small boat.\n")
    live.save("Trips/Island", "# Island\n\nThe seals lie on the sandbank of the island.\n")
    live.wait_until_indexed()
    assert first(live, "sailing around the lighthouse") == "Trips"
    live.post_form("/Trips/delete", "/Trips/delete", message="", recursive="recursive")
    live.wait_until_indexed()
    assert "Trips" not in found(live, "sailing around the lighthouse")
    assert "Trips/Island" not in found(live, "seals on the sandbank")


def test_an_edited_page_is_found_by_what_it_says_now_and_a_reverted_change_is_undone(live: LiveWiki) -> None:
    live.save("Choir", "# Choir\n\nRehearsals are on Tuesday evenings in the chapel.\n")
    live.save("Choir", "# Choir\n\nThe tenors are looking for a new conductor from abroad.\n")
    eventually(lambda: "tenors" in live.search("new conductor for the tenors", n=1)[0]["snippet"])
    assert all("Rehearsals" not in hit["snippet"] for hit in live.search("choir rehearsals in the chapel", n=5))
    revision = head_of(live.repository)
    live.post_form(f"/-/revert/{revision}", f"/-/revert/{revision}", message="no")
    eventually(lambda: "Rehearsals" in live.search("choir rehearsals in the chapel", n=1)[0]["snippet"])


def test_several_pushed_commits_are_all_indexed(live: LiveWiki, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", f"{live.url}/.git", str(clone))
    commit(clone, {"pushed/first.md": "# First\n\nA telescope for looking at the rings of Saturn.\n"})
    commit(clone, {"pushed/second.md": "# Second\n\nKnitting patterns for woollen socks.\n"})
    commit(clone, {"pushed/third.md": "# Third\n\nThe chess club meets in the library.\n", "garden.md": None})
    commit(clone, {"garden.md": "# Garden\n\n## Tomatoes\n\nPlant them late, and water them in the morning.\n"})
    git(clone, "push", "-q", "origin", "main")
    live.wait_until_indexed()
    assert first(live, "telescope for the rings of Saturn") == "pushed/first"
    assert first(live, "knitting woollen socks") == "pushed/second"
    assert first(live, "chess club in the library") == "pushed/third"
    assert "water them in the morning" in live.search("watering tomatoes in the morning", n=1)[0]["snippet"]


def test_a_forced_push_replaces_the_history(live: LiveWiki, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", f"{live.url}/.git", str(clone))
    before = live.status()["pages"]
    commit(clone, {"pushed/mistake.md": "# Mistake\n\nThe password of the observatory is written here.\n"})
    git(clone, "push", "-q", "origin", "main")
    eventually(lambda: first(live, "password of the observatory") == "pushed/mistake")
    git(clone, "reset", "-q", "--hard", "HEAD~2")
    head = commit(clone, {"pushed/instead.md": "# Instead\n\nA lighthouse keeper trims the lamp.\n"})
    git(clone, "push", "-q", "--force", "origin", "main")
    live.wait_until_indexed()
    assert live.status()["indexed_commit"] == head
    assert live.status()["pages"] == len(git(clone, "ls-files", "*.md").splitlines()) != before + 1
    assert "pushed/mistake" not in found(live, "password of the observatory")
    assert first(live, "the lighthouse keeper trims the lamp") == "pushed/instead"


def test_a_repository_without_one_page_waits_for_the_first(tmp_path: Path) -> None:
    with LiveWiki(make_repository(tmp_path / "repository", {"notes.txt": "no page"}), tmp_path / "index") as wiki:
        eventually(lambda: wiki.status()["status"] == "ready")
        status = wiki.status()
        assert (status["pages"], status["chunks"], status["problems"]) == (0, 0, [])
        assert wiki.search("anything") == []
        assert wiki.api("GET", "/semantic-search/pages").json["pages"] == []
        assert wiki.api("GET", "/related?path=home").status == 404
        wiki.save("first", "# First\n\nAn otter builds a holt by the river.\n")
        eventually(lambda: [hit["path"] for hit in wiki.search("the holt of an otter")] == ["first"])


def test_a_commit_that_nobody_told_of_is_found_after_a_restart(live: LiveWiki) -> None:
    pid = live.status()["owner_pid"]
    live.stop()
    eventually(lambda: not is_running(pid) or live.data_dir.joinpath("owner.sock").exists() is False)
    commit(live.repository, {"silent.md": "# Silent\n\nThe submarine lies at the bottom of the harbour.\n"})
    live.restart()
    live.wait_until_indexed()
    assert first(live, "submarine in the harbour") == "silent"
    assert live.status()["embedded_texts"] == 1


def test_a_kill_during_an_edit_loses_nothing(live: LiveWiki) -> None:
    pid = live.status()["owner_pid"]
    live.save("Killed", "# Killed\n\nThe violin was repaired after it fell from the stage.\n")
    os.kill(pid, signal.SIGKILL)
    live.wait_until_indexed()
    assert first(live, "violin repaired after a fall") == "Killed"
