"""Questions are answered with a source for every sentence, or not at all."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import LiveWiki, Reply, make_repository

ASK = "/api/v1/semantic-search/ask"
_GATE = """\
# Gate of the yard

Visitors of the yard ring the bell at the gate.

<!-- draft

Visitors of the yard open the gate with the code 4711.

-->

~~The gate of the yard closes at nine in the evening.~~ The gate of the yard closes at eight in the evening.

- [ ] The gate of the yard is painted
"""
_LAUNDRY = """\
# Laundry

## Washing

The washing machine of the house stands in the cellar. Wool is washed cold.

## Drying

The dryer of the house is in the attic. It may run until ten in the evening. Empty its filter.
"""
_TYRES = """\
# Tyres

To change the tyres of the car, do this:

1. Loosen the nuts.
2. Lift the car with the jack.
3. Swap the wheels.

## Tools

- The jack belongs to the car.
- The wrench is in the cellar.
"""
WIKI = {"SEMANTIC_ANSWERS": "extractive", "SEMANTIC_ANSWERS_PER_HOUR": "5"}
MORE_PAGES = {"gate.md": _GATE, "laundry.md": _LAUNDRY, "tyres.md": _TYRES}
FROST = "What should I do with the pipes before a frost?"


def asked(wiki: LiveWiki, question: str, **options: Any) -> Reply:
    return wiki.api("POST", "/semantic-search/ask", json_body={"question": question, **options})


def events(reply: Reply) -> list[tuple[str, Any]]:
    pieces = [piece for piece in reply.text.split("\n\n") if piece and not piece.startswith(":")]
    return [(name[7:], json.loads(data[6:])) for name, data in (piece.split("\n", 1) for piece in pieces)]


def test_every_sentence_stands_in_the_source_that_it_names(wiki: LiveWiki) -> None:
    answer = asked(wiki, FROST).json
    assert answer["confident"]
    assert answer["model"] == "extractive"
    assert answer["answer"]
    for sentence in answer["answer"]:
        assert sentence["supported"]
        texts = [" ".join(answer["sources"][place]["markdown"].split()) for place in sentence["sources"]]
        assert any(sentence["text"] in text for text in texts)
    assert answer["sources"][0]["path"] == "house/heating"
    assert "/house/heating#" in answer["sources"][0]["url"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How do visitors open the gate of the yard?", "ring the bell"),
        ("When does the gate of the yard close?", "at eight"),
        ("Is the gate of the yard painted?", "☐ The gate of the yard is painted"),
    ],
)
def test_what_the_page_hides_or_takes_back_is_no_answer(wiki: LiveWiki, question: str, said: str) -> None:
    answer = asked(wiki, question).json
    texts = " ".join(sentence["text"] for sentence in answer["answer"])
    assert said in texts, answer["message"]
    assert "4711" not in texts
    assert "nine" not in texts


def palette_answer(wiki: LiveWiki, query: str) -> str | None:
    """Return the link of what answers in the palette."""
    shown = wiki.get("/-/semantic-search/palette", part="passages", q=query, draft="typing")
    assert 'aria-label="Passages"' in shown.text
    found = re.search(r'class="semantic-palette-lead">.*?href="([^"]*)"', shown.text, re.DOTALL)
    return found and found[1]


def test_the_palette_links_to_exactly_what_answers_below_its_own_heading(wiki: LiveWiki) -> None:
    passages = wiki.api("GET", "/semantic-search", q="dryer of the house").json["results"]
    assert passages[0]["headings"] == ["Laundry", "Washing", "Drying"], "one passage has all"
    unit = "The%20dryer%20of%20the,ten%20in%20the%20evening."  # with the sentence that says what "it" is
    assert palette_answer(wiki, "until when may the dryer run?") == f"/laundry#drying:~:text={unit}"
    assert palette_answer(wiki, "dryer of the house") is None


@pytest.mark.parametrize(("spelled", "is_corrected"), [("tyres", False), ("tyress", True)])
def test_steps_in_the_palette_are_numbered_and_not_repeated(wiki: LiveWiki, spelled: str, is_corrected: bool) -> None:
    question = f"how do I change the {spelled} of the car?"
    assert wiki.api("GET", "/semantic-search", q=question, units=6).json["lead"]["unit"]["kind"] == "sentence"
    shown = wiki.get("/-/semantic-search/palette", part="passages", q=question).text
    steps = [("1.", "Loosen the nuts."), ("2.", "Lift the car with the jack."), ("3.", "Swap the wheels.")]
    assert re.findall(r'data-marker="(.*?)">\s*([^<]*)<', shown) == steps
    assert 'aria-label="Passages"' not in shown
    assert ("data-corrected" in shown) == is_corrected


def test_things_in_the_palette_are_listed(wiki: LiveWiki) -> None:
    shown = wiki.get("/-/semantic-search/palette", part="passages", q="what are the tools for the tyres?").text
    things = [("•", "The jack belongs to the car."), ("•", "The wrench is in the cellar.")]
    assert re.findall(r'data-marker="(.*?)">\s*([^<]*)<', shown)[:2] == things


def test_steps_are_copied_with_their_numbers(wiki: LiveWiki) -> None:
    wiki.log_in()
    asked_for = "?q=how+do+I+change+the+tyres+of+the+car%3F"
    shown = wiki.post_form(f"/-/semantic-search/answer{asked_for}", f"/-/semantic-search{asked_for}").text
    wiki.get("/-/logout")
    assert re.search(r'data-copy="1\. Loosen the nuts\. \[1\]\n2\. Lift the car with the jack\. \[\d\]\n3\. ', shown)


@pytest.mark.parametrize("place", ["results", "palette"])
def test_a_query_about_nothing_is_narrowed_to_words_in_one_passage_if_they_are_half_of_it(wiki: LiveWiki, place: str) -> None:
    queries = "Khan Jackson, of Lift nuts?", "Genghis Khan Jackson nuts", "jack giraffe"
    found, other, unknown = (wiki.get(f"/-/semantic-search/{place}", part="passages", q=query).text for query in queries)
    assert "Nothing matches all the words. Results for “Lift nuts?”:" in found
    assert "/tyres" in found
    assert "Results for “jack”:" in unknown, "no word begins with the last one, as if it were unfinished"
    assert ("Nothing in this wiki" in other, "Results for" in other) == (True, False)


def test_a_question_about_nothing_in_the_wiki_gets_no_answer(wiki: LiveWiki) -> None:
    answer = asked(wiki, "Which exchange rate has the yen against the peso?").json
    assert (answer["answer"], answer["confident"]) == ([], False)
    assert "Nothing here answers" in answer["message"]
    assert answer["sources"], "the nearest passages are shown"
    assert "directly" in asked(wiki, "who restarts the heating").json["message"]


def test_events_are_the_sources_the_sentences_and_the_whole(wiki: LiveWiki) -> None:
    reply = asked(wiki, FROST, stream=True)
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    assert reply.headers["X-Accel-Buffering"] == "no"
    names = [name for name, _ in events(reply)]
    assert names[0] == "sources"
    assert names[-1] == "done"
    assert set(names[1:-1]) == {"text"}
    (_, opening), *texts, (_, whole) = events(reply)
    assert opening["answer"] == []
    assert opening["sources"] == whole["sources"]
    assert [sentence for _, sentence in texts] == whole["answer"]


def test_only_pages_that_pass_the_filters_are_sources(wiki: LiveWiki) -> None:
    answer = asked(wiki, FROST, path="machines/").json
    assert {source["path"] for source in answer["sources"]} <= {"machines/nas"}


def test_a_question_that_refers_to_the_one_before_finds_its_page(wiki: LiveWiki) -> None:
    history = [{"question": "How do I bleed a radiator?", "answer": "With a key [1]."}]
    assert asked(wiki, "And when is it full?", history=history).json["sources"][0]["path"] == "house/heating"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "question is missing"),
        ({"question": " "}, "question is empty"),
        ({"question": "How?", "limit": 0}, "limit is 0"),
        ({"question": "How?", "history": "all"}, "history is 'all'"),
        ({"question": "How?", "history": [{"question": "How?"}]}, "history[0]"),
        ({"question": "How?", "history": [{"question": "How?", "answer": "x" * 20_001}]}, "history[0].answer has 20,001"),
        ({"question": "How?", "model": "gpt"}, "unknown parameter 'model'"),
    ],
)
def test_bad_requests_are_named(wiki: LiveWiki, body: dict[str, Any], named: str) -> None:
    reply = wiki.api("POST", "/semantic-search/ask", json_body=body)
    assert reply.status == 422
    assert named in reply.json["error"]["message"]


@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil.example"}]
)
def test_no_other_site_can_ask_through_a_reader(wiki: LiveWiki, headers: dict[str, str]) -> None:
    reply = wiki.request("POST", ASK, json.dumps({"question": FROST}).encode(), headers)
    assert (reply.status, reply.json["error"]["code"]) == (403, "csrf_failed")


def test_a_visitor_is_answered_so_many_times_an_hour(wiki: LiveWiki) -> None:
    body = json.dumps({"question": "How do I bleed a radiator?"}).encode()
    replies = [wiki.request("POST", ASK, body, {"Origin": wiki.url}) for _ in range(6)]
    assert [reply.status for reply in replies] == [200] * 5 + [429]
    assert replies[-1].json["error"]["code"] == "rate_limited"
    assert int(replies[-1].headers["Retry-After"]) > 0
    assert asked(wiki, FROST).status == 200, "a program with the key is not counted"


def test_questions_behind_a_proxy_are_counted_for_the_person_that_it_names(wiki: LiveWiki) -> None:
    body = json.dumps({"question": "How do I bleed a radiator?"}).encode()
    settings: dict[str, Any] = {
        "SEMANTIC_ANSWERS": "extractive",
        "SEMANTIC_ANSWERS_PER_HOUR": "5",
        "AUTH_METHOD": "PROXY_HEADER",
    }
    with LiveWiki(wiki.repository, wiki.data_dir, **settings) as other:

        def ask(person: str, name: str, roles: str) -> int:
            headers = {"x-otterwiki-email": person, "x-otterwiki-name": name, "x-otterwiki-permissions": roles}
            return other.request("POST", ASK, body, headers).status

        assert [ask("a@example.org", f"Name {number}", "READ" + ",ADMIN" * number) for number in range(6)] == [200] * 5 + [429]
        assert ask("two@example.org", "Name 0", "READ") == 200
        assert ask("a@example.org", "Name 0", "ADMIN") == 403


@pytest.mark.parametrize("part", ["", "&part=1"])
def test_the_search_page_says_that_it_is_too_many(wiki: LiveWiki, part: str) -> None:
    address = "/-/semantic-search?q=bleed+a+radiator"
    body = urlencode({"csrf_token": wiki.csrf_token(address)}).encode()
    replies = [wiki.request("POST", f"/-/semantic-search/answer?q=bleed+a+radiator{part}", body) for _ in range(6)]
    assert "5 questions an hour are answered" in replies[-1].text
    assert {reply.status for reply in replies[:-1]} <= {200, 429}, "visitors before have asked, too"


def test_a_page_without_scripts_has_the_answer_above_the_results_in_the_order_of_its_page(wiki: LiveWiki) -> None:
    wiki.log_in()
    address, action = (f"/-/semantic-search{part}?q=until+when+may+the+dryer+run" for part in ("", "/answer"))
    assert f'action="{action}"' in wiki.get(address).text
    answered = wiki.post_form(action, address).text
    assert answered.index('class="semantic-answer"') < answered.index('class="semantic-pages"')
    quoted = answered.split('class="semantic-pages"')[0]
    assert quoted.index("is in the attic") < quoted.index("may run until ten"), "though the second answers"


def test_a_form_without_its_token_is_refused(wiki: LiveWiki) -> None:
    assert wiki.request("POST", "/-/semantic-search/answer?q=radiator", b"").status == 400


def test_without_the_setting_there_is_neither_route_nor_button(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("silent")
    with LiveWiki(make_repository(place / "repository", HANDBOOK), place / "index") as live:
        live.wait_until_indexed()
        reply = live.api("POST", "/semantic-search/ask", json_body={"question": FROST})
        assert (reply.status, reply.json["error"]["code"]) == (404, "answers_disabled")
        assert "SEMANTIC_ANSWERS" in reply.json["error"]["message"]
        assert "semantic-answer" not in live.get("/-/semantic-search", q="radiator").text
        assert live.request("POST", "/-/semantic-search/answer?q=radiator", b"").status in {400, 404, 405}
