"""The index as administrators see it: its work, its searches, and a page as search sees it."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from otterwiki_semantic.core.records.status import Freshness


class SyncRecord(Struct, frozen=True):
    """A sync that changed the index, or failed."""

    finished: str
    """ISO 8601 in UTC."""
    seconds: float
    commit: str | None
    """The commit the index equalled then; null: none yet."""
    pages: int
    """Pages indexed or removed."""
    chunks: int
    """Passages that were embedded."""
    error: str | None = None
    """Why it failed; null: it did not."""
    times: int = 1
    """Number of failures in a row with this error."""
    hint: str | None = None
    """What to do about the error."""


_Share = Annotated[float, Meta(ge=0, le=1)]


class QualityRecord(Struct, frozen=True, kw_only=True):
    """How well the serving index answered the judged queries, ranking pages. The figures are means over the queries, 0 to 1."""

    finished: str
    """ISO 8601 in UTC."""
    seconds: float
    commit: str | None
    """The commit the index equalled."""
    model: str
    generation: str
    recipe: str
    """Identifies how the index was built: model, chunk profile, analysis of words, schema."""
    queries: int
    """Judged queries that were asked."""
    unanswerable: int
    """Those of which no relevant page exists."""
    missing: tuple[str, ...] = ()
    """A relevant page of each of the first three of these."""
    recall_at_10: _Share
    """Share of the relevant pages among the first 10."""
    precision_at_10: _Share
    """Share of relevant pages in the first 10."""
    mrr: _Share
    """Reciprocal rank of the first relevant page, 0 beyond rank 10."""
    zero_result_rate: _Share
    """Share of the queries without any result."""
    semantic_recall_at_10: _Share | None = None
    """Share of the relevant pages among the first 10 by meaning alone; null: not measured by the version before."""


class SearchHour(Struct, frozen=True):
    """The searches of one hour. A request with several queries counts as several searches of equal length."""

    hour: str
    """The start of the hour, ISO 8601 in UTC."""
    count: int
    unanswered: int
    """Searches that found nothing relevant."""
    p50_ms: float
    """Milliseconds in which half of the searches were answered."""
    p95_ms: float
    """Milliseconds in which 95 % of the searches were answered."""


class UnansweredQuery(Struct, frozen=True):
    """A query that found nothing relevant."""

    query: str
    """As it was asked last, up to 200 characters."""
    times: int
    """How often it was asked, whatever its case and spaces."""
    last: str
    """When it was asked last, ISO 8601 in UTC."""


class Insight(Struct, frozen=True):
    """How the index works."""

    disk_bytes: int
    """Bytes of the data directory."""
    free_bytes: int
    """Bytes free on its disk."""
    memory_bytes: int | None
    """Memory of the index daemon; null where the system does not say."""
    started: str
    """When the index daemon was started, ISO 8601 in UTC."""
    syncs: tuple[SyncRecord, ...]
    """The last 20 syncs that changed the index or failed, newest first."""
    keeps_searches: bool
    """Whether searches are logged (`SEMANTIC_SEARCH_LOG`)."""
    searches: tuple[SearchHour, ...]
    """The hours of the last 7 days that had searches, oldest first."""
    unanswered: tuple[UnansweredQuery, ...]
    """The 50 queries that found nothing relevant most often in 90 days."""
    has_judged_queries: bool = False
    """Whether judged queries are configured (`SEMANTIC_EVAL_QUERIES`)."""
    quality: tuple[QualityRecord, ...] = ()
    """The last 400 evaluations with them, newest first."""
    searched: SearchHour | None = None
    """The searches of the last 7 days together; null if there were none. Its `hour` is the first one."""


class Neighbour(Struct, frozen=True, omit_defaults=True):
    """A passage of another page that is near in meaning."""

    path: str
    title: str
    section: str
    anchor: str
    similarity: float
    """Cosine similarity, 1 = same."""
    url: str | None = None


class ChunkInspection(Struct, frozen=True):
    """A passage as the index holds it."""

    text: str
    """All of it; it starts with the page's title and heading path in brackets."""
    prefix_length: int
    """Characters of `text` that are title and heading path."""
    overlap_length: int
    """Characters of `text` after them that repeat the end of the passage before."""
    section_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    tokens: int
    """Tokens that the model was given, special ones included."""
    has_vector: bool
    """False: the model failed on it, or the page is `words_only`; so it is found by its words alone."""
    neighbours: tuple[Neighbour, ...]
    """The nearest 3 passages of other pages, nearest first; none without a vector."""


class PageInspection(Struct, frozen=True, omit_defaults=True):
    """A page as search sees it."""

    path: str
    title: str
    window: int
    """The maximum number of tokens that the model reads of a text."""
    total_chunks: int
    """Number of passages of the page; at most 200 are shown."""
    chunks: tuple[ChunkInspection, ...]
    index: Freshness
    url: str | None = None
    """The page in the wiki."""
    words_only: bool = False
    """Whether no model gets its text, because its front matter says `search: words`."""


class Figures(NamedTuple):
    """The metrics that decide whether an index may serve: means over the judged queries, 0 to 1."""

    recall: float
    """Recall@10 of hybrid searches."""
    semantic_recall: float | None
    """Recall@10 of searches by meaning alone; None if the index's model is not available."""
    mrr: float
    """Mean reciprocal rank of hybrid searches."""


_NAMES = "recall@10", "recall@10 by meaning alone", "MRR"
_MAX_LOSS = 0.1


def fall(before: Figures, after: Figures) -> str | None:
    """Return which metric fell by more than a tenth, with both values; None if none did or it is unknown."""
    for name, old, new in zip(_NAMES, before, after, strict=True):
        if old is not None and new is not None and new < old * (1 - _MAX_LOSS):
            return f"{name} of judged queries is {new:.3f}, and was {old:.3f}"
    return None
