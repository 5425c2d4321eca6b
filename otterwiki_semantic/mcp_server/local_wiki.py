"""A git repository of markdown, read and searched by this program itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import anyio.to_thread

from otterwiki_semantic.errors import (
    NotFoundError,
    PageUnknownError,
    SectionAmbiguousError,
    SectionUnknownError,
    SemanticError,
)
from otterwiki_semantic.mcp_server.wiki import Json, WikiError
from otterwiki_semantic.parameters import checked_query, search_options
from otterwiki_semantic.presentation import answer_json, rebuild_json, related_json, status_json
from otterwiki_semantic.reading import Reading
from otterwiki_semantic.remote_index import RemoteIndex
from otterwiki_semantic.repository import Repository

_CODES: dict[type[NotFoundError], str] = {
    PageUnknownError: "page_unknown",
    SectionUnknownError: "section_unknown",
    SectionAmbiguousError: "section_ambiguous",
}


class LocalWiki:
    """A `Wiki` that is only a repository and its index; each question is asked in a thread of its own."""

    def __init__(self, index: RemoteIndex, repository: Repository) -> None:
        self._index = index
        self._reading = Reading(index, repository)

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
        return await _in_thread(lambda: related_json(self._index.related(path, n)))

    async def status(self) -> Json:
        """See `Wiki`."""
        return await _in_thread(lambda: status_json(self._index.status()))

    async def reindex(self, pages: Sequence[str], *, full: bool) -> Json:
        """See `Wiki`."""

        def start() -> Json:
            if pages:
                return {"status": "started", "pages": list(self._index.refresh(list(pages)))}
            return {"status": "started", "estimate": rebuild_json(self._index.reindex(full=full))["estimate"]}

        return await _in_thread(start)


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


async def _in_thread(ask: Callable[[], Json]) -> Json:
    try:
        return await anyio.to_thread.run_sync(ask)
    except NotFoundError as error:
        raise WikiError(str(error), _CODES.get(type(error), "unavailable"), error.nearest) from error
    except SemanticError as error:
        raise WikiError(str(error)) from error
