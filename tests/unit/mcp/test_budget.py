"""Answers of the MCP server keep to their budgets, keep what matters most, and say what they leave out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otterwiki_semantic.core.token_count import count_tokens
from otterwiki_semantic.mcp.answers.base import STRUCTURED, BudgetError, ToolResponse, truncate
from otterwiki_semantic.mcp.answers.lists import pages_answer
from otterwiki_semantic.mcp.answers.page import note_answer, sections_answer
from otterwiki_semantic.mcp.answers.search import search_answer
from otterwiki_semantic.mcp.backend import BackendError
from otterwiki_semantic.mcp.errors import error_text

BUDGETS = st.integers(100, 3_000)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)
LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=200)
TEXTS = st.one_of(st.lists(LINES, max_size=30).map("\n".join), st.integers(1, 9_000).map(lambda size: "word " * size))

PLACES = count()


@pytest.fixture(autouse=True)
def structured() -> Iterator[None]:
    """Answer also with structured content, which has to keep to the budget as well."""
    before = STRUCTURED.set(True)
    yield
    STRUCTURED.reset(before)


def passage(path: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "path": path,
        "title": path,
        "section_path": [path, "Part"],
        "snippet": f"[{path}] {text}",
        "prefix_length": len(path) + 3,
        "text": f"[{path}] {text}",
        "text_start_line": 3,
        "text_end_line": 9,
        "page_word_count": 900,
        "chunk_index": next(PLACES),
        "relevant": True,
        "similarity": 0.5,
        "also_on": [],
        **more,
    }


def found(*passages: dict[str, Any]) -> dict[str, Any]:
    index = {"commit": "a", "head": "a", "pending_pages": 0}
    return {"results": list(passages), "confident": True, "index": index}


def page(text: str, sections: list[tuple[int, str]] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "path": "a/page",
        "title": "A page",
        "content": text,
        "revision": "0" * 40,
        "last_commit": {"date": "2026-01-31T00:00:00+00:00"},
        "links_to": [],
        "linked_from": [],
        "word_count": len(text.split()),
        "total_lines": text.count("\n") + 1,
        "sections": [
            {
                "heading": heading,
                "name": heading,
                "level": level,
                "path": [heading],
                "anchor": f"s-{number}",
                "start_line": number + 1,
                "end_line": number + 1,
                "word_count": 10,
            }
            for number, (level, heading) in enumerate(sections or [])
        ],
        **more,
    }


def fits(answer: ToolResponse, budget: int) -> bool:
    return (
        count_tokens(answer.text()) <= budget
        and count_tokens(json.dumps(answer.result().structured_content, ensure_ascii=False, separators=(",", ":"))) <= budget
    )


@given(st.text(), st.text())
def test_texts_together_cost_no_more_than_each_by_itself(one: str, other: str) -> None:
    assert max(count_tokens(one), count_tokens(other)) <= count_tokens(one + other) <= count_tokens(one) + count_tokens(other)


@pytest.mark.parametrize(("text", "tokens"), [("four", 100), ("日本語で", 400), ("äöü", 200)])
def test_text_that_is_not_ascii_costs_more(text: str, tokens: int) -> None:
    assert count_tokens(text * 100) == tokens


@given(TEXTS, st.integers(0, 500))
@example("one line\nand another one", 15)
@example("no line ends here at all", 15)
def test_a_cut_text_is_a_beginning_that_ends_with_a_line_or_a_word(text: str, size: int) -> None:
    cut = truncate(text, size)
    assert text.startswith(cut)
    assert len(cut) <= size
    assert cut == text or text[len(cut)].isspace() or not set(" \n") & set(text[size // 2 + 1 : size + 1])


@given(st.lists(st.tuples(NAMES, TEXTS), max_size=6), BUDGETS)
def test_a_search_keeps_to_its_budget_and_to_the_most_relevant(passages: list[tuple[str, str]], budget: int) -> None:
    try:
        answer = search_answer([found(*(passage(path, text) for path, text in passages))], budget)
    except BudgetError:
        return
    assert fits(answer, budget)
    assert [result.path for result in answer.results] == [path for path, _ in passages][: len(answer.results)]
    assert [result.is_cut for result in answer.results[:-1]] == [None] * (len(answer.results) - 1) or not answer.results
    missing = len(passages) - len(answer.results)
    assert (answer.left_out is not None) == bool(missing)
    assert not missing or answer.left_out.startswith(f"{missing} less relevant result")  # type: ignore[union-attr]


def test_a_passage_has_the_numbers_of_the_questions_that_it_answers() -> None:
    one, other, neither = (passage(path, "text") for path in ("one", "other", "neither"))
    near, neither = one | {"relevant": False}, neither | {"relevant": False}
    answer = search_answer([found(one, other), found(other, near, neither)], 3_000)
    assert [(each.path, each.questions) for each in answer.results] == [("one", [1]), ("other", [1, 2])]


def test_a_long_passage_is_cut_at_a_line_with_a_note() -> None:
    answer = search_answer([found(passage("a", "\n".join(["some words in a line"] * 300)))], 500)
    assert answer.results[0].is_cut
    assert "[a]" not in answer.text()
    assert answer.results[0].text.endswith("some words in a line")
    assert "(cut; read_note of this page with lines='3-9' has all of it)" in answer.text()


def test_where_passages_without_room_stand_is_told_each_section_once() -> None:
    shown = passage("best", "words " * 300)
    sections = [passage("other", "words " * 300, section_path=["Other", name]) for name in ("A", "B & C", "A")]
    answer = search_answer([found(shown, *sections, passage("best", "more " * 300))], 500)
    assert [each.path for each in answer.results] == ["best"]
    assert [each.section_path for each in answer.further or ()] == [["Other", "A"], ["Other", "B & C"]]
    assert 'path="other" section="Other > B &amp; C" lines="3-9"' in answer.text()
    assert "4 less relevant results left out" in answer.text()


def test_passages_without_room_are_not_said_to_be_missing() -> None:
    answer = search_answer([found(passage("a folder/with a long name/" * 5, "unbroken" * 500))], 170)
    assert answer.results == []
    assert answer.text().startswith("No passage fits into max_tokens.")
    assert "1 less relevant result left out; ask with a higher max_tokens" in answer.text()


def test_a_heading_as_long_as_a_page_takes_no_room_from_other_passages() -> None:
    url = "http://wiki.example/c/long#" + "x" * 8_000
    answer = search_answer([found(passage("c/long", "the best", url=url), passage("b", "the second"))], 1_500)
    assert [result.path for result in answer.results] == ["c/long", "b"]
    assert answer.results[0].url == "http://wiki.example/c/long"


def test_the_text_around_passages_goes_before_any_passage() -> None:
    around = {"context_before": "before " * 100, "context_after": "after " * 100}
    body = found(*(passage(name, "passage " * 100, **around) for name in "ab"))
    assert "after after" in search_answer([body], 2_000).text()
    less = search_answer([body], 700)
    assert [len(result.text.split()) for result in less.results] == [100, 100]
    assert less.left_out is not None
    assert less.left_out.startswith("the text around the passages left out")


SECTIONS = st.lists(st.tuples(st.integers(1, 6), NAMES), max_size=40)


@given(TEXTS, SECTIONS, st.lists(NAMES, max_size=30), BUDGETS)
def test_a_page_keeps_to_its_budget_and_says_which_lines_it_leaves_out(
    text: str, sections: list[tuple[int, str]], links: list[str], budget: int
) -> None:
    try:
        answer = note_answer(page(text, sections, links_to=links), budget)
    except BudgetError:
        return
    assert fits(answer, budget)
    shown = answer.parts[0].text if answer.parts else ""
    assert text.startswith(shown)
    if shown != text.rstrip("\n") and answer.left_out:
        last = answer.parts[0].end_line if answer.parts else 0
        rest = re.search(r"lines (\d+)-(\d+) left out", answer.left_out)
        if rest:
            assert int(rest[1]) in {last, last + 1}
            assert int(rest[2]) == text.count("\n") + 1


def test_a_page_too_long_gives_its_beginning_and_its_sections() -> None:
    text = "\n".join(f"line {number} of a long page" for number in range(1, 400))
    answer = note_answer(page(text, [(1, "First"), (2, "Second"), (2, "Third")]), 600)
    end = answer.parts[0].end_line
    assert 20 < end < 399
    assert answer.parts[0].text.endswith(f"line {end} of a long page")
    assert [entry.section for entry in answer.sections or ()] == ["First", "Second", "Third"]
    assert f"read_note(path, lines='{end + 1}-399')" in (answer.left_out or "")


def test_most_of_the_budget_is_for_the_text_of_a_page_and_not_for_its_sections() -> None:
    text = "\n".join(f"line {number} of a long page" for number in range(1, 400))
    answer = note_answer(page(text, [(2, f"Section number {number}") for number in range(100)]), 900)
    assert answer.sections
    assert count_tokens(answer.parts[0].text) > 300


def test_a_section_too_long_gives_the_sections_below_it() -> None:
    text = "\n".join(f"line {number} of a long page" for number in range(1, 400))
    part = {"section_path": ["Second"], "start_line": 2, "end_line": 5, "content": text}
    body = page(text, [(1, "First"), (2, "Second"), (3, "Third"), (3, "Fourth"), (4, "Fifth"), (1, "Last")], parts=[part])
    assert [entry.section for entry in note_answer(body, 600).sections or ()] == ["Third", "Fourth", "Fifth"]


def test_the_outermost_sections_are_kept() -> None:
    names = [(1 if number % 10 == 0 else 3, f"Heading number {number}") for number in range(200)]
    answer = sections_answer(page("text", names), 400)
    assert [entry.level for entry in answer.sections][:20].count(1) >= 10
    assert f"{200 - len(answer.sections)} deeper sections left out" in (answer.left_out or "")


@given(st.lists(st.tuples(NAMES, NAMES), max_size=60), BUDGETS, st.integers(0, 9))
def test_a_list_keeps_to_its_budget_and_says_where_it_goes_on(names: list[tuple[str, str]], budget: int, offset: int) -> None:
    pages = [
        {"path": path, "title": title, "category": None, "tags": ["t"], "updated": None, "word_count": 3}
        for path, title in names
    ]
    answer = pages_answer({"pages": pages, "total": offset + len(pages)}, offset, budget)
    assert fits(answer, budget)
    assert [entry.path for entry in answer.pages] == [path for path, _ in names][: len(answer.pages)]
    is_short = len(answer.pages) < len(names)
    assert (answer.next_offset == offset + len(answer.pages)) == is_short
    assert (answer.left_out is not None) == is_short


def test_a_budget_too_small_is_an_error_that_names_one_that_is_enough() -> None:
    body = page("text", path="folder/" * 60)
    with pytest.raises(BudgetError, match="max_tokens=100 is too little") as error:
        note_answer(body, 100)
    enough = int(re.findall(r"\d+", str(error.value))[-1])
    assert note_answer(body, enough).path == "folder/" * 60


def test_what_is_left_out_is_not_asked_for_in_a_circle() -> None:
    body = page("# A page\n\n" + "word " * 2_000 + "\nand on", links_to=["b"])
    cut_within = note_answer(body, 300)
    assert cut_within.left_out is not None
    assert "ask with a higher max_tokens, or read_note(path, lines='3-4')" in cut_within.left_out
    assert "its links" in cut_within.left_out
    again = body | {"parts": [{"section_path": [], "start_line": 3, "end_line": 4, "content": "word " * 2_000 + "\nand on"}]}
    stuck = note_answer(again, 300)
    assert stuck.left_out is not None
    assert "read_note" not in stuck.left_out
    old = note_answer(body, 300, "abcdef")
    assert old.left_out is not None
    assert "read_note(path, lines='3-4', revision='abcdef')" in old.left_out


def test_a_list_of_an_index_that_is_being_built_says_how_far_it_is() -> None:
    building: dict[str, Any] = {"commit": None, "head": "a" * 40, "pending_pages": 5}
    answer = pages_answer({"pages": [], "total": 0, "index": building}, 0, 1_500)
    assert "being built" in answer.text()
    assert answer.notice is not None
    pages, chunks = {"pages_done": 1, "pages_total": 5, "pages_by_words": 5}, {"chunks_done": 2, "chunks_total": 8}
    building["progress"] = {**pages, **chunks, "seconds_left": 90.0}
    answer = pages_answer({"pages": [], "total": 0, "index": building}, 0, 1_500)
    assert "all 5 pages by words, 25% by meaning, about 1 min 30 s left" in answer.text()


@given(st.lists(NAMES, min_size=1, max_size=300))
def test_an_error_names_what_there_is_within_bounds(names: list[str]) -> None:
    text = error_text(BackendError("the wiki's own words", "section_unknown", names))
    assert count_tokens(text) < 700
    assert "the wiki's own words" not in text
    shown = text.split("\n<wiki-text")[1].count("\n") - 1 - text.count("more; list_sections")
    assert text.count("more; list_sections") == (shown < len(names))
