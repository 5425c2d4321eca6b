"""Numbers, dates and durations, formatted for people."""

from __future__ import annotations

from datetime import date

_FEW_SECONDS = 9.95


def count(number: int, thing: str) -> str:
    """Format a number with a noun, in the plural unless the number is 1."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def ordinal(number: int) -> str:
    """Format an ordinal number: ``1st``, ``22nd``, ``13th``."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def day(at: date) -> str:
    """Format a date: ``1 May 2026``."""
    return f"{at.day} {at:%b %Y}"


def ago(seconds: float) -> str:
    """Format an age in full days, hours or minutes: ``just now``, ``5 minutes ago``, ``1 day ago``."""
    units = (("day", 86_400), ("hour", 3_600), ("minute", 60))
    return next((f"{count(int(seconds // size), unit)} ago" for unit, size in units if seconds >= size), "just now")


def duration(seconds: float) -> str:
    """Format a duration: ``0.4 s``, ``12 s``, ``3 min 20 s``, ``1 h 5 min``."""
    if seconds < _FEW_SECONDS:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
