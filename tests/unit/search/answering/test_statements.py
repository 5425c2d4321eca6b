"""An answer's text divided into statements with their sources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.search.answering.statements import (
    MAX_CHARACTERS,
    MAX_STATEMENTS,
    Statement,
    StatementKind,
    StatementParser,
)

FRAGMENTS = (
    *(
        "Backups run. ",
        "[1]",
        " [2]",
        "[^1]",
        "【1】",
        "- ",
        "1. ",
        "# ",
        "`",
        "**",
        "_",
        "<b>",
        "</b>",
        "[x](y)",
        "![i](u)",
        "&lt;",
    ),
    *("e.g. ", "日本語。", "次。", "> ", "(Source 1)", "[", "a", "B", " ", ".", "!", ":", "]", "(", ")", "<", "http://x.y/z "),
    *("\n", "\n\n", "\r\n", "\r", "```\n", "| a | b |\n", "|---|---|\n", "\u200b", "\u202e", "\x00"),
)
MARKDOWN = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)


def parsed(text: str, sources: int = 3) -> list[Statement]:
    parser = StatementParser(sources)
    return [*parser.feed(text), *parser.finish()]


def pairs(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(statement.text, statement.cited) for statement in parsed(text)]


@pytest.mark.parametrize(
    ("written", "cited"),
    [
        ("It runs at night [1].", (1,)),
        ("It runs at night. [1]", (1,)),
        ("It runs at night.[1]", (1,)),
        ("It runs at night [1, 2].", (1, 2)),
        ("It runs at night [1][2].", (1, 2)),
        ("It runs at night [2] [1].", (2, 1)),
        ("It runs at night [1-3].", (1, 2, 3)),
        ("It runs at night [^2].", (2,)),
        ("It runs at night【1】.", (1,)),
        ("It runs at night【3†source】.", (3,)),
        ("It runs at night [Source 1].", (1,)),
        ("It runs at night [Source 1, Source 2].", (1, 2)),
        ("It runs at night (Source 2).", (2,)),
        ("It runs at night [1](https://evil.example).", (1,)),
        ("It runs at night <sup>[1]</sup>.", (1,)),
        ("It runs at night [1][1].", (1,)),
        ("It runs at night [4].", ()),
        ("It runs at night [0].", ()),
        ("It runs at night.", ()),
    ],
)
def test_marks_are_read_in_all_the_ways_models_write_them(written: str, cited: tuple[int, ...]) -> None:
    assert pairs(written) == [("It runs at night.", cited)]


def test_a_number_in_round_brackets_is_text() -> None:
    assert pairs("Press the button (1) twice [2].") == [("Press the button (1) twice.", (2,))]


def test_a_sentence_without_a_mark_of_its_own_names_no_source() -> None:
    assert pairs("First. Second. Third [1].") == [("First.", ()), ("Second.", ()), ("Third.", (1,))]


def test_sentences_of_a_paragraph_share_its_block() -> None:
    assert [statement.block for statement in parsed("One. Two.\n\nThree.")][0:2] == [0, 0]
    assert parsed("One. Two.\n\nThree.")[2].block > 0


def test_a_sentence_is_returned_as_soon_as_the_next_one_begins() -> None:
    parser = StatementParser(1)
    assert parser.feed("The first one is done [1]. ") == []
    assert [statement.text for statement in parser.feed("T")] == ["The first one is done."]


def test_items_and_rows_are_statements() -> None:
    found = parsed("- one [1]\n- two. More of it [2]\n\n| kind | kept |\n|---|---|\n| nightly | 14 [3] |\n")
    assert [(each.text, each.cited) for each in found] == [
        ("one", (1,)),
        ("two. More of it", (2,)),
        ("kind: nightly; kept: 14", (3,)),
    ]
    assert {each.kind for each in found} == {StatementKind.ITEM}
    assert found[0].block == found[1].block != found[2].block


@pytest.mark.parametrize(
    "written", ["```sh\nls\n```\n[2]", "```sh\nls\n``` [2]", "```\nls\n```\n\n[2]\n", "Run this [2]:\n\n```\nls\n```"]
)
def test_code_has_the_mark_after_it_or_that_of_its_announcement(written: str) -> None:
    code = parsed(written)[-1]
    assert (code.kind, code.text, code.cited) == (StatementKind.CODE, "ls", (2,))


def test_marks_within_code_are_code() -> None:
    assert parsed("Use `a[1]` here.")[0] == Statement("Use a[1] here.", StatementKind.SENTENCE, 0, ())


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("See [the page](https://evil.example).", "See the page."),
        ("See ![a](https://evil.example/x.png) it.", "See it."),
        ("<script>x</script> <b>Bold</b> text.", "x Bold text."),
        ("&lt;img src=x&gt; text.", "text."),
        ("A **bold** and _slanted_ `code`.", "A bold and slanted code."),
        ("See [[Machines|/machines]].", "See Machines."),
        ("Right\u202eleft\u200b.", "Rightleft."),
        ("Snake max_chunks_per_page stays.", "Snake max_chunks_per_page stays."),
    ],
)
def test_only_text_is_left_of_markdown_and_html(written: str, text: str) -> None:
    assert [statement.text for statement in parsed(written)] == [text]


def test_headings_rules_and_definitions_are_dropped() -> None:
    assert pairs("# Backups are kept 90 days\n\n---\n[1]: https://evil.example\n\nYes, they are [1].") == [
        ("Yes, they are.", (1,))
    ]


def test_abbreviations_end_no_sentence() -> None:
    found = pairs("Use a tool, e.g. Restic, for it [1]. Then stop.")
    assert [text for text, _ in found] == ["Use a tool, e.g. Restic, for it.", "Then stop."]


def test_sentences_of_other_scripts_are_told_apart() -> None:
    assert pairs("毎晩動きます。[1]保存期間は14日です。【2】") == [("毎晩動きます。", (1,)), ("保存期間は14日です。", (2,))]


def test_answers_are_bounded() -> None:
    assert len(parsed("One more. " * 2_000)) == MAX_STATEMENTS
    assert max(len(each.text) for each in parsed("__a" * 13_000)) < 10_000
    assert sum(len(each.text) for each in parsed("word " * 20_000)) <= MAX_CHARACTERS


@given(MARKDOWN, st.integers(0, 5))
def test_feeding_character_by_character_changes_nothing(text: str, sources: int) -> None:
    parser = StatementParser(sources)
    one_by_one = [statement for character in text for statement in parser.feed(character)]
    assert [*one_by_one, *parser.finish()] == parsed(text, sources)


@given(MARKDOWN, st.integers(0, 3))
def test_only_existing_sources_are_cited_and_nothing_invisible_is_left(text: str, sources: int) -> None:
    for statement in parsed(text, sources):
        assert all(1 <= number <= sources for number in statement.cited)
        assert len(set(statement.cited)) == len(statement.cited)
        assert statement.text.strip()
        assert not set(statement.text) & {"\u200b", "\u202e", "\x00", "\ue000", "\ue001"}
