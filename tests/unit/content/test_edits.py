"""Changes to the text of a page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.markdown import parse_markdown
from otterwiki_semantic.content.pages import append_after, count_occurrences, saved_text, unified_diff
from otterwiki_semantic.content.pages.outline import outline

NAMES = "old", "new"
LINES = st.lists(
    st.sampled_from(["# A", "## B", "### C", "text", "", "```", "- item", "   ", "    code", "a\u2028b", "c\x0cd", "\x85"]),
    max_size=20,
)


def words_of(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]


@given(lines=LINES, place=st.integers(0, 19), newline=st.sampled_from(["\n", "\r\n", "\r"]))
def test_an_addition_comes_at_the_end_of_a_section_and_nothing_else_changes(lines: list[str], place: int, newline: str) -> None:
    text = "".join(line + newline for line in lines)
    sections = [each for each in outline(parse_markdown(text), len(lines)) if each.level]
    end = sections[place % len(sections)].end_line if sections else len(lines)
    added = append_after(text, end, "NEW").split("\n")
    assert words_of(added) == words_of([*lines[:end], "NEW", *lines[end:]])
    where = added.index("NEW")
    assert where == 0 or (not added[where - 1].strip() and (where == 1 or added[where - 2].strip()))


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("# A\n\na\n\n## B\n", 4, "# A\n\na\n\nNEW\n\n## B\n"),
        ("# A\n", 1, "# A\n\nNEW\n"),
        ("", 1, "NEW\n"),
        ("a\n\n\n", 4, "a\n\nNEW\n"),
        ("# A\n## B\nb\n", 1, "# A\n\nNEW\n\n## B\nb\n"),
        ("    code\n", 1, "    code\n\nNEW\n"),
        ("# A\n\n    code\n", 1, "# A\n\nNEW\n\n    code\n"),
    ],
)
def test_there_is_one_empty_line_on_each_side(text: str, line: int, expected: str) -> None:
    assert append_after(text, line, "\nNEW\n\n") == expected


@pytest.mark.parametrize(
    ("text", "addition", "expected"),
    [
        ("# A\n\n- a\n- b\n", "- c", "# A\n\n- a\n- b\n- c\n"),
        ("1. a\n\n2. b\n", "\n3. c\n   more\n", "1. a\n\n2. b\n3. c\n   more\n"),
        ("- a\n  - b\n", "- [ ] c", "- a\n  - b\n- [ ] c\n"),
        ("| a |\n|---|\n| 1 |\n\n", "| 2 |\n| 3 |", "| a |\n|---|\n| 1 |\n| 2 |\n| 3 |\n"),
        ("| a |\n|---|\n| 1 |\n", "| b |\n| :- |\n| 2 |", "| a |\n|---|\n| 1 |\n\n| b |\n| :- |\n| 2 |\n"),
        ("- a\n", "1. b", "- a\n\n1. b\n"),
        ("- a\n", "* b", "- a\n\n* b\n"),
        ("text\n", "- a", "text\n\n- a\n"),
        ("- a\n", "text", "- a\n\ntext\n"),
        ("- a\n", "---", "- a\n\n---\n"),
        ("", "- a", "- a\n"),
    ],
)
def test_a_list_and_a_table_go_on(text: str, addition: str, expected: str) -> None:
    assert append_after(text, len(text.split("\n")), addition) == expected
    assert append_after(f"{text}\n## B\n", len(text.split("\n")), addition) == f"{expected}\n## B\n"


def test_occurrences_that_overlap_are_several() -> None:
    assert count_occurrences("aaa", "aa") == 2
    assert count_occurrences("a.c abc", "a.c") == 1
    assert count_occurrences("a\nb\n", "a\nb") == 1
    assert count_occurrences("abc", "") == 0


@given(text=st.text(alphabet="ab \t\r\n\x0c\u2028"), part=st.text(alphabet="ab \n", min_size=1, max_size=3))
def test_a_part_occurs_once_only_if_it_begins_at_one_place(text: str, part: str) -> None:
    places = sum(text.startswith(part, start) for start in range(len(text)))
    assert min(count_occurrences(text, part), 2) == min(places, 2)


@given(st.text(alphabet="a \t\r\n\x0c"))
def test_a_saved_text_is_saved_again_as_it_is(text: str) -> None:
    assert saved_text(saved_text(text)) == saved_text(text)
    assert saved_text(text).endswith("\n")
    assert "\r" not in saved_text(text)


def test_a_saved_text_keeps_its_indentation() -> None:
    assert saved_text(" \n\n    code\r\n\r\ntext  \n\n") == "    code\n\ntext\n"


def test_a_diff_shows_what_changed() -> None:
    assert unified_diff("a\r\nb\n", "a\nc\n", NAMES) == "--- old\n+++ new\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert unified_diff("a", "b", NAMES).endswith("-a\n+b\n")
    assert unified_diff("a\u2028b\n", "a\u2028c\n", NAMES).endswith("-a\u2028b\n+a\u2028c\n")
    assert not unified_diff("a\n", "a\n", NAMES)


def test_long_texts_are_not_compared() -> None:
    assert not unified_diff("a\n" * 5_001, "b\n", NAMES)
    assert unified_diff("a\n" * 5_000, "b\n", NAMES)
