"""What the index tells of its work as it does it, to whoever keeps figures of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum

from otterwiki_semantic.core.errors import MetricsError
from otterwiki_semantic.core.records import Answer, IndexStatus, SearchOptions

MISSING = (
    'metrics need prometheus-client: pip install "otterwiki-semantic[metrics]", then stop the wiki, and start it ten seconds '
    "later: its index process, which keeps the figures, has to end, too"
)


class Failure(StrEnum):
    """What failed. One mishap may be two of them: a sync that fails because of the catalog is a failed sync, too."""

    CATALOG = "catalog"
    MODEL = "model"
    REBUILD = "rebuild"
    RERANKER = "reranker"
    SEARCH = "search"
    SYNC = "sync"
    VECTOR_STORE = "vector_store"


class Embedded(StrEnum):
    """What the model was given: a question, or passages of pages."""

    QUERY = "query"
    PASSAGE = "passage"


@dataclass(frozen=True, slots=True)
class IndexState:
    """How the index is at a moment: its status, pages that lack vectors, and whether it equals HEAD.

    `commits_behind` is how many commits of HEAD it does not know of, None if git cannot tell. `cache_hits` and `cache_misses`
    count the questions whose vectors were remembered, and those that had to be embedded.
    """

    status: IndexStatus
    unfinished_pages: int
    equals_head: bool
    commits_behind: int | None
    cache_hits: int
    cache_misses: int


class Telemetry:
    """Is told of the work. This one keeps nothing, and stands where no figures are wanted, or none can be kept."""

    def searched(self, answers: Sequence[Answer], options: SearchOptions, seconds: float) -> None:
        """Take the answers of a request, and how long it took."""

    def embedding(self, what: Embedded, texts: int) -> AbstractContextManager[None]:
        """Watch the model at work on so many texts: how long it takes, and whether it fails."""
        del what, texts
        return nullcontext()

    def synced(self, seconds: float, *, has_changed: bool) -> None:
        """Take a sync that succeeded, and whether it changed pages."""

    def equals_head(self) -> None:
        """Note that the index equals HEAD now."""

    def failed(self, what: Failure) -> None:
        """Count a failure."""

    def text(self, state: IndexState) -> str:
        """Give all figures in Prometheus's text format, with the state; `MetricsError` if none are kept."""
        del state
        raise MetricsError(MISSING)


NO_TELEMETRY = Telemetry()


_PLAIN = re.compile(r"[^\s\"=]+")


def logfmt(event: str, **facts: object) -> str:
    """Give an event with its facts: numbers with up to three decimals, truth values in small letters, odd text in quotes."""
    return " ".join(f"{name}={_shown(value)}" for name, value in {"event": event, **facts}.items())


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
