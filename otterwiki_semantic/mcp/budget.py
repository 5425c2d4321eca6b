"""The token budget of an answer: count tokens, truncate texts."""

from __future__ import annotations

DEFAULT_MAX_TOKENS = 1_500
SEARCH_MAX_TOKENS = 900
"""Of the passages found: what they leave of a small budget is for the section that is read next."""
MIN_MAX_TOKENS, MAX_MAX_TOKENS = 100, 100_000


class BudgetError(Exception):
    """Not even the smallest answer fits into the budget; the text says which budget is needed."""


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
