"""The wiki behind the MCP server: the calls of its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Json = dict[str, Any]


class BackendError(Exception):
    """The wiki cannot answer, or refuses to; the message is for the agent."""

    def __init__(self, message: str, code: str = "unavailable", nearest: Sequence[str] = (), diff: str = "") -> None:
        super().__init__(message)
        self.code = code
        """The error code of the REST API; `unavailable` if the wiki did not answer."""
        self.nearest = tuple(nearest)
        """Pages or sections that may be meant."""
        self.diff = diff
        """The changes to a page since it was read."""


class WikiBackend(Protocol):
    """A wiki that answers with the JSON of the REST API (docs/api.md).

    Arguments are the parameters of the API, or None to omit them. Methods raise `BackendError`.
    """

    async def search(self, queries: Sequence[str], arguments: Mapping[str, Any]) -> list[Json]:
        """Return the passages that answer each query."""
        ...

    async def ask(self, question: str) -> Json:
        """Return the wiki's own answer to a question."""
        ...

    async def pages(self, arguments: Mapping[str, Any]) -> Json:
        """List pages."""
        ...

    async def page(self, path: str, arguments: Mapping[str, Any]) -> Json:
        """Return a page, or parts of it."""
        ...

    async def related(self, path: str, n: int) -> Json:
        """Return the pages related in meaning to a page."""
        ...

    async def history(self, path: str, limit: int) -> Json:
        """Return the last commits that changed a page."""
        ...

    async def health(self, kind: str, limit: int) -> Json:
        """Return health findings of a kind."""
        ...

    async def status(self) -> Json:
        """Return the state of the index."""
        ...

    async def job(self, job: str) -> Json:
        """Return the progress of a reindex, by the `job` that its start returned."""
        ...

    async def reindex(self, pages: Sequence[str], *, full: bool) -> Json:
        """Reindex these pages or, without any, build a new index."""
        ...
