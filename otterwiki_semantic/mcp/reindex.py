"""The tool `reindex`: the only tool that changes the index."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from otterwiki_semantic.core.humanize import count
from otterwiki_semantic.mcp.answers.base import ToolResponse
from otterwiki_semantic.mcp.backend import BackendError, WikiBackend
from otterwiki_semantic.mcp.errors import tool_errors
from otterwiki_semantic.mcp.untrusted_text import Markers

_MAX_FAILURES = 20
_POLL_SECONDS = 0.25
_PAGES_SECONDS = 30.0
"""The longest wait for pages, which may be queued behind a large sync."""
_MAX_PAGES = 100


class ReindexAnswer(ToolResponse):
    """The result of `reindex`."""

    state: str = Field(description="done, or running: it continues in the background, see index_status")
    pages: int = Field(description="Pages that were reindexed, or are in the index now")
    seconds: float = Field(description="Seconds waited")

    def lines(self, _markers: Markers) -> list[str]:
        return [f"{self.state} after {self.seconds:.1f} s: {count(self.pages, 'page')}"]


def add_reindex(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add the tool `reindex`."""
    title = "Index again"
    notes = ToolAnnotations(
        title=title, read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )

    @server.tool(title=title, annotations=notes)
    async def reindex(
        ctx: Context[Any, Any],
        pages: Annotated[
            list[str] | None, Field(max_length=_MAX_PAGES, description="Paths of pages; by default, a new index is built")
        ] = None,
        full: Annotated[bool, Field(description="Read unchanged pages again, too; not with pages")] = False,
    ) -> Annotated[CallToolResult, ReindexAnswer]:
        """Reindex some pages, or build a new index next to the serving one, and wait until it is done.

        The index follows the wiki automatically: use this only for a problem that index_status shows.
        """
        with tool_errors():
            if pages is not None and not pages:
                raise BackendError("pages is empty; leave it out to index everything", "invalid_parameter")
            if pages and full:
                raise BackendError("full and pages cannot be combined", "invalid_parameter")
            return (await _follow(wiki, pages or (), full=full, report=ctx.report_progress)).result()


async def _follow(
    wiki: WikiBackend, pages: Sequence[str], *, full: bool, report: Callable[[float, float, str], Awaitable[None]]
) -> ReindexAnswer:
    """Start a reindex and wait for it: a rebuild without a limit, pages up to `_PAGES_SECONDS`."""
    start, started = time.monotonic(), await wiki.reindex(pages, full=full)
    failures = 0
    while True:
        try:
            job = await wiki.job(started["job"])
            failures = 0
        except BackendError as error:  # such as during a change of the daemon; the job may continue
            if error.code == "job_unknown":
                raise BackendError("the index daemon was restarted; start the reindex again") from None
            failures += 1
            if failures > _MAX_FAILURES:
                raise
            await anyio.sleep(_POLL_SECONDS)
            continue
        seconds, done, total = round(time.monotonic() - start, 1), job["pages_done"], job["pages_total"]
        if job["state"] == "failed":
            raise BackendError(f"the reindex failed: {job['error']}; the previous index still serves")
        if job["state"] == "done" or (pages and seconds >= _PAGES_SECONDS):
            return ReindexAnswer(state=job["state"], pages=total, seconds=seconds)
        await report(done, total, f"{done} of {total} pages")
        await anyio.sleep(_POLL_SECONDS)
