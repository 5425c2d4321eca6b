"""The demo keeps its promises: varied pages, and questions that share no important word with the page that answers them."""

from __future__ import annotations

import re

import pytest

from demo.run import PAGES, QUESTIONS
from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.daemon.engine import IndexEngine

ANSWERS = {
    "recover an erased directory": "procedures/backup",
    "sprinkler schedule for vegetables": "garden/irrigation",
    "protect plumbing from freezing": "services/automation",
}
SMALL_WORDS = {"a", "an", "for", "from"}


def stem(word: str) -> str:
    return re.sub(r"(ing|ed|es|s|ies|y)$", "", word.lower())


def test_there_are_enough_pages_of_every_kind(demo: IndexEngine) -> None:
    sources = [path.read_text(encoding="utf-8") for path in PAGES.rglob("*.md")]
    assert len(sources) == demo.status().pages >= 15
    assert sum(source.startswith("---\n") for source in sources) >= 10
    assert sum("```" in source for source in sources) >= 5
    assert sum("|---" in source for source in sources) >= 5
    assert max(len(source.split()) for source in sources) > 500


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_by_a_page_that_has_none_of_its_words(demo: IndexEngine, question: str) -> None:
    (hit,) = demo.search([question], SearchOptions(1, 1))[0].results
    assert hit.path == ANSWERS[question]
    words = {stem(word) for word in re.findall(r"\w+", (PAGES / f"{hit.path}.md").read_text(encoding="utf-8"))}
    assert {stem(word) for word in question.split() if word not in SMALL_WORDS} & words == set()
