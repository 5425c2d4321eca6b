"""The map of the wiki."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from otterwiki_semantic.core.records.status import Freshness


class MapState(StrEnum):
    """Whether there is a map of the wiki."""

    READY = "ready"
    MAKING = "making"
    UNAVAILABLE = "unavailable"
    EMPTY = "empty"


class MapPoint(Struct, frozen=True, omit_defaults=True):
    """A page on the map."""

    path: str
    """The page's path in the wiki."""
    title: str
    name: str
    x: float
    """0 to 1, from left to right; both directions have one scale."""
    y: float
    """0 to 1, from top to bottom."""
    folder: str
    """The top folder, empty if there is none."""
    category: str | None
    """From the front matter."""
    is_new: bool
    """Whether the page came after the map was made: it is placed among those nearest to it until the next one."""
    url: str | None = None
    """The page in the wiki."""
    cluster: str | None = None
    """The name of the pages near in meaning that it belongs to: a phrase of their headings, or a title; null in small wikis."""


class WikiMap(Struct, frozen=True, omit_defaults=True):
    """The map of the wiki: pages near in meaning are near each other."""

    points: tuple[MapPoint, ...]
    """With `ready` every page that the index has, by path."""
    total: int
    """The number of pages on the map."""
    state: MapState
    """`ready`, `making` (the first one), `unavailable` (`message` says why), or `empty`: there are no pages."""
    made: str | None
    """When the map was made, ISO 8601 in UTC."""
    index: Freshness
    message: str | None = None
    """Only if there is no map, or an old one: why, and what to do."""
