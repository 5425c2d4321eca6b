"""A page as the index takes it in: parsed, then divided into chunks. Lines are 1-based, both ends included."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from otterwiki_semantic.core.languages import ENGLISH


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text without markup, and its number in the page's file."""

    text: str
    number: int


class BlockKind(StrEnum):
    """How a block may be split: prose between sentences, rows (code, tables, lists) between lines only."""

    PROSE = "prose"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a code block, a table or a list, without markup."""

    kind: BlockKind
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A heading and the text below it, up to the next heading of any level. Compared by identity."""

    level: int
    """1 to 6; 0 for the text before the first heading, whose `heading` is empty."""
    heading: str
    anchor: str
    """The id of the heading in the page as the wiki renders it."""
    path: tuple[str, ...]
    """The headings from the outermost to this one."""
    start_line: int
    end_line: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A link as it was written: its target, unresolved, and its text."""

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
    """A part of a page: what is embedded, searched and shown."""

    text: str
    """All of it: ``[Title > Heading] body``."""
    prefix_length: int
    """Characters of `text` that are title and heading path."""
    overlap_length: int
    """Characters of `text` after the prefix that repeat the end of the chunk before."""
    section: str
    section_path: tuple[str, ...]
    """The headings from the outermost to the chunk's first section."""
    headings: tuple[str, ...]
    """All headings whose text is in the chunk: a short section is merged with its neighbour."""
    anchor: str
    start_line: int
    end_line: int


class Indexed(StrEnum):
    """What the index has of a page; the values are those of `search` in its front matter."""

    FULLY = "true"
    WORDS_ONLY = "words"
    """Its words and names, but no vectors: no model gets its text."""
    NOT = "false"


class LastChange(NamedTuple):
    """The last commit that changed a page."""

    time: int
    """In seconds since 1970."""
    commit: str
    """The commit's id."""


@dataclass(frozen=True, slots=True)
class PageWords:
    """The words of a page as the keyword index stores them."""

    title: str
    """Of its title, aliases and path."""
    chunks: tuple[tuple[str, str], ...]
    """Of each chunk's headings, and of its text."""
    spelled: tuple[str, ...]
    """Each word as it is spelled, in order: the page's part of the vocabulary."""
    names: tuple[tuple[str, int], ...]
    """What it and its sections are called, each with the chunk that this leads to; -1 is the page."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page, ready to be indexed."""

    path: str
    """Its file name without ``.md``."""
    blob: str
    """The id of its content in git."""
    title: str
    category: str | None
    tags: tuple[str, ...]
    word_count: int
    chunks: tuple[Chunk, ...]
    links_to: tuple[str, ...] = ()
    """The pages it links to, each once, as `page_key` names them, whether they exist or not."""
    last_change: LastChange | None = None
    aliases: tuple[str, ...] = ()
    """Other names, from the front matter."""
    answers: tuple[str, ...] = ()
    """Questions that the page is to come first for, from the front matter."""
    language: str = ENGLISH
    """The language whose stems its words are indexed by."""
    declared_language: str | None = None
    """What the front matter says of the language."""
    problem: str | None = None
    """Why it is not indexed as it should be, or not all of it; a sentence about the page."""
    indexed: Indexed = Indexed.FULLY
    words: PageWords | None = None
    """None: not analysed yet."""


@dataclass(frozen=True, slots=True)
class StoredChunk(Chunk):
    """A chunk as the catalog has it, with what it knows of its page: see `Page`."""

    name: str
    """The last part of the page's path."""
    path: str
    title: str
    category: str | None
    tags: tuple[str, ...]
    chunk_index: int
    """Which chunk of the page this is, from 0."""
    total_chunks: int
    page_word_count: int
    updated: str | None
    """When a commit last changed the page, ISO 8601 in UTC."""
