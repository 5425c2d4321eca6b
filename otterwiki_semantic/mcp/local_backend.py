"""A git repository of Markdown pages, without a running wiki."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import anyio.to_thread

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import NotFoundError, ParameterError, SemanticError
from otterwiki_semantic.core.parameters import QueryText, page_path, parse_parameters
from otterwiki_semantic.core.records import PageListRequest, PageRequest, ReindexStarted, SearchOptions
from otterwiki_semantic.core.serialization import to_builtins
from otterwiki_semantic.daemon import IndexClient
from otterwiki_semantic.daemon.page_reader import PageReader
from otterwiki_semantic.mcp.backend import BackendError, Json


class LocalBackend:
    """A `WikiBackend` of a repository and its index; blocking calls run in threads."""

    def __init__(self, index: IndexClient, repository: Repository) -> None:
        self._index = index
        self._pages = PageReader(index, repository)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: the caller closes the index."""

    async def search(self, query: str, arguments: Mapping[str, Any]) -> Json:
        def search() -> Any:
            text = QueryText().parse(query, "query")
            return to_builtins(self._index.search([text], parse_parameters(SearchOptions, arguments))[0])

        return await _in_thread(search)

    async def pages(self, arguments: Mapping[str, Any]) -> Json:
        return await _in_thread(lambda: to_builtins(self._index.pages(parse_parameters(PageListRequest, arguments))))

    async def page(self, path: str, arguments: Mapping[str, Any]) -> Json:
        return await _in_thread(lambda: to_builtins(self._pages.page(path, parse_parameters(PageRequest, arguments))))

    async def related(self, path: str, n: int) -> Json:
        return await _in_thread(lambda: to_builtins(self._index.related(page_path(path), n)))

    async def status(self) -> Json:
        return await _in_thread(lambda: to_builtins(self._index.status()))

    async def reindex(self, pages: Sequence[str], *, full: bool) -> Json:
        def start() -> Any:
            if pages:
                return to_builtins(ReindexStarted("started", pages=self._index.refresh([page_path(path) for path in pages])))
            return to_builtins(ReindexStarted("started", estimate=self._index.reindex(full=full).estimate))

        return await _in_thread(start)


async def _in_thread(ask: Callable[[], Json]) -> Json:
    try:
        return await anyio.to_thread.run_sync(ask)
    except NotFoundError as error:
        raise BackendError(str(error), error.code, error.nearest) from error
    except ParameterError as error:
        raise BackendError(str(error), "invalid_parameter") from error
    except SemanticError as error:
        raise BackendError(str(error)) from error
