"""An agent on a folder that changes while the server runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attachments import pdf
from tests.support.live_wiki import eventually
from tests.support.mcp_clients import Agent, Server


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folder") / "notes"
    (place / "daily").mkdir(parents=True)
    (place / "daily" / "monday.md").write_text("# Monday\n\nAn otter swims in the brook.\n")
    (place / "loop").symlink_to(place)
    return place


@pytest.fixture(scope="module")
def agent(notes: Path) -> Iterator[Agent]:
    place = ("--folder", str(notes), "--data-dir", str(notes.parent / "index"))
    server = Server((*place, "--allow-reindex", "--aliases", "--structured-content"), log=notes.parent / "log")
    with server.connected() as connected:
        eventually(lambda: status(connected)["pages"] == 1, why="the folder is indexed")
        yield connected


def status(agent: Agent) -> dict[str, object]:
    return agent.result("index_status")


def finds(agent: Agent, query: str, path: str) -> bool:
    found = agent.result("semantic_search", query=query, n=1)["results"]
    return bool(found) and found[0]["path"] == path


def test_saved_files_are_found(agent: Agent, notes: Path) -> None:
    (notes / "daily" / "tuesday.md").write_text("# Tuesday\n\nThe bees left their hive.\n")
    eventually(lambda: finds(agent, "bees hive", "daily/tuesday"), why="the new file is found")
    (notes / "projects" / "shed").mkdir(parents=True)
    (notes / "projects" / "shed" / "roof.md").write_text("# Roof\n\nThe roofing felt is torn.\n")
    eventually(lambda: finds(agent, "torn felt", "projects/shed/roof"), why="the new directory is found")
    (notes / "projects" / "shed" / "roof.md").write_text("# Roof\n\nThe gutter leaks at the corner.\n")
    eventually(lambda: finds(agent, "leaking gutter corner", "projects/shed/roof"), why="the new directory is watched")
    (notes / "daily" / "tuesday.md").unlink()
    eventually(lambda: status(agent)["pages"] == 2, why="the removed file is gone")


def test_update_files_reads_the_disk(agent: Agent, notes: Path) -> None:
    (notes / "daily" / "monday.md").write_text("# Monday\n\nThe kiln reaches twelve hundred degrees.\n")
    for name in ("daily/monday.md", str(notes / "daily" / "monday.md")):
        assert agent.result("update_files", file_paths=[name])["state"] == "done"
    assert finds(agent, "temperature of the kiln", "daily/monday")
    assert "twelve hundred" in agent.text("read_note", path="daily/monday")
    (notes / "wednesday.md").write_text("# Wednesday\n\nSnow blocked the pass.\n")
    agent.result("update_files", file_paths=["wednesday.md"])
    assert finds(agent, "snow on the pass", "wednesday")


def test_a_new_document_is_found_and_read(agent: Agent, notes: Path) -> None:
    lease = pdf(["The landlord is Ann Lee."], ["# End", "The notice period is three months."])
    (notes / "daily" / "Lease.pdf").write_bytes(lease)
    eventually(lambda: finds(agent, "notice period of the lease", "daily/Lease.pdf"), why="the document is found")
    assert "three months" in agent.text("read_note", path="daily/Lease.pdf", section="page 2")
