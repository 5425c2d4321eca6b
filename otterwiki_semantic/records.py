"""The shapes that travel between modules: frozen, ordered, with their units."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


def shallow_dict(record: Any) -> dict[str, Any]:
    """Give the values of a record by their names, as they are; `asdict` copies each of them, which takes 20 times as long."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


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


class Mode(StrEnum):
    """What decides the ranking: meaning and words, meaning alone, or words alone."""

    HYBRID = "hybrid"
    SEMANTIC = "semantic"
    KEYWORD = "keyword"


@dataclass(frozen=True, slots=True)
class Filters:
    """Which pages may answer; an empty filter lets all pass. Categories, tags and paths are compared without regard to case.

    `tags` all have to be there. `path` is how the page's path begins. `updated_since` is a Unix time in seconds.
    """

    category: str | None = None
    tags: tuple[str, ...] = ()
    path: str | None = None
    updated_since: int | None = None


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search, beyond the query; `parameters` has what is allowed.

    `semantic_ratio` is the share of meaning in a hybrid ranking, 0 to 1. `diversity` is 0 (best first) to 1 (as different as
    they can be). `context` is the number of chunks to show before and after each result. `wait` is for how many seconds, at
    most, to wait until the index equals HEAD. `note` is whether it counts as a search where searches are noted: what somebody
    is still typing does not. `rerank` is whether a reranker reads the best candidates (None: if it takes no time to
    speak of).
    """

    n: int = 5
    max_chunks_per_page: int = 2
    mode: Mode = Mode.HYBRID
    semantic_ratio: float = 0.5
    filters: Filters = Filters()
    min_similarity: float | None = None
    diversity: float = 0.0
    context: int = 0
    facets: bool = False
    explain: bool = False
    wait: float = 0.0
    note: bool = True
    rerank: bool | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """What one half of the search says of a passage: its rank there (1 = first; None: not among the candidates) and score."""

    rank: int | None
    score: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a result stands where it does.

    `semantic.score` is the cosine similarity, `keyword.score` BM25 of the words plus half that of neighbouring pairs of them.
    `fused` is their weighted sum, `page_credit` what other passages of the page add to it. `rule` is what placed the result:
    ``score``, ``exact title``, ``exact heading``, ``rare identifier``, ``reranker`` or ``diversity``. `coverage` is the share
    of the query's words in the passage, weighted by rarity, and `relevance` what is compared with the floor (at or above 0:
    relevant). `rerank` has, of what a reranker has read, the rank before that and the reranker's score.
    """

    semantic: Side
    keyword: Side
    fused: float
    page_credit: float
    rule: str
    coverage: float
    relevance: float
    rerank: Side = Side(None, None)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers a query. `distance` is the cosine distance (0 = same, 2 = opposite; None: the model failed).

    `snippet` is the chunk that was found, `text` what to read: its own words joined with neighbours that are nearly as good;
    `headings` are all whose sections have a part in `text`; for the lengths see `Chunk`. Lines are 1-based, both included.
    `highlights` are the ranges of `snippet` that match the query's words: first character and the one after the last.
    `score` ranks, and can be compared within one answer only. `updated` is when the page was last changed, ISO 8601 in UTC.
    `also_on` are the paths of other pages with nearly the same passage.
    """

    name: str
    path: str
    title: str
    category: str | None
    tags: tuple[str, ...]
    snippet: str
    prefix_length: int
    overlap_length: int
    distance: float | None
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
    updated: str | None = None
    score: float = 0.0
    relevant: bool = False
    highlights: tuple[tuple[int, int], ...] = ()
    also_on: tuple[str, ...] = ()
    context_before: str | None = None
    context_after: str | None = None
    explain: Explanation | None = None


@dataclass(frozen=True, slots=True)
class Freshness:
    """Which commit the index equals, which one HEAD is (None: no commit yet), and how many pages are still to be indexed.

    Pages that the model failed on are pending, too. With an `error` git cannot tell what HEAD is.
    """

    commit: str | None
    head: str | None
    pending_pages: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Facet:
    """A value, and the number of found pages that have it."""

    value: str
    count: int


@dataclass(frozen=True, slots=True)
class Facets:
    """The found pages by category, tag and top folder, the most frequent first."""

    category: tuple[Facet, ...]
    tag: tuple[Facet, ...]
    path: tuple[Facet, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The passages for one query, and how fresh the index was when it was asked.

    `confident` tells whether any of them is relevant. `degraded` says what failed, if the answer had to do without it.
    `reranker` names the model whose order it is, if one has put the best candidates in order.
    """

    query: str
    hits: tuple[Hit, ...]
    index: Freshness
    confident: bool = False
    degraded: str | None = None
    facets: Facets | None = None
    reranker: str | None = None


@dataclass(frozen=True, slots=True)
class SectionMatch:
    """A section of a page, and the section of another that is nearest to it."""

    section: str
    anchor: str
    related_section: str
    related_anchor: str
    similarity: float


@dataclass(frozen=True, slots=True)
class RelatedPage:
    """A page near in meaning to another one; `linked` tells whether that one links to it already.

    `relevant` tells whether it is near enough to be offered to people unasked.
    """

    name: str
    path: str
    title: str
    similarity: float
    linked: bool
    sections: tuple[SectionMatch, ...]
    relevant: bool = False


@dataclass(frozen=True, slots=True)
class RelatedPages:
    """The pages near to one page, nearest first, and how fresh the index was."""

    path: str
    pages: tuple[RelatedPage, ...]
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
class Estimate:
    """What a rebuild will take: passages to embed, bytes beside the serving index and those free, and seconds."""

    texts: int
    disk_bytes: int
    free_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Recall:
    """Mean recall@10 of judged questions (0 to 1): of the serving index, and of the one that is to take its place."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps the index from doing all it could, and what to do about it."""

    trouble: str
    cure: str


@dataclass(frozen=True, slots=True)
class RebuildStatus:
    """A rebuild's state and progress, and whether it `copies` what has not changed. Times are ISO 8601 in UTC.

    `cure` is what to do about the `error`, if it failed.
    """

    state: RebuildState = RebuildState.IDLE
    progress: Progress = field(default_factory=Progress)
    started: str | None = None
    finished: str | None = None
    error: str | None = None
    estimate: Estimate | None = None
    recall: Recall | None = None
    copies: bool = False
    cure: str | None = None


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What the index holds and how it is. `status` is ``ready``, ``indexing`` or ``error``.

    `is_outdated`: another is built, made in another way. `reranker` is the one that is configured; while it is loading
    (`reranker_is_loading`) answers are not reranked.
    """

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
    problems: tuple[Problem, ...] = ()
    is_outdated: bool = False
    reranker: str | None = None
    reranker_is_loading: bool = False
