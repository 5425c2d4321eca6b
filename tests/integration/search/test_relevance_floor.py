"""How often an answer is wrong about having one, on the questions that the floor was fitted on."""

from __future__ import annotations

import json
from typing import Any

from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.paths import DATA


def questions(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DATA / f"{name}_questions.json").read_text(encoding="utf-8"))
    return found


def share_flagged(index: IndexEngine, asked: list[str]) -> float:
    answers = [index.search([question], SearchOptions())[0] for question in asked]
    return sum(not answer.confident for answer in answers) / len(answers)


def test_few_answerable_questions_are_flagged(demo: IndexEngine) -> None:
    answerable = [entry["query"] for entry in questions("demo") if entry["relevant"]]
    assert len(answerable) >= 80
    assert share_flagged(demo, answerable) <= 0.05


def test_most_unanswerable_questions_are_flagged(demo: IndexEngine) -> None:
    elsewhere = [entry["query"] for entry in questions("docs")]
    nowhere = [entry["query"] for entry in questions("demo") if not entry["relevant"]]
    assert len(nowhere) >= 80
    assert share_flagged(demo, nowhere) >= 0.9
    assert share_flagged(demo, elsewhere) >= 0.9


def test_the_judged_page_is_among_the_first_three(demo: IndexEngine) -> None:
    judged = [entry for entry in questions("demo") if entry["relevant"]]
    options = SearchOptions(n=3, max_chunks_per_page=1)
    found = [{hit.path for hit in demo.search([each["query"]], options)[0].results} & set(each["relevant"]) for each in judged]
    assert sum(map(bool, found)) / len(found) >= 0.95
