"""Questions for `eval`, drafted from the wiki's links."""

from __future__ import annotations

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
