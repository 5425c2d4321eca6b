"""The shapes that travel between modules: frozen, ordered, with their units."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


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
class Document:
    """A parsed page: its front matter (empty if it has none) and its sections in order."""

    front_matter: dict[str, Any]
    sections: tuple[Section, ...]


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


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers a query, nearest first. `distance` is the cosine distance (0 = same, 2 = opposite).

    `snippet` is the chunk that was found, `text` the same joined with the neighbours that are nearly as near, `headings` all
    whose sections have a part in `text`; for the lengths see `Chunk`. Lines are 1-based, both included.
    """

    name: str
    path: str
    title: str
    category: str | None
    tags: tuple[str, ...]
    snippet: str
    prefix_length: int
    overlap_length: int
    distance: float
    section: str
    section_path: tuple[str, ...]
    headings: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    chunk_index: int
    total_chunks: int
    page_word_count: int
    text: str
    text_start_line: int
    text_end_line: int


@dataclass(frozen=True, slots=True)
class Freshness:
    """Which commit the index equals, which one HEAD is (None: no commit yet), and how many pages differ between them."""

    commit: str | None
    head: str | None
    pending_pages: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The passages for one query, and how fresh the index was when it was asked."""

    query: str
    hits: tuple[Hit, ...]
    index: Freshness


class RebuildState(StrEnum):
    """What the last rebuild did."""

    IDLE = "idle"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build or a sync is. `chunks_total` is an estimate from the bytes read so far until the last page is read."""

    pages_done: int = 0
    pages_total: int = 0
    chunks_done: int = 0
    chunks_total: int = 0
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class RebuildStatus:
    """A rebuild's state and progress. Times are ISO 8601 in UTC."""

    state: RebuildState = RebuildState.IDLE
    progress: Progress = field(default_factory=Progress)
    started: str | None = None
    finished: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What the index holds and how it is. `status` is ``ready``, ``indexing`` or ``error``."""

    status: str
    index: Freshness
    pages: int
    chunks: int
    vectors: int
    model: str
    generation: str | None
    collection: str | None
    progress: Progress
    rebuild: RebuildStatus
    last_sync: str | None
    last_error: str | None
    embedded_texts: int
    owner_pid: int
    version: str
