"""The shapes of what administrators see of the index: its work, its searches, and a page as search has it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from otterwiki_semantic.core.records.status import Freshness


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
class SearchHour:
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
class UnansweredQuery:
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
    searches: tuple[SearchHour, ...]
    unanswered: tuple[UnansweredQuery, ...]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A passage of another page, and its cosine similarity to the one that is looked at (1 = same)."""

    path: str
    title: str
    section: str
    anchor: str
    similarity: float


@dataclass(frozen=True, slots=True)
class ChunkInspection:
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
class PageInspection:
    """A page as search sees it: the first of its `total_chunks` passages, in order, and how fresh the index is.

    `window` is how many word pieces the model takes at most, counted as the passages' `tokens` are.
    """

    path: str
    title: str
    window: int
    total_chunks: int
    chunks: tuple[ChunkInspection, ...]
    index: Freshness


class MapState(StrEnum):
    """Whether there is a map: there is, the first one is being made, it cannot be made or is off, or the wiki has no pages."""

    READY = "ready"
    MAKING = "making"
    UNAVAILABLE = "unavailable"
    EMPTY = "empty"


class MapPoint(NamedTuple):
    """A page on the map. `x` and `y` are 0 to 1, `folder` is the top one (empty: none).

    One that `is_new` came after the map was made, and stands amid the pages nearest to it. It is a tuple and no dataclass:
    thousands of them travel in one answer, and as rows they take a third of the time.
    """

    path: str
    title: str
    name: str
    x: float
    y: float
    folder: str
    category: str | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class WikiMap:
    """Every page that the index has, by path, if there is a map; when it was `made` (ISO 8601 in UTC), how fresh the index is.

    `trouble` says why there is none, or why it is an old one, and what to do about it.
    """

    points: tuple[MapPoint, ...]
    state: MapState
    made: str | None
    trouble: str | None
    index: Freshness
