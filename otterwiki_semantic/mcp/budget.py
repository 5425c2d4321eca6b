"""The token budget of an answer: estimate, truncate, fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, TypeVar

DEFAULT_MAX_TOKENS = 1_500
MIN_MAX_TOKENS, MAX_MAX_TOKENS = 100, 100_000
_ASCII_PER_TOKEN, _OTHER_BYTES_PER_TOKEN = 4, 3


class BudgetError(Exception):
    """Not even the smallest answer fits into the budget; the text says which budget is needed."""


class Sized(Protocol):
    """An answer that knows its size."""

    def cost(self) -> int:
        """Return its size in tokens."""
        ...


S = TypeVar("S", bound=Sized)


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


def fit(make: Callable[[int], S], largest: int, max_tokens: int) -> S:
    """Return the largest answer of at most `max_tokens` tokens; `make` makes one of a size from 0 to `largest`.

    Errors: `BudgetError` if the answer of size 0 is too large.
    """
    whole = make(largest)
    if whole.cost() <= max_tokens:
        return whole
    best, fitting, too_large = make(0), 0, largest
    if best.cost() > max_tokens:
        raise BudgetError(f"max_tokens={max_tokens} is too little for this answer; ask with {best.cost()} or more")
    while too_large - fitting > 1:
        size = (fitting + too_large) // 2
        answer = make(size)
        if answer.cost() <= max_tokens:
            best, fitting = answer, size
        else:
            too_large = size
    return best
