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
    """Return about 360 characters of `text` after `start`, cut between words: with the best sentence, or else most matches.

    `highlights` and `best_sentence` are offsets in `text`, the highlights in order.
    """
    matches = [(begin, end) for begin, end in highlights if begin >= start]
    first, last = excerpt_window(text, start, matches, best_sentence, _MAX_CHARACTERS)
    is_near = best_sentence is not None and not any(first <= begin < last for begin, _ in matches)
    marked = [best_sentence] if best_sentence and is_near else matches
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
_MARKER = re.compile(r"\A\s*+(?:[-*+]|\d{1,9}[.)])\s++")
_CELL = " | "
_BREAK = re.compile(r"\n| \| ")
"""A phrase must not cross the end of a block or of a table cell."""


def text_fragment(
    text: str, start: int, highlights: Sequence[tuple[int, int]], best_sentence: tuple[int, int] | None = None
) -> str:
    """Return the text directive (``:~:text=``) for the fragment of a URL; empty for a passage without words.

    It marks the best sentence, item or row, or else a phrase around the first of the `highlights` after `start`, or the first
    phrase there; all are offsets in `text`.
    """
    if best_sentence is not None and (directive := _whole(text[slice(*best_sentence)])):
        return directive
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


def _whole(unit: str) -> str:
    """Return the directive that marks a whole sentence, item or row, which it names by its ends if it is long."""
    cells = [cell.strip() for cell in _MARKER.sub("", unit).split(_CELL) if cell.strip()]
    if len(cells) > 1:
        return f":~:text={_encoded(cells[0])},{_encoded(cells[-1])}"
    words = cells[0].split() if cells else []
    if len(words) <= _MAX_WORDS:
        return f":~:text={_encoded(' '.join(words))}" if words else ""
    half = _MAX_WORDS // 2
    return f":~:text={_encoded(' '.join(words[:half]))},{_encoded(' '.join(words[-half:]))}"


def _blocks(text: str, start: int) -> list[tuple[int, int]]:
    ends = [(match.start(), match.end()) for match in _BREAK.finditer(text, start)]
    begins = [start, *(end for _, end in ends)]
    return list(zip(begins, [*(begin for begin, _ in ends), len(text)], strict=True))


def _encoded(phrase: str) -> str:
    """Encode a phrase for a text directive, where hyphens have a meaning."""
    return quote(" ".join(phrase.split()), safe="").replace("-", "%2D")
