"""Questions for `eval`, drafted from the wiki's links."""

from __future__ import annotations

import pytest

from otterwiki_semantic.cli.evaluate.drafts import draft_questions
from otterwiki_semantic.core.records import Link


def test_questions_are_drafted_from_link_texts() -> None:
    links = {
        "home": [Link("/Backup", "getting files back"), Link("/backup", "here"), Link("/gone", "a page that is not")],
        "Backup": [Link("/home", "the start"), Link("https://example.org", "elsewhere")],
        "diary": [Link("/backup", "Getting files back"), Link("/home", "/home"), Link("home", "the Start")],
    }
    assert draft_questions(links) == [
        {"query": "getting files back", "relevant": ["Backup"], "exclude": ["diary", "home"]},
        {"query": "the start", "relevant": ["home"], "exclude": ["Backup", "diary"]},
    ]


def test_a_text_that_leads_to_a_page_and_from_it_is_no_question() -> None:
    links = {"a": [Link("/b", "the other one")], "b": [Link("/a", "the other one")]}
    assert draft_questions(links) == []


@pytest.mark.parametrize("text", ["Read more", "see", "ab", "see http://backup", "www.backup", "/backup"])
def test_a_text_that_does_not_tell_what_the_page_is_about_is_no_question(text: str) -> None:
    assert draft_questions({"home": [Link("/backup", text)], "backup": []}) == []


@pytest.mark.parametrize("text", ["abc", "see more files"])
def test_any_other_text_is_a_question(text: str) -> None:
    assert [draft["query"] for draft in draft_questions({"home": [Link("/backup", text)], "backup": []})] == [text]
