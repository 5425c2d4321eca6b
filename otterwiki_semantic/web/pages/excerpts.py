"""Excerpts of passages with highlights, and text fragments for links to them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

_BLANK_LINES = re.compile(r"\n\s*\n")
_MAX_CHARACTERS = 360
_LEAD = 60
"""Characters shown before the first match."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of an excerpt, and whether it matches the query."""

    text: str
    is_match: bool = False


def excerpt(text: str, start: int, highlights: Sequence[tuple[int, int]]) -> tuple[Span, ...]:
    """Return about 360 characters of `text` after `start` with most of the matches, cut between words.

    `highlights` are offsets in `text`, in order.
    """
    inside = [(begin, end) for begin, end in highlights if begin >= start]
    first, last = _window(text, start, inside)
    spans = [Span("… ")] if first > start else []
    at = first
    for begin, end in inside:
        if at <= begin and end <= last:
            spans += [Span(text[at:begin]), Span(text[begin:end], is_match=True)]
            at = end
    spans.append(Span(text[at:last] + (" …" if last < len(text.rstrip()) else "")))
    return tuple(Span(_BLANK_LINES.sub("\n", span.text), span.is_match) for span in spans if span.text)


def _window(text: str, start: int, highlights: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the start and end of the window with most matches, the first one if several have as many."""
    starts, ends = [begin for begin, _ in highlights], [end for _, end in highlights]

    def matches_from(first: int) -> int:
        return bisect_right(ends, first + _MAX_CHARACTERS) - bisect_left(starts, first)

    begins = [start, *(max(start, begin - _LEAD) for begin, _ in highlights)]
    first = _start_of_word(text, max(begins, key=lambda begin: (matches_from(begin), -begin)), start)
    if len(text) - first <= _MAX_CHARACTERS:
        return first, len(text)
    return first, _end_of_word(text, first + _MAX_CHARACTERS)


def _start_of_word(text: str, place: int, least: int) -> int:
    """Return the start of a word at or soon after a place; the place itself in text without spaces."""
    if place <= least:
        return least
    space = next((at for at in range(place - 1, min(place + _LEAD // 2, len(text))) if text[at].isspace()), None)
    return place if space is None else space + 1


def _end_of_word(text: str, place: int) -> int:
    """Return the end of a word at or soon before a place; the place itself in text without spaces."""
    return next((at for at in range(place, place - _LEAD // 2, -1) if text[at].isspace()), place)


_MAX_WORDS, _MIN_WORDS = 8, 2
_WORD = re.compile(r"\S+")
_BREAK = re.compile(r"\n| \| ")
"""A phrase must not cross the end of a block or of a table cell."""


def text_fragment(text: str, start: int, highlights: Sequence[tuple[int, int]]) -> str:
    """Return the text directive (``:~:text=``) for the fragment of a URL, with a phrase of the passage; empty if it has none.

    The phrase is around the first of the `highlights` after `start`, or else the first one there; both are offsets in `text`.
    """
    first = next((begin for begin, _ in highlights if begin >= start), None)
    blocks = _blocks(text, start)
    block = next(((begin, end) for begin, end in blocks if first is not None and begin <= first < end), None)
    if block is None:
        block = next((block for block in blocks if len(_WORD.findall(text, *block)) >= _MIN_WORDS), None)
    if block is None:
        return ""
    words = list(_WORD.finditer(text, *block))
    at = next((number for number, word in enumerate(words) if first is not None and word.end() > first), 0)
    at = max(0, min(at - _MAX_WORDS // 4, len(words) - _MAX_WORDS))
    chosen = words[at : at + _MAX_WORDS]
    return f":~:text={_encoded(text[chosen[0].start() : chosen[-1].end()])}" if chosen else ""


def _blocks(text: str, start: int) -> list[tuple[int, int]]:
    ends = [(match.start(), match.end()) for match in _BREAK.finditer(text, start)]
    begins = [start, *(end for _, end in ends)]
    return list(zip(begins, [*(begin for begin, _ in ends), len(text)], strict=True))


def _encoded(phrase: str) -> str:
    """Encode a phrase for a text directive, where hyphens have a meaning."""
    return quote(" ".join(phrase.split()), safe="").replace("-", "%2D")
