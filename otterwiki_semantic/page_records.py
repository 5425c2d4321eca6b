"""The shapes of pages as they are listed and read."""

from __future__ import annotations

from dataclasses import dataclass

from otterwiki_semantic.records import Freshness


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A section with all its subsections, as a table of contents shows it. Lines are 1-based, both included."""

    heading: str
    level: int
    path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    word_count: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Who changed something, when (ISO 8601), and what was said of it."""

    revision: str
    author: str
    date: str
    message: str


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page as a listing shows it. `updated` is when a commit last changed it, ISO 8601 in UTC."""

    name: str
    path: str
    title: str
    category: str | None
    tags: tuple[str, ...]
    updated: str | None
    word_count: int


@dataclass(frozen=True, slots=True)
class PageList:
    """Some of the pages that were asked for, by path, and the number of all of them."""

    pages: tuple[ListedPage, ...]
    total: int
    index: Freshness


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The paths of the pages that a page links to, and of those that link to it; of pages that exist, in order."""

    links_to: tuple[str, ...]
    linked_from: tuple[str, ...]
