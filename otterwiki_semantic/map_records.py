"""The shapes of the map of the wiki."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from otterwiki_semantic.records import Freshness


class MapState(StrEnum):
    """Whether there is a map: there is, the first one is being made, it cannot be made or is off, or the wiki has no pages."""

    READY = "ready"
    MAKING = "making"
    UNAVAILABLE = "unavailable"
    EMPTY = "empty"


class MapPoint(NamedTuple):
    """A page on the map. `x` and `y` are 0 to 1, `folder` is the top one (empty: none).

    One that `is_new` came after the map was made, and stands amid the pages nearest to it. It is a tuple and no dataclass:
    thousands of them travel in one answer, and as rows they take a third of the time.
    """

    path: str
    title: str
    name: str
    x: float
    y: float
    folder: str
    category: str | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class WikiMap:
    """Every page that the index has, by path, if there is a map; when it was `made` (ISO 8601 in UTC), how fresh the index is.

    `trouble` says why there is none, or why it is an old one, and what to do about it.
    """

    points: tuple[MapPoint, ...]
    state: MapState
    made: str | None
    trouble: str | None
    index: Freshness
