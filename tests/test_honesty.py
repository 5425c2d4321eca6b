"""How often an answer is wrong about having one, on the questions that the floor was fitted on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.run import PAGES
from otterwiki_semantic.config import Settings
from otterwiki_semantic.local_index import LocalIndex
from otterwiki_semantic.records import SearchOptions
from tests.live_wiki import eventually, make_repository

DATA = Path(__file__).parent / "data"


def questions(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DATA / f"{name}_questions.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalIndex]:
    place = tmp_path_factory.mktemp("honesty")
    pages: dict[str, str | bytes] = {str(path.relative_to(PAGES)): path.read_bytes() for path in PAGES.rglob("*.md")}
    index = LocalIndex(Settings(make_repository(place / "repository", pages), place / "index"))
    index.start()
    eventually(lambda: index.status().status == "ready" and index.status().index.pending_pages == 0)
    yield index
    index.close()


def share_flagged(index: LocalIndex, asked: list[str]) -> float:
    answers = [index.search([question], SearchOptions())[0] for question in asked]
    return sum(not answer.confident for answer in answers) / len(answers)


def test_few_answerable_questions_are_flagged(demo: LocalIndex) -> None:
    answerable = [entry["query"] for entry in questions("demo") if entry["relevant"]]
    assert len(answerable) >= 80
    assert share_flagged(demo, answerable) <= 0.05


def test_most_unanswerable_questions_are_flagged(demo: LocalIndex) -> None:
    elsewhere = [entry["query"] for entry in questions("docs")]
    nowhere = [entry["query"] for entry in questions("demo") if not entry["relevant"]]
    assert len(nowhere) >= 80
    assert share_flagged(demo, nowhere) >= 0.9
    assert share_flagged(demo, elsewhere) >= 0.9


def test_the_judged_page_is_among_the_first_three(demo: LocalIndex) -> None:
    judged = [entry for entry in questions("demo") if entry["relevant"]]
    options = SearchOptions(n=3, max_chunks_per_page=1)
    found = [{hit.path for hit in demo.search([entry["query"]], options)[0].hits} & set(entry["relevant"]) for entry in judged]
    assert sum(map(bool, found)) / len(found) >= 0.95
