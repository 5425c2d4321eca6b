"""A page as the index takes it in: parsed, then divided into chunks. Lines are 1-based, both ends included."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.core.languages import ENGLISH


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text without markup, and its number in the page's file."""

    text: str
    number: int
    begins_item: bool = False
    """Whether an item of a list begins with it."""


class BlockKind(StrEnum):
    """What a block is, which decides where it may be split: prose between sentences, all others between lines."""

    PROSE = "prose"
    LIST = "list"
    TABLE = "table"
    """Its first line is the header."""
    CODE = "code"
    LINES = "lines"
    """HTML, and front matter that cannot be read."""


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
    is_wiki_link: bool = False
    """Whether it is written in double brackets."""


class Notation(StrEnum):
    """How pages write links, tags and aliases."""

    WIKI = "wiki"
    NOTES = "notes"
    """As Obsidian and Logseq do; ``[[Page|label]]``."""
    DENDRON = "dendron"
    """As notes; ``[[label|Page]]``."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed page: its front matter (empty if it has none), its sections and its links, in order."""

    front_matter: dict[str, Any]
    sections: tuple[Section, ...]
    links: tuple[Link, ...] = ()


class UnitKind(StrEnum):
    """What a unit is."""

    HEADING = "heading"
    SENTENCE = "sentence"
    ITEM = "item"
    """Of a list, with its marker; a nested item is a unit of its own."""
    HEADER = "header"
    """The header row of a table."""
    ROW = "row"
    CODE = "code"
    """A line of code."""


class Unit(NamedTuple):
    """The smallest part of a chunk that says something on its own."""

    start: int
    """Where it begins in the chunk's text."""
    end: int
    """Where it ends in the chunk's text, exclusive."""
    section: int
    """Which of the chunk's `sections` it belongs to."""
    start_line: int
    end_line: int
    kind: UnitKind


class ChunkSection(NamedTuple):
    """A section with text in a chunk."""

    path: tuple[str, ...]
    """The headings from the outermost to its own; empty before the first heading."""
    anchor: str

    @property
    def heading(self) -> str:
        """The section's own heading; empty before the first heading."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True)
class ChunkText:
    """A part of a page: what is embedded, searched and shown."""

    text: str
    """All of it: ``[Title > Heading] body``."""
    prefix_length: int
    """Characters of `text` that are title and heading path."""
    overlap_length: int
    """Characters of `text` after the prefix that repeat an earlier chunk: its end, a header, or an announcement."""
    section: str
    """The heading of the section with most of the chunk's text."""
    section_path: tuple[str, ...]
    """The headings from the outermost to that one."""
    headings: tuple[str, ...]
    """All headings whose text is in the chunk: a short section is merged with the next one."""
    anchor: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Chunk(ChunkText):
    """A chunk as the chunker makes it."""

    sections: tuple[ChunkSection, ...] = ()
    """All sections whose text is in the chunk, in order."""
    units: tuple[Unit, ...] = ()
    """The parts of the text after prefix and overlap, in order."""


class Indexed(StrEnum):
    """What the index has of a page; the values are those of `search` in its front matter."""

    FULLY = "true"
    WORDS_ONLY = "words"
    """Its words and names, but no vectors: no model gets its text."""
    NOT = "false"


class FileKind(StrEnum):
    """What an attached file is."""

    PDF = "pdf"
    WORD = "word"
    SLIDES = "slides"
    SHEET = "sheet"
    BOOK = "book"
    HTML = "html"
    MAIL = "mail"
    NOTEBOOK = "notebook"
    TEXT = "text"
    CODE = "code"
    IMAGE = "image"


_PAGE_ANCHOR = re.compile(r"page=(\d{1,6})")


def page_anchor(number: int) -> str:
    """Return the anchor of a page of a file, from 1, which PDF viewers of browsers follow."""
    return f"page={number}"


def page_number(kind: str | None, anchor: str) -> int | None:
    """Return the number of the page or slide that an anchor in an attached file leads to; None if there is none."""
    match = _PAGE_ANCHOR.fullmatch(anchor) if kind else None
    return int(match[1]) if match else None


def cited_title(title: str, kind: str | None, number: int | None) -> str:
    """Return how a page or file is cited, such as ``Contract.pdf, page 4``."""
    return f"{title}, {'slide' if kind == FileKind.SLIDES else 'page'} {number}" if number else title


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
    kind: FileKind | None = None
    """What kind of attached file it is, whose path then ends with its name; None for a page."""


@dataclass(frozen=True, slots=True)
class StoredChunk(ChunkText):
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
    places: bytes = b"\x92\x90\x90"
    """Its sections and units, as `encode_places` returns them: most chunks that are read need neither."""
    kind: FileKind | None = None

    @property
    def sections(self) -> tuple[ChunkSection, ...]:
        """All sections whose text is in the chunk, in order, decoded each time. Errors: `CatalogCorruptError`."""
        return _decode_places(self.places)[0]

    @property
    def units(self) -> tuple[Unit, ...]:
        """The parts of the text after prefix and overlap, in order, decoded each time. Errors: `CatalogCorruptError`."""
        return _decode_places(self.places)[1]


_PLACES = msgspec.msgpack.Decoder(tuple[tuple[ChunkSection, ...], tuple[Unit, ...]])


def encode_places(sections: tuple[ChunkSection, ...], units: tuple[Unit, ...]) -> bytes:
    """Return the sections and units of a chunk in MessagePack."""
    return msgspec.msgpack.encode((sections, units))


def _decode_places(places: bytes) -> tuple[tuple[ChunkSection, ...], tuple[Unit, ...]]:
    try:
        return _PLACES.decode(places)
    except (msgspec.MsgspecError, TypeError) as error:
        raise CatalogCorruptError(f"the catalog has units of a passage that cannot be read: {error}") from error
