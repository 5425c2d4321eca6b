"""The token budget of an answer: count tokens, truncate texts."""

from __future__ import annotations

import math

DEFAULT_MAX_TOKENS = 1_500
SEARCH_MAX_TOKENS = 900
"""Of the passages found: what they leave of a small budget is for the section that is read next."""
MIN_MAX_TOKENS, MAX_MAX_TOKENS = 100, 100_000
_ASCII_PER_TOKEN, _OTHER_BYTES_PER_TOKEN = 4, 3


class BudgetError(Exception):
    """Not even the smallest answer fits into the budget; the text says which budget is needed."""


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text: one per 4 ASCII characters, one per 3 UTF-8 bytes of anything else.

    An umlaut costs two thirds of a token, a Chinese character one. Models differ; what matters is that longer text never costs
    less, and that two texts together never cost more than both separately.
    """
    plain = len(text) if text.isascii() else sum(character < "\x80" for character in text)
    other = 0 if plain == len(text) else len(text.encode("utf-8", "surrogatepass")) - plain
    return math.ceil(plain / _ASCII_PER_TOKEN + other / _OTHER_BYTES_PER_TOKEN)


def truncate(text: str, size: int) -> str:
    """Truncate a text to at most `size` characters, at the end of a line or else of a word, if that keeps half of them."""
    if len(text) <= size:
        return text
    room = text[: max(size, 0) + 1]
    for mark in ("\n", " "):
        end = room.rfind(mark)
        if end >= max(size, 1) / 2:
            return text[:end]
    return text[: max(size, 0)]
