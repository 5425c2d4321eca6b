"""A wiki with a reranker, asked in every way there is: the API, its search page, the command line, an agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from click.testing import CliRunner, Result
from mcp.client import Client

from otterwiki_semantic.cli.main import main
from otterwiki_semantic.mcp.rest_backend import RestBackend
from otterwiki_semantic.mcp.server import make_server
from tests.support.live_wiki import KEY, LiveWiki, eventually, make_repository
from tests.support.mcp_clients import Agent
from tests.support.rerank_server import RerankServer, ranked

RERANKER_KEY = "sk-rerank-0123456789"
QUESTION = "what is done before winter"
NAME = "cohere:rerank-v3.5"


@pytest.fixture(scope="module")
def server() -> Iterator[RerankServer]:
    """A reranker that likes the page about disks, whatever is asked."""
    with RerankServer() as made:
        made.reply = lambda body: ranked(body, lambda _, text: float("mirrors" in text))
        yield made


@pytest.fixture(scope="module")
def site(
    server: RerankServer, tmp_path_factory: pytest.TempPathFactory, handbook: dict[str, str | bytes]
) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("reranked")
    reranker: dict[str, Any] = {
        "SEMANTIC_RERANKER": NAME,
        "SEMANTIC_RERANKER_URL": server.url,
        "SEMANTIC_RERANKER_KEY": RERANKER_KEY,
    }
    repository = make_repository(place / "repository", handbook)
    with LiveWiki(repository, place / "index", READ_ACCESS="ANONYMOUS", **reranker) as made:
        made.wait_until_indexed()
        eventually(lambda: not made.api("GET", "/semantic-search/status").json["reranker_is_loading"])
        yield made


def test_the_api_takes_rerank_and_tells_what_was_used(site: LiveWiki) -> None:
    first = {}
    for rerank in ("true", "false"):
        answer = site.api("GET", f"/semantic-search?q={QUESTION.replace(' ', '+')}&rerank={rerank}&explain=true").json
        first[rerank] = answer["results"][0]["path"], answer.get("reranker")
        assert bool(answer["results"][0]["explain"]["rerank"]["rank"]) is (rerank == "true")
    assert first == {"true": ("machines/nas", NAME), "false": ("house/heating", None)}
    answers = site.api("POST", "/semantic-search", json_body={"queries": [QUESTION, "vegetables"], "rerank": True})
    assert [answer["reranker"] for answer in answers.json["answers"]] == [NAME, NAME]
    assert site.api("GET", "/semantic-search?q=x&rerank=perhaps").status == 422
    assert site.api("GET", "/semantic-search/status").json["reranker"] == NAME


def test_the_search_page_reranks_what_is_no_longer_typed(site: LiveWiki) -> None:
    address = f"/-/semantic-search/results?why=1&q={QUESTION.replace(' ', '+')}"
    assert "by the reranker" in site.get(address).text
    assert "by the reranker" in site.get(f"{address}&draft=1").text
    assert "by the reranker" not in site.get(f"{address}&draft=typing").text


def command(site: LiveWiki, *arguments: str) -> Result:
    place = ["--repository", str(site.repository), "--data-dir", str(site.data_dir)]
    return CliRunner().invoke(main, [*arguments, *place], catch_exceptions=False)


def test_the_command_line_reranks_if_it_is_told_to(site: LiveWiki) -> None:
    reranked = command(site, "search", "--rerank", "--explain", QUESTION)
    assert reranked.output.startswith("machines/nas:")
    assert "reranker: meaning" in reranked.output
    assert "reranked 1.00 (rank " in reranked.output
    assert command(site, "search", "--no-rerank", QUESTION).output.startswith("house/heating:")


def test_the_gain_is_measured(site: LiveWiki, server: RerankServer, tmp_path: Path) -> None:
    questions, before = tmp_path / "questions.json", tmp_path / "before.json"
    questions.write_text(json.dumps([{"query": QUESTION, "relevant": ["machines/nas"]}]))
    assert command(site, "eval", "run", str(questions), "--output", str(before)).exit_code == 0
    worked, server.reply = server.reply, lambda _: (500, b"{}")
    better = command(site, "eval", "run", str(questions), "--fail-under", "mrr=1")
    assert better.exit_code == 1, "without --rerank the reranker is not asked"
    assert "answers are degraded" not in better.output
    server.reply = worked
    after = command(site, "eval", "run", str(questions), "--rerank", "--compare", str(before), "--fail-under", "mrr=1")
    assert after.exit_code == 0, after.output
    assert "hybrid against hybrid before" in after.output


def test_the_key_is_nowhere_to_be_seen(site: LiveWiki, server: RerankServer) -> None:
    assert f"Bearer {RERANKER_KEY}" in server.keys
    status = site.api("GET", "/semantic-search/status")
    owner = Path(f"/proc/{status.json['owner_pid']}/cmdline").read_bytes().decode()
    assert RERANKER_KEY not in f"{site.log}{(site.data_dir / 'owner.log').read_text()}{status.text}{owner}"


def test_an_agent_may_ask_for_it(site: LiveWiki, server: RerankServer) -> None:
    def first(agent: Agent, **arguments: bool) -> str:
        return str(agent.result("semantic_search", query="what has to be prepared", **arguments)["results"][0]["path"])

    backend = RestBackend(site.url, KEY)
    structured = make_server(
        backend, allow_reindex=False, has_aliases=False, has_connectors=False, is_structured=True, can_answer=False
    )
    async_client = Client(structured)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(async_client) as client:
        agent = Agent(portal, client)
        server.requests.clear()
        assert first(agent, rerank=False) != "machines/nas"
        assert server.requests == []
        assert first(agent, rerank=True) == "machines/nas"
        assert first(agent) == "machines/nas", "it is fast, and is used unless somebody says otherwise"


def test_a_measurement_of_a_reranker_that_fails_says_so(site: LiveWiki, server: RerankServer, tmp_path: Path) -> None:
    """The last one: the reranker is left alone then."""
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps([{"query": QUESTION, "relevant": ["machines/nas"]}]))
    server.reply = lambda _: (500, b"{}")
    failed = command(site, "eval", "run", str(questions), "--rerank")
    assert "hybrid: 1 of 1 answers are degraded: the answer is not reranked" in failed.output
