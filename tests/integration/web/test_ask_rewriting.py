"""A question for which nothing is found may be reworded by the model."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.support.chat_server import ChatServer, dripping, refusing, saying
from tests.support.live_wiki import LiveWiki, make_repository

PAGES: dict[str, str | bytes] = {
    "backups.md": "# Backups\n\nNightly backups are kept 14 days on the tape.\n",
    "garden.md": "# Garden\n\nPlant tomatoes after the middle of May, tie them up, and never wet their leaves.\n",
}
QUESTION = "Wie lange heben wir die Sicherungen auf?"
REWRITTEN = "How long are nightly backups kept?"
ANSWER = "Nightly backups are kept 14 days."


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory, chat: ChatServer) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("rewriting")
    settings: dict[str, Any] = {**chat.settings, "SEMANTIC_ANSWERS_SECONDS": "6", "SEMANTIC_ANSWERS_REWRITE": "true"}
    with LiveWiki(make_repository(place / "repository", PAGES), place / "index", **settings) as live:
        live.wait_until_indexed()
        yield live


def rewording(text: str) -> Any:
    """Return a script that rewords a question with this text, and answers it from the pages."""

    def script(body: dict[str, Any], provider: str) -> Iterable[bytes]:
        numbers = re.findall(r"=== source (\d+) \w+: Backups", body["messages"][-1]["content"])
        return saying(f"{ANSWER[:-1]} [{numbers[0]}]." if numbers else text)(body, provider)

    return script


def asked(wiki: LiveWiki, question: str = QUESTION, **options: Any) -> dict[str, Any]:
    answer: dict[str, Any] = wiki.api("POST", "/semantic-search/ask", json_body={"question": question, **options}).json
    return answer


def test_a_question_in_other_words_is_answered(wiki: LiveWiki, chat: ChatServer) -> None:
    chat.script = rewording(f"1. {REWRITTEN}\n2. backup retention\n")
    answer = asked(wiki)
    assert [each["text"] for each in answer["answer"]] == [ANSWER]
    assert answer["answer"][0]["supported"]
    assert (answer["question"], answer["rewrites"]) == (QUESTION, [REWRITTEN, "backup retention"])
    assert answer["confident"]
    assert answer["sources"][0]["path"] == "backups"


def test_readers_see_the_nearest_passages_first_and_the_sources_when_they_are_found(wiki: LiveWiki, chat: ChatServer) -> None:
    chat.script = rewording(REWRITTEN)
    body = {"question": QUESTION, "stream": True}
    text = wiki.api("POST", "/semantic-search/ask", json_body=body).text
    events = [event.split("\n") for event in text.strip().split("\n\n") if not event.startswith(":")]
    assert [lines[0] for lines in events] == ["event: sources", "event: sources", "event: text", "event: done"]
    nearest, found = (json.loads(lines[1].removeprefix("data: ")) for lines in events[:2])
    assert (nearest["confident"], found["confident"]) == (False, True)
    assert found["rewrites"] == [REWRITTEN]


def test_the_page_says_what_was_searched_for(wiki: LiveWiki, chat: ChatServer) -> None:
    chat.script = rewording("<b>nightly</b> backups kept how long?")
    search = f"/-/semantic-search?{urllib.parse.urlencode({'q': QUESTION})}"
    shown = wiki.post_form(search.replace("search?", "search/answer?"), search).text
    assert "Searched for: &lt;b&gt;nightly&lt;/b&gt; backups kept how long?" in shown


@pytest.mark.parametrize("text", ["NONE", "The price of yen in pesos", "\n \n---\n", "x" * 5_000])
def test_what_does_not_help_is_not_used(wiki: LiveWiki, chat: ChatServer, text: str) -> None:
    chat.script = rewording(text)
    answer = asked(wiki)
    assert (answer["answer"], answer["confident"]) == ([], False)
    assert "rewrites" not in answer
    assert answer["message"]


def test_a_question_that_finds_something_is_not_reworded(wiki: LiveWiki, chat: ChatServer) -> None:
    chat.script = rewording("garden")
    before = len(chat.requests)
    assert asked(wiki, REWRITTEN)["answer"][0]["text"] == ANSWER
    assert len(chat.requests) == before + 1


def test_the_conversation_is_reworded_with_the_question(wiki: LiveWiki, chat: ChatServer) -> None:
    chat.script = rewording("NONE")
    asked(wiki, history=[{"question": "Hallo?", "answer": "Guten Tag."}])
    told = [(each["role"], each["content"]) for each in chat.requests[-1]["messages"][1:]]
    assert told == [("user", "Hallo?"), ("assistant", "Guten Tag."), ("user", QUESTION)]


def test_the_nearest_passages_are_there_when_the_model_is_not(wiki: LiveWiki, chat: ChatServer) -> None:
    chat.script = refusing(401, "no")
    answer = asked(wiki)
    assert "SEMANTIC_ANSWERS_KEY" in answer["message"]
    assert answer["sources"]


def test_a_model_that_rewords_without_end_is_stopped(wiki: LiveWiki, chat: ChatServer) -> None:
    chat.script = dripping(f"{REWRITTEN} " * 100, 0.0001)
    assert asked(wiki)["answer"] == []
    assert chat.hung_up.wait(10)
