"""Answers leave the threads of real servers to the wiki's pages: each server tells in another way that a reader has left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.chat_server import ChatServer, dripping, saying
from tests.support.live_wiki import LiveWiki, eventually, make_repository
from tests.support.slow_clients import posted, status_of
from tests.support.wiki_servers import OF_ONE_THREAD, OF_THREADS, Pages

ASK = "/api/v1/semantic-search/ask"
PAGES: Pages = {"backups.md": "# Backups\n\nNightly backups are kept 14 days on the tape.\n"}
QUESTION = "How long are nightly backups kept?"
SENTENCE = "Nightly backups are kept 14 days on the tape [1]. "


@pytest.fixture
def endless(chat: ChatServer) -> ChatServer:
    """A model that writes an answer without end."""
    chat.script = dripping(SENTENCE, 0.02)
    chat.requests.clear()
    chat.hung_up.clear()
    return chat


@pytest.fixture(scope="module")
def wiki(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, chat: ChatServer) -> Iterator[LiveWiki]:
    """A wiki on the server that the test names; an answer may take up to ten minutes."""
    place = tmp_path_factory.mktemp("answers")
    settings: dict[str, Any] = {**chat.settings, "SEMANTIC_ANSWERS_SECONDS": "600", "SEMANTIC_ANSWERS_PER_HOUR": "0"}
    with request.param.wiki(make_repository(place / "repository", PAGES), place / "index", **settings) as wiki:
        wiki.wait_until_indexed()
        yield wiki


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wiki", OF_THREADS, indirect=True, ids=lambda server: server.name)
def test_pages_come_while_answers_are_written_and_readers_who_leave_are_noticed(
    wiki: LiveWiki, endless: ChatServer, *, stream: bool
) -> None:
    """One answer is waited for, the others are refused at once, and pages have the other threads."""
    with ExitStack() as readers:
        sent = [readers.enter_context(posted(wiki.port, ASK, {"question": QUESTION, "stream": stream})) for _ in range(4)]
        eventually(lambda: endless.requests, why="the model is asked")
        for path in ("/backups", "/-/semantic-search?q=backups", "/api/v1/semantic-search?q=backups"):
            assert wiki.get(path).status == 200
        eventually(lambda: [status_of(each) for each in sent].count(429) == 3, why="the others are refused")
        assert not endless.hung_up.is_set(), "the answer is still being written"
        assert len(endless.requests) == 1
    assert endless.hung_up.wait(60), "nobody is left, which the end of the answer in minutes would not show"
    endless.script = saying(SENTENCE)
    eventually(lambda: asked(wiki).status == 200, why="the place is free again")
    for _ in range(2):
        assert asked(wiki).json["answer"], "one question after the other"
        assert "event: done" in asked(wiki, stream=True).text


def asked(wiki: LiveWiki, **options: Any) -> Any:
    return wiki.api("POST", "/semantic-search/ask", json_body={"question": QUESTION, **options})


@pytest.mark.parametrize("wiki", OF_ONE_THREAD, indirect=True, ids=lambda server: server.name)
def test_a_server_with_one_thread_waits_a_moment_and_says_why(wiki: LiveWiki, endless: ChatServer) -> None:
    whole = asked(wiki).json
    assert "have one thread each" in whole["message"]
    assert whole["sources"]
    events = asked(wiki, stream=True).text
    assert events.count("event: done") == 1
    assert "have one thread each" in events.partition("event: done")[2]
    endless.script = saying(SENTENCE)
    assert asked(wiki).json["answer"][0]["supported"], "what is fast enough is whole"
