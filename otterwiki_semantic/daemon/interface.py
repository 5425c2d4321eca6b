"""The calls of an index, implemented by the engine in the daemon and by the client in other processes.

`progress_of` and `whole_answer` follow an answer that is being written.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import structs

from otterwiki_semantic.core import records
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.parameter_parsing import TypedText


class IndexService(Protocol):
    """The operations of an index. Calls are defined only here: client and daemon read names and types from it.

    With `urls`, every page in an answer has its URL. Methods raise the errors of `core.errors`.
    """

    def search(
        self,
        queries: Sequence[TypedText],
        options: records.SearchOptions,
        urls: records.PageUrls = records.NO_URLS,
        context: records.SearchContext = records.NO_CONTEXT,
    ) -> list[records.Answer]:
        """Return the best passages for each query."""

    def ask(self, request: records.AskRequest, urls: records.PageUrls = records.NO_URLS) -> records.AskProgress:
        """Return the sources of an answer, and start writing it. Errors: `AnswersDisabledError`, `RateLimitError`."""

    def ask_progress(self, id_: str, seen: int | None) -> records.AskProgress:
        """Return the sentences from the `seen`-th on, as soon as there are any, or after a second; with None, the whole answer.

        An answer that is not fetched for five seconds is cancelled. Errors: `AskNotFoundError`.
        """

    def cancel_ask(self, id_: str) -> None:
        """Stop writing an answer."""

    def suggest(self, request: records.SuggestRequest, urls: records.PageUrls = records.NO_URLS) -> records.Suggestions:
        """Return pages and sections whose names begin with the typed text, without the model."""

    def related(self, path: str, n: int, urls: records.PageUrls = records.NO_URLS) -> records.RelatedPages:
        """Return up to `n` pages related in meaning to a page; `PageNotFoundError` if the index has no such page."""

    def draft_links(self, request: records.DraftRequest, urls: records.PageUrls = records.NO_URLS) -> records.DraftLinks:
        """Return suggested links for a text that is being written."""

    def version(self) -> str | None:
        """Return a token that changes whenever an answer could, or None while answers can change without one (in a sync)."""

    def status(self, urls: records.PageUrls = records.NO_URLS) -> records.IndexStatus:
        """Return the contents and the state of the index; pages without one of the `urls` are reported as a problem."""

    def insight(self) -> records.Insight:
        """Return statistics: syncs, sizes, and searches if they are logged."""

    def inspect_page(self, path: str, urls: records.PageUrls = records.NO_URLS) -> records.PageInspection:
        """Return a page as search sees it; `PageNotFoundError` if the index has no such page."""

    def reindex(self, *, full: bool = False, embed: bool = False) -> records.ReindexStarted:
        """Start a rebuild next to the serving index; `RebuildRunningError` while one runs.

        Unchanged pages are copied, unless `full`; unchanged vectors are copied, unless `embed`.
        """

    def roll_back(self) -> records.ReindexStarted:
        """Restart the daemon with the index and settings that the last change replaced. Errors: `RollbackError`."""

    def refresh(self, paths: Sequence[str]) -> records.ReindexStarted:
        """Read and chunk some pages again in the background. `PageNotFoundError` if one is missing."""

    def job(self, job: str) -> records.RebuildStatus:
        """Return a rebuild, or a refresh of pages, by its id; `JobNotFoundError` if it is unknown or has expired."""

    def pages(self, request: records.PageListRequest, urls: records.PageUrls = records.NO_URLS) -> records.PageList:
        """Return the pages that pass the filters, sorted by path."""

    def links(self, path: str) -> records.PageLinks:
        """Return the links from and to a page; none for an unknown page, `PageExcludedError` for an excluded one."""

    def map(self, urls: records.PageUrls = records.NO_URLS) -> records.WikiMap:
        """Return the position of every page on the map of the wiki."""

    def health(self, request: records.HealthRequest, urls: records.PageUrls = records.NO_URLS) -> records.HealthReport:
        """Return the health findings; waits briefly if the report is older than the index."""

    def dismiss(self, request: records.DismissalRequest) -> records.DismissalAnswer:
        """Dismiss findings, or restore them. Errors: `FindingNotFoundError`; `DismissalError` if that cannot be stored."""

    def metrics(self) -> str:
        """Return metrics in Prometheus's text format; `MetricsError` if none are kept."""

    def notify(self) -> None:
        """Report that the repository may have changed; returns at once and never raises."""


def progress_of(
    index: IndexService, started: records.AskProgress, has_enough: Callable[[], str | None] = lambda: None
) -> Generator[records.AskProgress]:
    """Yield the news of an answer, at least once a second, and finally all of it. If the caller stops, the answer is cancelled.

    It is also cancelled when the reader `has_enough`: the final value is then the text so far, with this reason. Raises
    errors of the index.
    """
    answer, is_done = started.result, False
    assert answer is not None
    try:
        while not is_done:
            if reason := has_enough():
                yield records.AskProgress(started.id, result=structs.replace(answer, message=reason), done=True)
                return
            progress = index.ask_progress(started.id, len(answer.answer))
            answer = progress.result or structs.replace(answer, answer=(*answer.answer, *progress.answer))
            is_done = progress.done
            yield progress
    finally:
        if not is_done:
            with suppress(SemanticError):
                index.cancel_ask(started.id)


def whole_answer(
    index: IndexService, started: records.AskProgress, has_enough: Callable[[], str | None] = lambda: None
) -> records.GroundedAnswer:
    """Wait for the end of an answer, or until the reader `has_enough`, and return it. Raises errors of the index."""
    *_, last = progress_of(index, started, has_enough)
    assert last.result is not None
    return last.result
