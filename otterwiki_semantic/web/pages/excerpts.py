"""Excerpts of passages with highlights, and text fragments for links to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from otterwiki_semantic.content import excerpt_window

_LINE_BREAK = re.compile(r"(?:(?<![^\S\n])[^\S\n]++)?\n\s*+")
_DOT = " · "
"""What separates headings, paragraphs and rows."""
_MAX_CHARACTERS = 360


@dataclass(frozen=True, slots=True)
class Span:
    """A part of an excerpt, and whether it matches the query."""

    text: str
    is_match: bool = False
    """Whether it has words of the query."""
    is_near: bool = False
    """Whether it is the sentence nearest in meaning, in a passage without words of the query."""


def excerpt(
    text: str, start: int, highlights: Sequence[tuple[int, int]], best_sentence: tuple[int, int] | None = None
) -> tuple[Span, ...]:
    """Return about 360 characters of `text` after `start`, cut between words: with most matches, or else the best sentence.

    `highlights` and `best_sentence` are offsets in `text`, the highlights in order.
    """
    matches = [(begin, end) for begin, end in highlights if begin >= start]
    is_near = not matches and best_sentence is not None
    marked = [best_sentence] if best_sentence and is_near else matches
    first, last = excerpt_window(text, start, matches, best_sentence, _MAX_CHARACTERS)
    spans = [Span("… ")] if text[start:first].strip() else []
    at = first
    for begin, end in marked:
        if at <= begin < last and (end <= last or is_near):
            spans += [Span(text[at:begin]), Span(text[begin : min(end, last)], is_match=not is_near, is_near=is_near)]
            at = min(end, last)
    spans.append(Span(text[at:last].rstrip() + (" …" if last < len(text.rstrip()) else "")))
    return tuple(replace(span, text=_LINE_BREAK.sub(_DOT, span.text)) for span in spans if span.text)


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
