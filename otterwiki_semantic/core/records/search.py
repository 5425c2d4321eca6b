"""The shapes that travel between modules: frozen, ordered, with their units."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from otterwiki_semantic.core.records.status import Freshness


def shallow_dict(record: Any) -> dict[str, Any]:
    """Give the values of a record by their names, as they are; `asdict` copies each of them, which takes 20 times as long."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


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
class RetrieverScore:
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

    semantic: RetrieverScore
    keyword: RetrieverScore
    fused: float
    page_credit: float
    rule: str
    coverage: float
    relevance: float
    rerank: RetrieverScore = RetrieverScore(None, None)


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
