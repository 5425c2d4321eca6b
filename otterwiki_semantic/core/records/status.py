"""The state of the index: how fresh it is, how far a build has come, and what keeps it from working."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Freshness:
    """Which commit the index equals, which one HEAD is (None: no commit yet), and how many pages are still to be indexed.

    Pages that the model failed on are pending, too. With an `error` git cannot tell what HEAD is.
    """

    commit: str | None
    head: str | None
    pending_pages: int
    error: str | None = None


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
