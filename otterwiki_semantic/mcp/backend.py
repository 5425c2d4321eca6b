"""The wiki that agents are answered from, wherever it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

Json = dict[str, Any]


class BackendError(Exception):
    """The wiki cannot answer, or will not; the text is for the agent.

    `code` is the API's, `unavailable` if there was no such answer. `nearest` are the pages or sections that could be meant.
    """

    def __init__(self, message: str, code: str = "unavailable", nearest: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.nearest = tuple(nearest)


class WikiBackend(Protocol):
    """What can be asked of a wiki; use it in an `async with` statement.

    Answers are the JSON of the REST API (see docs/api.md), arguments its parameters; None counts as not given.
    Errors: `BackendError`.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def search(self, query: str, arguments: Mapping[str, Any]) -> Json:
        """Give the passages that answer a query."""
        ...

    async def pages(self, arguments: Mapping[str, Any]) -> Json:
        """Give a list of pages."""
        ...

    async def page(self, path: str, arguments: Mapping[str, Any]) -> Json:
        """Give a page, or parts of it."""
        ...

    async def related(self, path: str, n: int) -> Json:
        """Give the pages near in meaning to one."""
        ...

    async def status(self) -> Json:
        """Tell what the index holds and how it is."""
        ...

    async def reindex(self, pages: Sequence[str], *, full: bool) -> Json:
        """Start to index these pages again, or, without any, to build a new index."""
        ...
