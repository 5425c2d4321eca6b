"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How a thing is: as it should be, worth knowing, or in the way."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """How one thing is. `cure` is what to do about it: a problem always has one."""

    level: Level
    what: str
    detail: str
    cure: str = ""


def ok(what: str, detail: str) -> Finding:
    """Tell that a thing is as it should be."""
    return Finding(Level.OK, what, detail)


def note(what: str, detail: str, cure: str = "") -> Finding:
    """Tell something worth knowing, which keeps nothing from working."""
    return Finding(Level.NOTE, what, detail, cure)


def problem(what: str, detail: str, cure: str) -> Finding:
    """Tell what keeps something from working, and what to do about it."""
    return Finding(Level.PROBLEM, what, detail, cure)
