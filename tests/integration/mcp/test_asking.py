"""The tool that lets the wiki answer, for clients without a model of their own."""

from __future__ import annotations

from pathlib import Path

from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import KEY, LiveWiki, make_repository
from tests.support.mcp_clients import Server

WIKI = {"SEMANTIC_ANSWERS": "extractive"}
BLEED = "How is a radiator bled?"


def test_the_wiki_answers_with_sources(wiki: LiveWiki) -> None:
    with Server(("--answers",), (("OTTERWIKI_URL", wiki.url), ("OTTERWIKI_API_KEY", KEY))).connected() as agent:
        answer = agent.text("answer_question", question=BLEED)
        assert "Hold a cup under the screw" in answer
        assert f"[1] {wiki.url}/house/heating" in answer
        assert "Nothing here answers" in agent.text("answer_question", question="Which rate has the yen against the peso?")


def test_a_repository_answers_too(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", HANDBOOK)
    settings = (("SEMANTIC_ANSWERS", "extractive"),)
    with Server(("--answers", "--repository", str(repository)), settings).connected() as agent:
        agent.text("semantic_search", query=BLEED, wait=True, wait_seconds=10)
        assert "Hold a cup under the screw" in agent.text("answer_question", question=BLEED)


def test_without_the_option_there_is_no_such_tool(wiki: LiveWiki) -> None:
    with Server((), (("OTTERWIKI_URL", wiki.url), ("OTTERWIKI_API_KEY", KEY))).connected() as agent:
        tools = agent.ask(lambda client: client.list_tools()).tools
        assert "answer_question" not in {tool.name for tool in tools}
