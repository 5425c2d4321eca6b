"""What is shown of a passage: the part of it that has most of the question's words, and where these stand in it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

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
