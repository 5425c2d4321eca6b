"""The candidates of a query: chunks that may answer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from otterwiki_semantic.storage import ChunkRef


class QueryWords(NamedTuple):
    """The words of a query or of one of its variants, with their inverse document frequencies."""

    names: Mapping[str, float]
    """Words that occur in the wiki, for the comparison with names."""
    weights: Mapping[str, float]
    """Words that were looked up, and words that do not occur in the wiki; the basis of coverage."""

    @property
    def looked_up(self) -> Sequence[str]:
        """The words that a passage can contain, up to the limit of lookups."""
        return [word for word in self.weights if word in self.names]


class Tier(IntEnum):
    """Ranking tiers. A page that is pinned to the question, or whose title or name is the whole query, precedes all scores."""

    SCORE = 0
    EXACT_TITLE = 1
    PINNED_ANSWER = 2

    @property
    def label(self) -> str:
        """The tier's name for people."""
        return self.name.lower().replace("_", " ")


@dataclass(slots=True)
class Candidate:
    """A chunk that may answer a query, with its scores and ranks."""

    chunk: ChunkRef
    id: int = field(init=False)
    """The chunk's id in the catalog."""
    path: str = field(init=False)
    """The path of the chunk's page."""
    similarity: float | None = None
    """Cosine similarity to the query; None without vectors."""
    semantic_rank: int | None = None
    """From 1; None if its vector was not among the nearest."""
    keyword_score: float | None = None
    """BM25 of words and pairs of words; None if it was not among the best matches."""
    keyword_rank: int | None = None
    tier: Tier = Tier.SCORE
    fused: float = 0.0
    """Points from meaning and words."""
    page_credit: float = 0.0
    """Points from the rest of the page."""
    name_points: float = 0.0
    """Points from the page's title and path and the chunk's headings."""
    link_points: float = 0.0
    """Points from links on other pages."""
    recency_points: float = 0.0
    """Points from the date of the page's last change."""
    score: float = 0.0
    """The rank score within a tier: the sum of these points, or, after reranking, another candidate's score."""
    is_named: bool = False
    """Whether the query is one of the chunk's headings in full, or a rare identifier in it."""
    rank_before: int | None = None
    """The rank before reranking."""
    rerank_score: float | None = None
    coverage: float = 0.0
    """The share of the query's words in the chunk, weighted by rarity."""
    page_coverage: float = 0.0
    """The share of the query's words anywhere on the page; 0 for a pure name query."""
    page_similarity: float = 0.0
    """The mean similarity of the page's passages, on the bundled model's scale; 0 for a pure name query."""
    relevance: float = 0.0
    """The distance above the relevance threshold."""

    @property
    def is_relevant(self) -> bool:
        """Whether the chunk is about the query. Exact name matches always are."""
        return self.relevance >= 0 or self.is_named or self.tier > Tier.SCORE

    def __post_init__(self) -> None:
        self.id, self.path = self.chunk.id, self.chunk.path  # read a thousand times per search


@dataclass(slots=True)
class CandidateSet:
    """The candidates of a query."""

    candidates: list[Candidate]
    """Best first; ties by path and position."""
    is_complete: bool
    """Whether these are all candidates."""
    index_size: int
    """The number of chunks in the index."""
    words: tuple[QueryWords, ...] = ()
    """The words of the query and of each variant."""
    is_rank_fused: bool = False
    """Whether scores are reciprocal ranks, which differ little."""
    degraded: str | None = None
    """Which retriever failed, and why."""
    is_keyword_index_corrupt: bool = False
