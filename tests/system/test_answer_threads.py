"""Answers leave the threads of the wiki's server to its pages, whatever their readers do."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import ChatServer, dripping, saying
from tests.support.live_wiki import LiveWiki, eventually, make_repository
from tests.support.slow_clients import posted, status_of
from tests.support.wiki_servers import OF_ONE_THREAD, OF_THREADS, Pages, Server

ASK = "/api/v1/semantic-search/ask"
PAGES: Pages = {"backups.md": "# Backups\n\nNightly backups are kept 14 days on the tape.\n"}
QUESTION = "How long are nightly backups kept?"
SENTENCE = "Nightly backups are kept 14 days on the tape [1]. "

Start = Callable[[Server], LiveWiki]

log = logging.getLogger(__name__)


@pytest.fixture
def model() -> Iterator[ChatServer]:
    with ChatServer(dripping(SENTENCE, 0.02)) as running:
        yield running


@pytest.fixture
def start(tmp_path: Path, model: ChatServer) -> Iterator[Start]:
    """Starts a server whose answers are written by a model without end, for up to ten minutes."""
    with ExitStack() as running:

        def started(server: Server) -> LiveWiki:
            settings: dict[str, Any] = {"SEMANTIC_ANSWERS": "openai:small", "SEMANTIC_ANSWERS_URL": model.url}
            repository = make_repository(tmp_path / "repository", PAGES)
            wiki = server.wiki(repository, tmp_path / "index", SEMANTIC_ANSWERS_SECONDS="600", **settings)
            running.enter_context(wiki)
            wiki.wait_until_indexed()
            return wiki

        yield started


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("server", OF_THREADS, ids=lambda server: server.name)
def test_pages_come_while_answers_are_written_and_readers_who_leave_are_noticed(
    start: Start, model: ChatServer, server: Server, *, stream: bool
) -> None:
    """One answer is waited for, the others are refused at once, and pages have the other threads."""
    wiki = start(server)
    with ExitStack() as readers:
        connections = [
            readers.enter_context(posted(wiki.port, ASK, {"question": QUESTION, "stream": stream})) for _ in range(4)
        ]
        eventually(lambda: model.requests, why="the model is asked")
        for path in ("/backups", "/-/semantic-search?q=backups", "/api/v1/semantic-search?q=backups"):
            begun = time.monotonic()
            assert wiki.get(path).status == 200
            log.info("%s: %s after %.2f s", server.name, path, time.monotonic() - begun)
        eventually(lambda: [status_of(each) for each in connections].count(429) == 3, why="the others are refused")
        assert not model.hung_up.is_set(), "the answer is still being written"
        assert len(model.requests) == 1
    left = time.monotonic()
    assert model.hung_up.wait(10), "nobody is left, which the end of the answer in minutes would not show"
    log.info("%s: noticed after %.2f s that the readers had left", server.name, time.monotonic() - left)
    model.script = saying(SENTENCE)
    eventually(lambda: asked(wiki).status == 200, why="the place is free again")
    for _ in range(10):
        assert asked(wiki).json["answer"], "one question after the other"
        assert "event: done" in asked(wiki, stream=True).text


def asked(wiki: LiveWiki, **options: Any) -> Any:
    return wiki.api("POST", "/semantic-search/ask", json_body={"question": QUESTION, **options})


@pytest.mark.parametrize("server", OF_ONE_THREAD, ids=lambda server: server.name)
def test_a_server_with_one_thread_waits_a_moment_and_says_why(start: Start, model: ChatServer, server: Server) -> None:
    wiki = start(server)
    whole = asked(wiki).json
    assert "have one thread each" in whole["message"]
    assert whole["sources"]
    events = asked(wiki, stream=True).text
    assert events.count("event: done") == 1
    assert "have one thread each" in events.partition("event: done")[2]
    model.script = saying(SENTENCE)
    assert asked(wiki).json["answer"][0]["supported"], "what is fast enough is whole"
