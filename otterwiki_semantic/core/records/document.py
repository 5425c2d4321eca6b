"""A page on its way into the index: parsed, then divided into chunks. Lines are 1-based and inclusive."""

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


class BlockKind(StrEnum):
    """The kind of a block, which determines where to split it: prose between sentences, all others between lines."""

    PROSE = "prose"
    LIST = "list"
    TABLE = "table"
    """The first line is the header."""
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
    """A link as written: its target, unresolved, and its text."""

    url: str
    text: str
    is_wiki_link: bool = False


class Notation(StrEnum):
    """The syntax of links, tags and aliases in pages."""

    WIKI = "wiki"
    """``[[label|Page]]``."""
    WIKI_PAGE_FIRST = "wiki-page-first"
    """As `WIKI`, but ``[[Page|label]]``: the wiki's WIKILINK_STYLE is LINKTITLE."""
    NOTES = "notes"
    """The syntax of Obsidian and Logseq; ``[[Page|label]]``."""
    DENDRON = "dendron"
    """As `NOTES`, but ``[[label|Page]]``."""

    @property
    def is_wiki(self) -> bool:
        """Whether this is the syntax of a wiki, not of notes in a folder."""
        return self in {Notation.WIKI, Notation.WIKI_PAGE_FIRST}

    @property
    def is_page_first(self) -> bool:
        """Whether the links of a wiki begin with the page."""
        return self is Notation.WIKI_PAGE_FIRST


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed page: its front matter (empty if it has none), its sections and its links, in order."""

    front_matter: dict[str, Any]
    sections: tuple[Section, ...]
    links: tuple[Link, ...] = ()


class UnitKind(StrEnum):
    """The kind of a unit."""

    HEADING = "heading"
    SENTENCE = "sentence"
    ITEM = "item"
    """A list item with its marker; a nested item is a separate unit."""
    HEADER = "header"
    ROW = "row"
    CODE = "code"


class Unit(NamedTuple):
    """The smallest part of a chunk that says something on its own."""

    start: int
    """The start in the chunk's text."""
    end: int
    """The end in the chunk's text, exclusive."""
    section: int
    """The index of its section in the chunk's `sections`."""
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
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True)
class ChunkText:
    """A part of a page: what is embedded, searched and shown."""

    text: str
    """The whole text: ``[Title > Heading] body``."""
    prefix_length: int
    """Characters of `text` in the prefix of title and heading path."""
    overlap_length: int
    """Characters of `text` after the prefix that repeat an earlier chunk: its end, a header, or an announcement."""
    section: str
    """The heading of the section with most of the chunk's text."""
    section_path: tuple[str, ...]
    headings: tuple[str, ...]
    """All headings with text in the chunk: a short section is merged with the next one."""
    anchor: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Chunk(ChunkText):
    """A chunk as the chunker creates it."""

    sections: tuple[ChunkSection, ...] = ()
    units: tuple[Unit, ...] = ()


class Indexed(StrEnum):
    """How much of a page is indexed. Each value is a value of `search` in the page's front matter."""

    FULLY = "true"
    WORDS_ONLY = "words"
    """Words and names, but no vectors: no model receives its text."""
    NOT = "false"


class FileKind(StrEnum):
    """The kind of an attached file."""

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
    """Return the anchor of a file's page, from 1, as supported by the PDF viewers of browsers."""
    return f"page={number}"


def page_number(kind: str | None, anchor: str) -> int | None:
    """Return the page or slide number in an attached file's anchor; None if it has none."""
    match = _PAGE_ANCHOR.fullmatch(anchor) if kind else None
    return int(match[1]) if match else None


def cited_title(title: str, kind: str | None, number: int | None) -> str:
    """Return the title to cite for a page or file, such as ``Contract.pdf, page 4``."""
    return f"{title}, {'slide' if kind == FileKind.SLIDES else 'page'} {number}" if number else title


class LastChange(NamedTuple):
    """The last commit that changed a page."""

    time: int
    """In seconds since 1970."""
    commit: str


@dataclass(frozen=True, slots=True)
class PageWords:
    """The words of a page as the keyword index stores them."""

    title: str
    """Words of the title, aliases and path."""
    chunks: tuple[tuple[str, str], ...]
    """Words of each chunk's headings, and of its text."""
    spelled: tuple[str, ...]
    """Each word as spelled, in order: the page's part of the vocabulary."""
    names: tuple[tuple[str, int], ...]
    """Names of the page and its sections, each with the chunk it leads to; -1 is the page."""
    title_and_path: tuple[str, str, str]
    """Distinct words of the title, of the last part of the path, and of the whole path."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page, ready to be indexed."""

    path: str
    """The file name without ``.md``."""
    blob: str
    title: str
    category: str | None
    tags: tuple[str, ...]
    word_count: int
    chunks: tuple[Chunk, ...]
    links_to: tuple[str, ...] = ()
    """The distinct pages it links to, existing or not, as `page_key` names them."""
    last_change: LastChange | None = None
    aliases: tuple[str, ...] = ()
    """Other names, from the front matter."""
    answers: tuple[str, ...] = ()
    """Questions for which the page must come first, from the front matter."""
    language: str = ENGLISH
    """The language for stemming its words."""
    problem: str | None = None
    """Why the page is not indexed, or only in part; a sentence about the page."""
    indexed: Indexed = Indexed.FULLY
    words: PageWords | None = None
    kind: FileKind | None = None
    """The kind of an attached file, whose path then ends with its name; None for a page."""


@dataclass(frozen=True, slots=True)
class StoredChunk(ChunkText):
    """A chunk in the catalog, with facts about its page: see `Page`."""

    name: str
    """The last part of the page's path."""
    path: str
    title: str
    category: str | None
    tags: tuple[str, ...]
    chunk_index: int
    """The index of the chunk in the page, from 0."""
    total_chunks: int
    page_word_count: int
    updated: str | None
    """The time of the last commit that changed the page, ISO 8601 in UTC."""
    places: bytes = b"\x92\x90\x90"
    """Sections and units as returned by `encode_places`; decoded on demand, because most readers need neither."""
    kind: FileKind | None = None

    @property
    def sections(self) -> tuple[ChunkSection, ...]:
        """All sections with text in the chunk, in order; decoded on each access. Errors: `CatalogCorruptError`."""
        return _decode_places(self.places)[0]

    @property
    def units(self) -> tuple[Unit, ...]:
        """The parts of the text after prefix and overlap, in order; decoded on each access. Errors: `CatalogCorruptError`."""
        return _decode_places(self.places)[1]


_PLACES = msgspec.msgpack.Decoder(tuple[tuple[ChunkSection, ...], tuple[Unit, ...]])


def encode_places(sections: tuple[ChunkSection, ...], units: tuple[Unit, ...]) -> bytes:
    """Encode the sections and units of a chunk in MessagePack."""
    return msgspec.msgpack.encode((sections, units))


def _decode_places(places: bytes) -> tuple[tuple[ChunkSection, ...], tuple[Unit, ...]]:
    try:
        return _PLACES.decode(places)
    except (msgspec.MsgspecError, TypeError) as error:
        raise CatalogCorruptError(f"the catalog has units of a passage that cannot be read: {error}") from error
