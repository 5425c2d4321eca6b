"""The state of the index: how current it is, the progress of builds, and problems."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from otterwiki_semantic.core.humanize import count, duration


class Progress(Struct, frozen=True):
    """How far a build or a sync is. `chunks_total` is an estimate from the bytes read so far until the last page is read."""

    pages_done: int = 0
    """Pages that are found by words and by meaning."""
    pages_total: int = 0
    chunks_done: int = 0
    """Passages that are found by meaning."""
    chunks_total: int = 0
    seconds_left: float | None = None
    """null: not known yet."""
    pages_by_words: int = 0
    """Pages that are found by their words at least."""

    def describe(self) -> str:
        """Format the progress for people: ``all 1,200 pages by words, 37% by meaning, about 5 min 20 s left``."""
        words, pages = self.pages_by_words, self.pages_total
        of = f"all {pages:,}" if words >= pages else f"{words:,} of {pages:,}"
        share = self.chunks_done / self.chunks_total if self.chunks_total else 0.0
        left = "" if self.seconds_left is None else f", about {duration(max(self.seconds_left, 1))} left"
        return f"{of} pages by words, {min(share, 0.99):.0%} by meaning{left}"


class Freshness(Struct, frozen=True, omit_defaults=True):
    """How far the index is behind HEAD."""

    commit: str | None
    """The commit the index equals; null: none yet."""
    head: str | None
    """The commit that is HEAD; null: none yet."""
    pending_pages: int
    """Pages that are not indexed yet, or that still lack vectors."""
    error: str | None = None
    """Only if git cannot say what HEAD is: why."""
    progress: Progress | None = None
    """Only while pages are being indexed: how many are found by words and by meaning."""


class RebuildState(StrEnum):
    """What the last rebuild did."""

    IDLE = "idle"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Estimate(Struct, frozen=True):
    """What a rebuild will take: passages to embed, bytes needed in addition to the serving index, bytes free, and seconds."""

    texts: int
    disk_bytes: int
    free_bytes: int
    seconds: float


class Recall(Struct, frozen=True):
    """Figures of judged questions (0 to 1): of the serving index, and of the one that is to take its place."""

    before: float
    """Recall@10 of hybrid searches."""
    after: float
    semantic_before: float | None = None
    """Recall@10 of searches by meaning alone; null: the index's model was not available."""
    semantic_after: float | None = None
    mrr_before: float | None = None
    """Mean reciprocal rank of hybrid searches."""
    mrr_after: float | None = None


class Problem(Struct, frozen=True):
    """Something that keeps the index from doing all it could, and what to do about it."""

    message: str
    """What is wrong."""
    hint: str
    """What to do, or what happens automatically."""


class ChromaState(StrEnum):
    """Whether ChromaDB holds every vector of the index. Searches use it only then, and see all of the index anyway."""

    READY = "ready"
    FILLING = "filling"
    """It is being checked or filled."""
    RESTING = "resting"
    """It failed, and is tried again in a moment; `problems` of the status say why."""


class ChromaFill(Struct, frozen=True):
    """What ChromaDB holds of the index."""

    state: ChromaState
    pending: int
    """Vectors that it is known to lack."""
    count: int | None = None
    """Vectors that it holds, as counted after the last write; null: not counted yet."""
    outdated: int = 0
    """Vectors whose metadata there is not up to date."""
    collection: str | None = None
    complete_at: str | None = None
    """When it last held exactly what the index has (ISO 8601, UTC)."""
    complete_commit: str | None = None
    """The commit that it equalled then."""


class RebuildStatus(Progress, frozen=True, kw_only=True):
    """The state and progress of a rebuild, or of pages that are read again. Times are ISO 8601 in UTC."""

    job: str | None = None
    """Its id; null: none has begun."""
    state: RebuildState = RebuildState.IDLE
    started: str | None = None
    finished: str | None = None
    error: str | None = None
    hint: str | None = None
    """What to do about the error, if it failed."""
    estimate: Estimate | None = None
    recall: Recall | None = None
    copies: bool = False
    """Whether it copies what has not changed."""


