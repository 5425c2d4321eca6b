"""The token budget of an answer: count tokens, truncate texts."""

from __future__ import annotations

DEFAULT_MAX_TOKENS = 1_500
SEARCH_MAX_TOKENS = 900
"""The budget for passages; the rest of a small budget is for reading a section afterwards."""
MIN_MAX_TOKENS, MAX_MAX_TOKENS = 100, 100_000


class BudgetError(Exception):
    """Even the smallest answer exceeds the budget; the message names the budget that it needs."""


def truncate(text: str, size: int) -> str:
    """Truncate a text to at most `size` characters, at the end of a line, or else of a word, if this keeps half of them."""
    if len(text) <= size:
        return text
    room = text[: max(size, 0) + 1]
    for mark in ("\n", " "):
        end = room.rfind(mark)
        if end >= max(size, 1) / 2:
            return text[:end]
    return text[: max(size, 0)]
