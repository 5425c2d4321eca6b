"""The shapes of pages as they are listed and read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from otterwiki_semantic.core.records.status import Freshness


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


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text as a reader sees it, and the line of the page (1-based) it stands on."""

    text: str
    number: int


class BlockKind(StrEnum):
    """How a block may be divided: prose between sentences, rows (of code, a table, a list) only between lines."""

    PROSE = "prose"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a code block, a table or a list, without markup."""

    kind: BlockKind
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A heading and what stands below it, up to the next heading of any level. Compared by identity.

    `level` is 1 to 6, or 0 for the text before the first heading (`heading` is then empty). `path` holds the headings from the
    outermost to this one. `anchor` is the heading's id in the page as the wiki renders it. Lines are 1-based, both included.
    """

    level: int
    heading: str
    anchor: str
    path: tuple[str, ...]
    start_line: int
    end_line: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A link as it was written: its target, unresolved, and the text a reader sees."""

    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed page: its front matter (empty if it has none), its sections and its links, in order."""

    front_matter: dict[str, Any]
    sections: tuple[Section, ...]
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a page: what is embedded, shown and linked to.

    `text` is the whole of it, ``[Title > Heading] body``: the first `prefix_length` characters are the heading path, and the
    next `overlap_length` repeat the end of the chunk before it. `headings` are all the headings whose text stands in the chunk
    (a short section is merged with its neighbour), `section_path` those of its first section. Lines are 1-based, both included.
    """

    text: str
    prefix_length: int
    overlap_length: int
    section: str
    section_path: tuple[str, ...]
    headings: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the wiki, ready to be indexed. `path` is its file name without ``.md``, `blob` the id of its content in git."""

    path: str
    blob: str
    title: str
    category: str | None
    tags: tuple[str, ...]
    word_count: int
    chunks: tuple[Chunk, ...]
    links_to: tuple[str, ...] = ()
    """The pages it links to, each once, as `links.page_key` names them, whether they exist or not."""
    updated: int | None = None
    """When a commit last changed it, in seconds since 1970."""
