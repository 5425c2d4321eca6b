"""Addresses that lead to a passage: a text fragment lets the browser go to its words in the page, and mark them.

A text fragment (``#heading:~:text=some%20words``) is defined by the WICG's draft "URL Fragment Text Directives"; a browser that
does not know it, or does not find the words, goes to the heading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

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
