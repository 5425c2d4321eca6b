"""A git repository of markdown, read and searched by this program itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import anyio.to_thread

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import NotFoundError, ParameterError, SemanticError
from otterwiki_semantic.core.parameters import checked_query, search_options, without_ending
from otterwiki_semantic.daemon import (
    NOT_FOUND,
    IndexClient,
    answer_json,
    refreshed_json,
    related_json,
    started_json,
    status_json,
)
from otterwiki_semantic.daemon.page_reader import PageReader
from otterwiki_semantic.mcp.backend import BackendError, Json


class LocalBackend:
    """A `Wiki` that is only a repository and its index; each question is asked in a thread of its own."""

    def __init__(self, index: IndexClient, repository: Repository) -> None:
        self._index = index
        self._reading = PageReader(index, repository)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the index as it is: whoever made it ends it."""

    async def search(self, query: str, arguments: Mapping[str, Any]) -> Json:
        """See `Wiki`."""

        def search() -> Json:
            options = search_options(_given(arguments))
            return answer_json(self._index.search([checked_query(query, "query")], options)[0])

        return await _in_thread(search)

    async def pages(self, arguments: Mapping[str, Any]) -> Json:
        """See `Wiki`."""
        return await _in_thread(partial(self._reading.pages, _given(arguments)))

    async def page(self, path: str, arguments: Mapping[str, Any]) -> Json:
        """See `Wiki`."""
        return await _in_thread(partial(self._reading.page, path, _given(arguments)))

    async def related(self, path: str, n: int) -> Json:
        """See `Wiki`."""
        return await _in_thread(lambda: related_json(self._index.related(without_ending(path), n)))

    async def status(self) -> Json:
        """See `Wiki`."""
        return await _in_thread(lambda: status_json(self._index.status()))

    async def reindex(self, pages: Sequence[str], *, full: bool) -> Json:
        """See `Wiki`."""

        def start() -> Json:
            if pages:
                return refreshed_json(self._index.refresh([without_ending(path) for path in pages]))
            return started_json(self._index.reindex(full=full))

        return await _in_thread(start)


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


async def _in_thread(ask: Callable[[], Json]) -> Json:
    try:
        return await anyio.to_thread.run_sync(ask)
    except NotFoundError as error:
        raise BackendError(str(error), NOT_FOUND[type(error)][0], error.nearest) from error
    except ParameterError as error:
        raise BackendError(str(error), "invalid_parameter") from error
    except SemanticError as error:
        raise BackendError(str(error)) from error
