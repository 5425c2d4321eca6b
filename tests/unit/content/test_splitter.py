"""Dividing text that is too long for a chunk."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.chunking.sizes import ByteCounter, count_words
from otterwiki_semantic.content.chunking.splitter import PARAGRAPH, Segment, join, measure, split_block, split_in_half
from otterwiki_semantic.core.chunk_profiles import SizeUnit
from otterwiki_semantic.core.records import Block, BlockKind, Line, Section, UnitKind

SECTION = Section(1, "Heading", "heading", ("Heading",), 1, 9, ())


def block(kind: BlockKind, *lines: str) -> Block:
    return Block(kind, tuple(Line(line, number) for number, line in enumerate(lines, 1)))


def segment(text: str) -> Segment:
    return Segment(text, PARAGRAPH, 3, 5, SECTION, UnitKind.SENTENCE)


def test_prose_is_split_between_sentences() -> None:
    prose = block(BlockKind.PROSE, "One. Two goes", 'on here. "Three!" (Four, e.g. this.) 五。六')
    segments = list(split_block(prose, SECTION))
    assert [each.text for each in segments] == ["One.", "Two goes on here.", '"Three!"', "(Four, e.g. this.)", "五。", "六"]
    assert [(each.first_line, each.last_line) for each in segments] == [(1, 1), (1, 2), *[(2, 2)] * 4]
    assert join(segments)[0] == 'One. Two goes on here. "Three!" (Four, e.g. this.) 五。六'


def test_code_is_split_between_lines() -> None:
    segments = list(split_block(block(BlockKind.CODE, "a. b", "c"), SECTION))
    assert [(each.text, each.separator, each.first_line) for each in segments] == [("a. b", PARAGRAPH, 1), ("c", "\n", 2)]


@pytest.mark.parametrize(
    ("text", "halves"),
    [
        ("one two three four", ["one two", "three four"]),
        ("one twothreefourfive", ["one", "twothreefourfive"]),
        ("onetwothreefour five", ["onetwothreefour", "five"]),
        ("abcd", ["ab", "cd"]),
    ],
)
def test_a_segment_is_split_between_words_if_it_has_several(text: str, halves: list[str]) -> None:
    parts = split_in_half(segment(text))
    assert [part.text for part in parts] == halves
    assert join(parts)[0] == text


@given(st.text("ab \n", min_size=2, max_size=40).filter(lambda text: text.strip() == text))
def test_halves_are_shorter_and_lose_no_letter(text: str) -> None:
    parts = split_in_half(segment(text))
    assert all(len(part.text) < len(text) for part in parts)
    assert "".join("".join(part.text for part in parts).split()) == "".join(text.split())


def test_a_long_run_without_spaces_counts_as_several_words() -> None:
    (measured,) = measure([segment("x" * 500)], ByteCounter(), SizeUnit.WORDS)
    assert (measured.size, measured.tokens) == (10, 500)
    (measured,) = measure([replace(segment("é b"), separator=" ")], ByteCounter(), SizeUnit.CHARACTERS)
    assert (measured.size, measured.tokens) == (4, 4)


def test_words_have_a_letter_or_a_digit() -> None:
    assert count_words("two words - and 3 … ü ??") == 5
