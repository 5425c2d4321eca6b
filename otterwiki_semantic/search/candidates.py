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
    """Words that occur in the wiki; names are compared with them."""
    weights: Mapping[str, float]
    """Words that were looked up, and words that occur nowhere; coverage is the share of them that a passage has."""

    @property
    def looked_up(self) -> Sequence[str]:
        """The words that a passage can have, at most as many as are looked up."""
        return [word for word in self.weights if word in self.names]


class Tier(IntEnum):
    """Ranking tiers: a page whose title or name is typed in full, or that is pinned to the question, comes before any score."""

    SCORE = 0
    EXACT_TITLE = 1
    PINNED_ANSWER = 2

    @property
    def label(self) -> str:
        """The tier's name for people."""
        return self.name.lower().replace("_", " ")


@dataclass(slots=True)
class Candidate:
    """A chunk that may answer a query, and what each retriever makes of it."""

    chunk: ChunkRef
    id: int = field(init=False)
    """The chunk's id in the catalog."""
    path: str = field(init=False)
    """The path of the chunk's page."""
    similarity: float | None = None
    """Cosine similarity to the query; None without vectors."""
    semantic_rank: int | None = None
    """1 is first; None if its vector was not among the nearest."""
    keyword_score: float | None = None
    """BM25 of words and of pairs of words; None if it was not among the best matches."""
    keyword_rank: int | None = None
    tier: Tier = Tier.SCORE
    fused: float = 0.0
    """What its meaning and its words add to the score."""
    page_credit: float = 0.0
    """What the rest of the page adds to the score."""
    name_points: float = 0.0
    """What the page's title and path and the chunk's headings add to the score."""
    link_points: float = 0.0
    """What links from other pages add to the score."""
    recency_points: float = 0.0
    """What the date of the page's last change adds to the score."""
    score: float = 0.0
    """What ranks within a tier: the sum of these, or after reranking that of another candidate."""
    is_named: bool = False
    """Whether the query is one of its headings in full, or a rare identifier that it has."""
    rank_before: int | None = None
    """Its rank before a reranker read it."""
    rerank_score: float | None = None
    coverage: float = 0.0
    """The share of the query's words that it has, weighted by rarity."""
    page_coverage: float = 0.0
    """The share of the query's words anywhere on its page; 0 for a query that is all name."""
    page_similarity: float = 0.0
    """The mean similarity of its page's passages, on the bundled model's scale; 0 for a query that is all name."""
    relevance: float = 0.0
    """How far it is above the relevance threshold."""

    @property
    def is_relevant(self) -> bool:
        """Whether it is about the query; what the query names is, whatever it scores."""
        return self.relevance >= 0 or self.is_named or self.tier > Tier.SCORE

    def __post_init__(self) -> None:
        self.id, self.path = self.chunk.id, self.chunk.path  # read a thousand times per search


@dataclass(slots=True)
class CandidateSet:
    """The candidates of a query."""

    candidates: list[Candidate]
    """Best first; equally good ones by path and position."""
    is_complete: bool
    """Whether there are no others."""
    index_size: int
    """The number of chunks in the index."""
    words: tuple[QueryWords, ...] = ()
    """Those of the query, and of each of its variants."""
    is_rank_fused: bool = False
    """Whether scores are reciprocal ranks, which are all close to each other."""
    degraded: str | None = None
    """Which retriever failed, and why."""
    is_keyword_index_corrupt: bool = False
