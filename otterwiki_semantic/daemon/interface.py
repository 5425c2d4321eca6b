"""The one facade of the index, whoever answers: this process, or the one that owns the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from otterwiki_semantic.core.records import (
    Answer,
    Filters,
    IndexStatus,
    Insight,
    PageInspection,
    PageLinks,
    PageList,
    RebuildStatus,
    RelatedPages,
    SearchOptions,
    WikiMap,
)


class IndexService(Protocol):
    """What can be asked of an index. Errors: those of `otterwiki_semantic.core.errors`."""

    def search(self, queries: Sequence[str], options: SearchOptions) -> list[Answer]:
        """Answer each query with at most `options.n` passages, best first."""
        ...

    def related(self, path: str, n: int) -> RelatedPages:
        """Give at most `n` pages near in meaning to a page; `PageNotFoundError` when the index has no such page."""
        ...

    def status(self) -> IndexStatus:
        """Tell what the index holds and how it is."""
        ...

    def insight(self) -> Insight:
        """Tell how the index works: its syncs, what it takes, and the searches if they are noted."""
        ...

    def inspect_page(self, path: str) -> PageInspection:
        """Give a page as search sees it; `PageNotFoundError` when the index has no such page."""
        ...

    def reindex(self, *, full: bool = False) -> RebuildStatus:
        """Start a rebuild beside the serving index; `RebuildRunningError` while one runs.

        What has not changed is copied; a `full` one reads and divides every page again, and takes over only vectors.
        """
        ...

    def refresh(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Read and divide some pages again in the background; gives their paths. `PageNotFoundError` if one is not there."""
        ...

    def pages(self, filters: Filters, limit: int, offset: int) -> PageList:
        """Give up to `limit` of the pages that pass, by path, from the one at place `offset` on."""
        ...

    def links(self, path: str) -> PageLinks:
        """Tell which pages a page links to, and which link to it; none for a page that the index does not have."""
        ...

    def map(self) -> WikiMap:
        """Give every page's place on the map of the wiki."""
        ...

    def metrics(self) -> str:
        """Give figures of the work in Prometheus's text format; `MetricsError` if none are kept."""
        ...

    def notify(self) -> None:
        """Tell that the repository may have changed; returns at once and never raises."""
        ...
