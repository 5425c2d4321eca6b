"""What agents are given by default: each answer once, as text, in Markdown, and a list of tools that costs little."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from mcp.client import Client
from mcp_types import Tool

from otterwiki_semantic.core.token_count import count_tokens
from tests.support.live_wiki import KEY, LiveWiki
from tests.support.mcp_clients import Agent, Server, http_server, text_of

LONG_NAME = "What to do when the heating does not start again after a power cut in winter"
CODE = f"""\
# Boiler

## {LONG_NAME}

Turn it off, then on again with these commands:

```bash
ssh badger boiler --stop
ssh badger boiler --start
```

| lamp | meaning |
| --- | --- |
| red | locked |
| green | heating |
"""
MORE_PAGES = {"house/boiler.md": CODE}


@pytest.fixture(scope="module")
def agent(wiki: LiveWiki) -> Iterator[Agent]:
    with (
        http_server(wiki.data_dir.parent / "mcp.log", "--url", wiki.url, OTTERWIKI_API_KEY=KEY) as server,
        server.connected() as web,
    ):
        yield web


@pytest.fixture(scope="module")
def local(wiki: LiveWiki) -> Iterator[Agent]:
    place = ("--repository", str(wiki.repository), "--data-dir", str(wiki.data_dir), "--aliases")
    with Server(place, log=wiki.data_dir.parent / "stdio.log").connected() as connected:
        yield connected


def answer(agent: Agent, tool: str, **arguments: object) -> str:
    result = agent.call(tool, **arguments)
    assert not result.is_error, text_of(result)
    assert result.structured_content is None
    return text_of(result)


def test_the_list_of_tools_costs_little(agent: Agent) -> None:
    async def listed(client: Client) -> list[Tool]:
        return (await client.list_tools()).tools

    tools = agent.ask(listed)
    assert {"semantic_search", "read_note", "recent_changes", "page_history", "orphaned_notes", "search", "fetch"} <= {
        tool.name for tool in tools
    }
    shown = json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools])
    assert count_tokens(shown) <= 1_800


def test_code_and_tables_are_found_whole_with_what_announces_them(agent: Agent) -> None:
    found = answer(agent, "semantic_search", query="ssh badger boiler --start")
    assert CODE.partition(LONG_NAME)[2].strip() in found
    assert len(LONG_NAME) > 50
    assert "boiler --stop" in answer(agent, "read_note", path="house/boiler", section=LONG_NAME)


def test_irrelevant_passages_are_left_out_and_arguments_that_are_not_listed_taken(agent: Agent) -> None:
    assert "not relevant" not in answer(agent, "semantic_search", query="air in a radiator", n=10)
    assert "radiator" in answer(agent, "semantic_search", query="radiator", mode="keyword", context=1, sort="updated")


def test_several_questions_give_each_passage_once(agent: Agent) -> None:
    found = answer(
        agent, "semantic_search", query="air in a radiator", more_queries=["bleeding a radiator", "zebra quantum flux"]
    )
    places = re.findall(r'path="([^"]*)" .* lines="([^"]*)"', found)
    assert len(places) == len(set(places)) >= 1
    assert "question 1, 2" in found
    assert "Nothing seems to be about question 3." in found


def test_an_alias_answers_once_as_well(local: Agent) -> None:
    found = json.loads(answer(local, "search_markdown", query="air in a radiator"))["results"]
    assert found[0]["file"] == "house/heating.md"


@pytest.mark.parametrize("which", ["agent", "local"])
def test_changes_history_and_orphans_are_listed(which: str, request: pytest.FixtureRequest) -> None:
    agent = request.getfixturevalue(which)
    assert "house/boiler" in answer(agent, "recent_changes", prefix="house/", limit=50)
    history = answer(agent, "page_history", path="house/boiler")
    revision = re.findall(r"^([0-9a-f]{12}) \d{4}-", history, re.MULTILINE)
    assert len(revision) == 1
    assert "# Boiler" in answer(agent, "read_note", path="house/boiler", revision=revision[0])
    assert answer(agent, "orphaned_notes")


def test_a_connector_searches_and_fetches(agent: Agent, wiki: LiveWiki) -> None:
    found = json.loads(answer(agent, "search", query="air in a radiator"))["results"]
    assert set(found[0]) == {"id", "title", "text", "url"}
    assert found[0]["url"].startswith(f"{wiki.url}/house/heating#")
    page = json.loads(answer(agent, "fetch", id=found[0]["id"]))
    assert set(page) == {"id", "title", "text", "url", "metadata"}
    assert page["id"] == found[0]["id"]
    assert "If it gurgles" in page["text"]
    assert json.loads(answer(agent, "fetch", id="house/boiler"))["text"].strip() == CODE.strip()
    assert agent.error("fetch", id="house/nowhere")
