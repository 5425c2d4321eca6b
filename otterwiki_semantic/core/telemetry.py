"""Telemetry: the index's reports about its work, for metrics and log lines."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum

from otterwiki_semantic.core.errors import MetricsError
from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.core.records import Answer, IndexStatus, QualityRecord, SearchContext, SearchOptions


class Failure(StrEnum):
    """The kind of a failure. One incident may count twice: a sync that fails because of the catalog is also a failed sync."""

    CATALOG = "catalog"
    MODEL = "model"
    REBUILD = "rebuild"
    RERANKER = "reranker"
    SEARCH = "search"
    SYNC = "sync"
    VECTOR_STORE = "vector_store"


class EmbeddingKind(StrEnum):
    """The input of the embedding model: a query, or passages of pages."""

    QUERY = "query"
    PASSAGE = "passage"


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of the index at one moment."""

    status: IndexStatus
    unfinished_pages: int
    """Pages without vectors because the model failed on them."""
    equals_head: bool
    commits_behind: int | None
    """Commits of HEAD that are not indexed; None if git cannot tell."""
    cache_hits: int
    cache_misses: int
    quality: QualityRecord | None = None


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """A search that was answered."""

    answers: Sequence[Answer]
    options: SearchOptions
    context: SearchContext
    seconds: float

    @property
    def counts(self) -> bool:
        """Whether it counts in the search log and the metrics; drafts and further results of a search do not."""
        return self.context.is_logged and not self.options.draft and not self.options.offset


class Telemetry:
    """Hooks for events in the index. The base class does nothing."""

    def record_search(self, search: SearchEvent) -> None:
        """Record a search."""

    def record_embedding(self, kind: EmbeddingKind, texts: int) -> AbstractContextManager[None]:
        """Return a context manager for embedding `texts` texts, which records the duration and failures."""
        del kind, texts
        return nullcontext()

    def record_sync(self, seconds: float, pages: int) -> None:
        """Record a successful sync, and the number of pages that it changed."""

    def record_up_to_date(self) -> None:
        """Record that the index now equals HEAD."""

    def record_failure(self, failure: Failure) -> None:
        """Count a failure."""

    def render(self, state: IndexState) -> str:
        """Return all metrics, with the state, in Prometheus's text format. Errors: `MetricsError` if none are collected."""
        del state
        raise MetricsError(
            f"prometheus-client is not installed: {pip_install('metrics')}, then stop the wiki and start it ten seconds later, "
            "so that the index daemon, which keeps the metrics, ends as well"
        )


NO_TELEMETRY = Telemetry()


ANNOUNCEMENTS = logging.getLogger("otterwiki_semantic.announcements")
"""Messages for people in the wiki's log that are not warnings."""
_UNQUOTED = re.compile(r"[^\s\"=]+")


def logfmt(event: str, **fields: object) -> str:
    """Format a log line `event=… name=value …`: floats with up to three decimals, lower-case booleans, unusual text quoted."""
    return " ".join(f"{name}={_shown(value)}" for name, value in {"event": event, **fields}.items())


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return text if _UNQUOTED.fullmatch(text) else json.dumps(text)
