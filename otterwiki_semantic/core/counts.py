"""Numbers of things, in words for people."""

from __future__ import annotations


def count(number: int, thing: str) -> str:
    """Return a number with a noun, in the plural unless it is 1."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
