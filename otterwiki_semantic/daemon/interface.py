"""The calls of an index, implemented by the engine in the daemon and by the client in other processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from otterwiki_semantic.core.parameters import TypedText
from otterwiki_semantic.core.records import (
    NO_CONTEXT,
    NO_URLS,
    Answer,
    AskProgress,
    AskRequest,
    DismissalAnswer,
    DismissalRequest,
    DraftLinks,
    DraftRequest,
    HealthReport,
    HealthRequest,
    IndexStatus,
    Insight,
    PageInspection,
    PageLinks,
    PageList,
    PageListRequest,
    PageUrls,
    RebuildStatus,
    ReindexStarted,
    RelatedPages,
    SearchContext,
    SearchOptions,
    Suggestions,
    SuggestRequest,
    WikiMap,
)


class IndexService(Protocol):
    """What an index can do. Calls are defined only here: client and daemon read names and types from it.

    With `urls` every page in an answer has its URL. Errors: those of `core.errors`.
    """

    def search(
        self,
        queries: Sequence[TypedText],
        options: SearchOptions,
        urls: PageUrls = NO_URLS,
        context: SearchContext = NO_CONTEXT,
    ) -> list[Answer]:
        """Return the best passages for each query."""
        ...

    def ask(self, request: AskRequest, urls: PageUrls = NO_URLS) -> AskProgress:
        """Return the sources of an answer, and begin to write it. Errors: `AnswersDisabledError`, `RateLimitError`."""
        ...

    def ask_progress(self, id_: str, seen: int | None) -> AskProgress:
        """Return the sentences of an answer from the `seen`-th on, as soon as there are any, or after a second.

        With None, return at once all that there is of the answer, as its `result`.
        An answer that is not fetched for five seconds is given up. Errors: `AskNotFoundError`.
        """
        ...

    def cancel_ask(self, id_: str) -> None:
        """Stop writing an answer."""
        ...

    def suggest(self, request: SuggestRequest, urls: PageUrls = NO_URLS) -> Suggestions:
        """Return pages and sections whose names begin with what is being typed, without the model."""
        ...

    def related(self, path: str, n: int, urls: PageUrls = NO_URLS) -> RelatedPages:
        """Return up to `n` pages near in meaning to a page; `PageNotFoundError` if the index has no such page."""
        ...

    def draft_links(self, request: DraftRequest, urls: PageUrls = NO_URLS) -> DraftLinks:
        """Return what a text that is being written could link to."""
        ...

    def version(self) -> str | None:
        """Return what changes whenever an answer may; None while answers may change by themselves, such as during a sync."""
        ...

    def status(self, urls: PageUrls = NO_URLS) -> IndexStatus:
        """Return what the index holds and its state; pages without one of the `urls` are a problem."""
        ...

    def insight(self) -> Insight:
        """Return how the index works: its syncs, its size, and the searches if they are logged."""
        ...

    def inspect_page(self, path: str, urls: PageUrls = NO_URLS) -> PageInspection:
        """Return a page as search sees it; `PageNotFoundError` if the index has no such page."""
        ...

    def reindex(self, *, full: bool = False, embed: bool = False) -> RebuildStatus:
        """Start a rebuild next to the serving index; `RebuildRunningError` while one runs.

        Unchanged pages are copied; a `full` rebuild reads and divides every page again, and reuses only vectors. With `embed`
        it reuses nothing.
        """
        ...

    def roll_back(self) -> ReindexStarted:
        """Let the index serve again that the last change of model or profile replaced, with its settings.

        The index daemon starts again for this. Errors: `RollbackError` if there is none; `RebuildRunningError`.
        """
        ...

    def refresh(self, paths: Sequence[str]) -> ReindexStarted:
        """Read and divide some pages again in the background. `PageNotFoundError` if one is missing."""
        ...

    def job(self, job: str) -> RebuildStatus:
        """Return a rebuild, or a refresh of pages, by its id; `JobNotFoundError` if there is none, or no longer."""
        ...

    def pages(self, request: PageListRequest, urls: PageUrls = NO_URLS) -> PageList:
        """Return the pages that pass the filters, in the order of their paths."""
        ...

    def links(self, path: str) -> PageLinks:
        """Return the links from and to a page; none for an unknown page, `PageExcludedError` for one that is left out."""
        ...

    def map(self, urls: PageUrls = NO_URLS) -> WikiMap:
        """Return the position of every page on the map of the wiki."""
        ...

    def health(self, request: HealthRequest, urls: PageUrls = NO_URLS) -> HealthReport:
        """Return the findings about the wiki; waits a moment for the report if it is not of the index as it is now."""
        ...

    def dismiss(self, request: DismissalRequest) -> DismissalAnswer:
        """Dismiss findings, or restore them. Errors: `FindingNotFoundError`; `DismissalError` if that cannot be stored."""
        ...

    def metrics(self) -> str:
        """Return metrics in Prometheus's text format; `MetricsError` if none are kept."""
        ...

    def notify(self) -> None:
        """Report that the repository may have changed; returns at once and never raises."""
        ...
