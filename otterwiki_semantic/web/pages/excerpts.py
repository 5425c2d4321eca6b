"""What is shown of a passage: the part of it that has most of the question's words, and where these stand in it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

_BLANK_LINES = re.compile(r"\n\s*\n")
_MOST_CHARACTERS = 360
_LEAD = 60
"""Characters shown before the first word that matches."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a shown text, and whether it is one of the words that were asked for."""

    text: str
    is_match: bool = False


def excerpt(text: str, start: int, highlights: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    """Give at most some 360 characters of `text` from `start` on, cut between words.

    `highlights` are places in `text`, in order.
    """
    inside = [(begin, end) for begin, end in highlights if begin >= start]
    first, last = _window(text, start, inside)
    pieces = [Piece("… ")] if first > start else []
    at = first
    for begin, end in inside:
        if at <= begin and end <= last:
            pieces += [Piece(text[at:begin]), Piece(text[begin:end], is_match=True)]
            at = end
    pieces.append(Piece(text[at:last] + (" …" if last < len(text.rstrip()) else "")))
    return tuple(Piece(_BLANK_LINES.sub("\n", piece.text), piece.is_match) for piece in pieces if piece.text)


def _window(text: str, start: int, highlights: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Give where the part with most matches begins and ends; the first of those with as many."""
    starts, ends = [begin for begin, _ in highlights], [end for _, end in highlights]

    def matches_from(first: int) -> int:
        return bisect_right(ends, first + _MOST_CHARACTERS) - bisect_left(starts, first)

    begins = [start, *(max(start, begin - _LEAD) for begin, _ in highlights)]
    first = _start_of_word(text, max(begins, key=lambda begin: (matches_from(begin), -begin)), start)
    if len(text) - first <= _MOST_CHARACTERS:
        return first, len(text)
    return first, _end_of_word(text, first + _MOST_CHARACTERS)


def _start_of_word(text: str, place: int, least: int) -> int:
    """Give where a word begins at a place or soon after it; the place itself in a text without spaces."""
    if place <= least:
        return least
    space = next((at for at in range(place - 1, min(place + _LEAD // 2, len(text))) if text[at].isspace()), None)
    return place if space is None else space + 1


def _end_of_word(text: str, place: int) -> int:
    """Give where a word ends at a place or soon before it; the place itself in a text without spaces."""
    return next((at for at in range(place, place - _LEAD // 2, -1) if text[at].isspace()), place)


_MOST_WORDS, _LEAST_WORDS = 8, 2
_WORD = re.compile(r"\S+")
_BREAK = re.compile(r"\n| \| ")
"""A phrase must not go over the end of a block or of a table's cell."""


def text_fragment(text: str, start: int, highlights: Sequence[tuple[int, int]]) -> str:
    """Give the directive that marks a passage, to be put behind an address's fragment; empty if there are no words to go by.

    The phrase is around the first of the `highlights` behind `start`, else the first one there (both are places in `text`).
    """
    first = next((begin for begin, _ in highlights if begin >= start), None)
    pieces = _pieces(text, start)
    piece = next(((begin, end) for begin, end in pieces if first is not None and begin <= first < end), None)
    if piece is None:
        piece = next((piece for piece in pieces if len(_WORD.findall(text, *piece)) >= _LEAST_WORDS), None)
    if piece is None:
        return ""
    words = list(_WORD.finditer(text, *piece))
    at = next((number for number, word in enumerate(words) if first is not None and word.end() > first), 0)
    at = max(0, min(at - _MOST_WORDS // 4, len(words) - _MOST_WORDS))
    chosen = words[at : at + _MOST_WORDS]
    return f":~:text={_encoded(text[chosen[0].start() : chosen[-1].end()])}" if chosen else ""


def _pieces(text: str, start: int) -> list[tuple[int, int]]:
    """Give the pieces of a text from `start` on that stand in one block each."""
    ends = [(match.start(), match.end()) for match in _BREAK.finditer(text, start)]
    begins = [start, *(end for _, end in ends)]
    return list(zip(begins, [*(begin for begin, _ in ends), len(text)], strict=True))


def _encoded(phrase: str) -> str:
    """Give a phrase as a directive takes it: hyphens have a meaning there."""
    return quote(" ".join(phrase.split()), safe="").replace("-", "%2D")