class ReindexStatus(RebuildStatus, frozen=True, kw_only=True):
    """The state of the last rebuild or of a job, also by the names of the earlier plugin."""

    status: Literal["idle", "in_progress", "complete", "error"]
    started_at: str | None
    completed_at: str | None
    pages_indexed: int
    chunks_created: int
    error_message: str | None

    @classmethod
    def of(cls, rebuild: RebuildStatus) -> ReindexStatus:
        """Return the status of a rebuild."""
        return cls(
            **asdict(rebuild),
            status=_STATES_OF_EARLIER_PLUGIN[rebuild.state],
            started_at=rebuild.started,
            completed_at=rebuild.finished,
            pages_indexed=rebuild.pages_done,
            chunks_created=rebuild.chunks_done,
            error_message=rebuild.error,
        )


_STATES_OF_EARLIER_PLUGIN: dict[RebuildState, Literal["idle", "in_progress", "complete", "error"]] = {
    RebuildState.IDLE: "idle",
    RebuildState.RUNNING: "in_progress",
    RebuildState.DONE: "complete",
    RebuildState.FAILED: "error",
}


class PreviousIndex(Struct, frozen=True):
    """The index that was replaced by the last change of model, chunk profile or languages, to which one can return."""

    generation: str
    model: str
    """As SEMANTIC_MODEL names it."""
    chunks: str
    commit: str | None
    """The commit that it equals."""


class Rollback(Struct, frozen=True):
    """The return to an index with other settings than the configured ones."""

    at: str
    """When (ISO 8601, UTC)."""
    reason: str
    model: str
    """The model in use, as SEMANTIC_MODEL names it."""
    configured_model: str
    not_in_use: tuple[str, ...]
    """The settings whose configured values are not in use."""


class IndexStatus(Struct, frozen=True, kw_only=True):
    """What the index holds and its state."""

    status: Literal["ready", "ready_by_words", "indexing", "error"]
    """`ready`: searches see all of HEAD. `ready_by_words`: some or all pages lack vectors; `problems` says why."""
    indexed_commit: str | None
    """The commit that the index equals; null: none yet."""
    head_commit: str | None
    """The commit that is HEAD; null: none yet."""
    pending_pages: Annotated[int, Meta(ge=0)]
    """Pages that are not indexed yet, or that still lack vectors."""
    head_error: str | None = None
    """Why git cannot say what HEAD is."""
    pages: int
    excluded_pages: int = 0
    """Pages of HEAD that are left out."""
    attachments: int = 0
    """Attached files in the index."""
    unread_attachments: dict[str, int] = {}
    """Attached files of HEAD by extension that would be indexed with the extra `attachments`."""
    chunks: int
    vectors: int
    model: str
    generation: str | None
    collection: str | None
    chroma: ChromaFill | None = None
    """What ChromaDB holds of the index; null: there is no index yet."""
    progress: Progress
    """Of the sync."""
    rebuild: RebuildStatus
    last_sync: str | None
    """When a sync last succeeded."""
    last_error: str | None
    embedded_texts: int
    """Since the index was opened."""
    owner_pid: int
    """The process of the index daemon."""
    version: str
    problems: tuple[Problem, ...] = ()
    is_outdated: bool = False
    """Whether an index of another model or chunk profile is being built."""
    previous: PreviousIndex | None = None
    """The index that `rollback` returns to; null: none."""
    rollback: Rollback | None = None
    """Only if searches use an index of other settings than the configured ones."""
    reranker: str | None = None
    reranker_is_loading: bool = False
    """Whether answers are not reranked yet."""

    @property
    def contents(self) -> str:
        """The number of pages and attached files in the index, as text."""
        excluded = f" ({self.excluded_pages} excluded)" if self.excluded_pages else ""
        return f"{self.pages} pages{excluded}" + (f", {count(self.attachments, 'attached file')}" if self.attachments else "")

    @property
    def unread(self) -> str | None:
        """What an extra would add to the index, as text, or None."""
        if not self.unread_attachments:
            return None
        kinds = ", ".join(f"{number} {extension}" for extension, number in self.unread_attachments.items())
        return f'attached files that are not indexed: {kinds}; to index them: pip install "otterwiki-semantic[attachments]"'

    @property
    def index(self) -> Freshness:
        """How far the index is behind HEAD."""
        return Freshness(self.indexed_commit, self.head_commit, self.pending_pages, self.head_error)


class ReindexStarted(Struct, frozen=True, omit_defaults=True):
    """What a reindex that has started will do."""

    status: Literal["started"]
    estimate: Estimate | None = None
    """What the rebuild takes."""
    pages: tuple[str, ...] | None = None
    """Only if single pages were named: their paths."""
    job: str | None = None
    """The job's id, for `GET /reindex/status`."""
    generation: str | None = None
    """Only for a rollback: the index that serves in a moment."""
