"""Agents that write: only if the wiki, the server and the person allow it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.token_count import count_tokens
from tests.integration.mcp.test_oauth import ask
from tests.support.accounts import OPEN_TO_ACCOUNTS
from tests.support.live_wiki import LiveWiki, git, head_of, make_repository
from tests.support.mcp_clients import Agent, Server, http_server
from tests.support.oauth import API_KEY, Browser, Storage, sdk_auth
from tests.support.ports import free_port

PAGES: dict[str, str | bytes] = {
    "home.md": "# Home\n\nAbout a house and its garden.\n",
    "garden.md": "# Garden\n\n## Tomatoes\n\nPlant tomatoes in May, when no frost comes.\n\n## Beans\n\nThey climb.\n",
}
_PUMPKINS = "# Pumpkins\n\nPlant them in May, like tomatoes, without frost.\n"
WRITERS = {"write_note", "edit_note", "append_note", "delete_note"}


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("agents-write")
    settings: dict[str, Any] = {
        "OTTERWIKI_API_KEY": API_KEY,
        "SEMANTIC_ALLOW_WRITE": "true",
        "SEMANTIC_WRITE_AS": "admin@example.org",
        **OPEN_TO_ACCOUNTS,
        "WRITE_ACCESS": "APPROVED",
    }
    with LiveWiki(make_repository(place / "repository", PAGES), place / "index", **settings) as live:
        Browser(live, "admin")
        yield live


@pytest.fixture(scope="module")
def agent(wiki: LiveWiki) -> Iterator[Agent]:
    settings = (("OTTERWIKI_URL", wiki.url), ("OTTERWIKI_API_KEY", API_KEY))
    with Server(("--allow-write",), settings).connected() as connected:
        yield connected


def listed(agent: Agent) -> dict[str, str]:
    """Return what a client is sent of each tool."""
    tools = agent.ask(lambda client: client.list_tools()).tools
    return {tool.name: json.dumps(tool.model_dump(mode="json", by_alias=True, exclude_none=True)) for tool in tools}


def test_an_agent_writes_reads_and_edits(wiki: LiveWiki, agent: Agent) -> None:
    created = agent.text("write_note", path="garden/pumpkins", text=_PUMPKINS)
    assert created.startswith("created, revision ")
    assert f"\n{wiki.url}/garden/pumpkins\n" in created
    assert "garden: Garden" in created, "a page about the same, to link to"
    read = agent.text("read_note", path="garden/pumpkins")
    found = re.search(r"revision (\w+)", read)
    assert found
    edited = agent.text("edit_note", path="garden/pumpkins", revision=found[1], old="in May", new="in June", message="Later")
    assert edited.startswith("changed, revision ")
    agent.text("append_note", path="garden", section="Tomatoes", text="Tie them up.")
    assert "in June" in agent.text("semantic_search", query="when to plant pumpkins")
    assert git(wiki.repository, "show", "HEAD:garden.md").split("## Beans")[0].rstrip().endswith("Tie them up.")
    assert git(wiki.repository, "log", "-3", "--format=%an").splitlines() == ["Admin"] * 3


def test_an_agent_deletes_a_page_that_it_has_read(wiki: LiveWiki, agent: Agent) -> None:
    agent.text("write_note", path="notes/old", text="# Old\n\nOut of date.\n")
    revision = re.findall(r"revision (\w+)", agent.text("read_note", path="notes/old"))[0]
    assert agent.text("delete_note", path="notes/old", revision=revision).startswith("deleted, revision ")
    assert "the wiki has no page" in agent.error("read_note", path="notes/old")
    assert "notes/old.md" not in git(wiki.repository, "ls-tree", "-r", "--name-only", "HEAD")


def test_a_page_that_was_changed_is_shown_as_a_difference(agent: Agent) -> None:
    agent.text("write_note", path="notes/race", text="# Race\n\none\n")
    revision = re.findall(r"revision (\w+)", agent.text("read_note", path="notes/race"))[0]
    agent.text("edit_note", path="notes/race", revision=revision, old="one", new="two")
    error = agent.error("edit_note", path="notes/race", revision=revision, old="one", new="three")
    assert "was changed since" in error
    assert "-one\n+two" in error
    assert re.search(r"<wiki-text-\w+ list=\"?changes", error), "what others wrote is data"


def test_mistakes_are_explained(agent: Agent) -> None:
    assert "garden" in agent.error("write_note", path="garden", text="# Other\n")
    assert "garden" in agent.error("edit_note", path="gardn", revision="abcdef12", old="a", new="b")
    assert "no page can have such a path" in agent.error("write_note", path="../evil", text="x")


def test_without_the_option_there_are_no_such_tools(wiki: LiveWiki) -> None:
    settings = (("OTTERWIKI_URL", wiki.url), ("OTTERWIKI_API_KEY", API_KEY))
    with Server((), settings).connected() as reader, Server(("--allow-write",), settings).connected() as writer:
        reading, writing = listed(reader), listed(writer)
    assert not WRITERS & set(reading)
    assert {name: writing[name] for name in reading} == reading
    assert set(writing) - set(reading) == WRITERS
    assert all(writing[name].count('"revision"') == 2 for name in ("edit_note", "delete_note")), "listed, and required"
    assert sum(count_tokens(writing[name]) for name in WRITERS) <= 500


def test_a_repository_alone_cannot_be_written(tmp_path: Path) -> None:
    from tests.integration.cli.test_main import run

    repository = make_repository(tmp_path / "repository", PAGES)
    refused = run("mcp", "--repository", repository, "--allow-write")
    assert (refused.returncode, "requires a running wiki" in refused.stderr) == (2, True)


@pytest.mark.parametrize("is_allowed", [False, True])
def test_a_connected_program_writes_only_if_the_person_allowed_it(wiki: LiveWiki, tmp_path: Path, *, is_allowed: bool) -> None:
    person = Browser(wiki, f"writer{is_allowed}".lower())
    person.may_write = is_allowed
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    arguments = ("--http", port, "--url", wiki.url, "--public-url", url, "--allow-write")
    with http_server(tmp_path / "mcp.log", *arguments, OTTERWIKI_API_KEY=API_KEY):
        auth = sdk_auth(f"{url}/mcp", person, Storage())
        before = head_of(wiki.repository)
        path = f"notes/of-{person.email.partition('@')[0]}"
        said = ask(auth, url, "write_note", path=path, text="# Mine\n")
        if is_allowed:
            assert git(wiki.repository, "log", "-1", "--format=%ae") == person.email
        else:
            assert "may only read" in said
            assert head_of(wiki.repository) == before
