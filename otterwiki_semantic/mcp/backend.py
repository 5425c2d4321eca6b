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

    async def search(self, queries: Sequence[str], arguments: Mapping[str, Any]) -> list[Json]: ...
    async def ask(self, question: str) -> Json: ...
    async def pages(self, arguments: Mapping[str, Any]) -> Json: ...
    async def page(self, path: str, arguments: Mapping[str, Any]) -> Json: ...
    async def related(self, path: str, n: int) -> Json: ...
    async def history(self, path: str, limit: int) -> Json: ...
    async def health(self, kind: str, limit: int) -> Json: ...
    async def status(self) -> Json: ...
    async def job(self, job: str) -> Json: ...
    async def reindex(self, pages: Sequence[str], *, full: bool) -> Json: ...
