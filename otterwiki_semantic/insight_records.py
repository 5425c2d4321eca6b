"""The shapes of what administrators see of the index: its work, its searches, and a page as search has it."""

from __future__ import annotations

from dataclasses import dataclass

from otterwiki_semantic.records import Freshness


@dataclass(frozen=True, slots=True)
class SyncRecord:
    """A sync that changed the index, or failed.

    `finished` is ISO 8601 in UTC, `commit` the one that the index equalled then (None: none yet), `pages` how many were indexed
    or removed, `chunks` how many were given to the model. `times` tells how often in a row it failed with the same `error`,
    `cure` what to do about that.
    """

    finished: str
    seconds: float
    commit: str | None
    pages: int
    chunks: int
    error: str | None = None
    times: int = 1
    cure: str | None = None


@dataclass(frozen=True, slots=True)
class HourOfSearches:
    """The searches of one hour, which begins at `hour` (ISO 8601 in UTC): their number, and how many found nothing relevant.

    `p50_ms` and `p95_ms` are the milliseconds within which half of them and 95 % were answered (nearest rank); each of several
    questions in one request is taken for an equal share of it.
    """

    hour: str
    count: int
    unanswered: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question that found nothing relevant, as it was put last; how often, and when last (ISO 8601 in UTC)."""

    query: str
    times: int
    last: str


@dataclass(frozen=True, slots=True)
class Insight:
    """How the index works.

    `disk_bytes` is what the data directory takes, `free_bytes` what is free there, `memory_bytes` what the index process has in
    memory (None: this system does not tell), `started` when it was (ISO 8601 in UTC). `syncs` are the last ones, newest first.
    With `keeps_searches` `searches` has the hours of the last 7 days that had any, oldest first, and `unanswered` the questions
    of the last 90 days, most often put first.
    """

    disk_bytes: int
    free_bytes: int
    memory_bytes: int | None
    started: str
    syncs: tuple[SyncRecord, ...]
    keeps_searches: bool
    searches: tuple[HourOfSearches, ...]
    unanswered: tuple[Unanswered, ...]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A passage of another page, and its cosine similarity to the one that is looked at (1 = same)."""

    path: str
    title: str
    section: str
    anchor: str
    similarity: float


@dataclass(frozen=True, slots=True)
class SeenChunk:
    """A passage as the index holds it; for its text and its place see `Chunk`.

    `tokens` is what the model is given: word pieces, with those that begin and end every text. Without a vector (the model
    failed on it) it has no `neighbours`, which are the nearest passages of other pages, nearest first.
    """

    text: str
    prefix_length: int
    overlap_length: int
    section_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    tokens: int
    has_vector: bool
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True, slots=True)
class SeenPage:
    """A page as search sees it: the first of its `total_chunks` passages, in order, and how fresh the index is.

    `window` is how many word pieces the model takes at most, counted as the passages' `tokens` are.
    """

    path: str
    title: str
    window: int
    total_chunks: int
    chunks: tuple[SeenChunk, ...]
    index: Freshness
