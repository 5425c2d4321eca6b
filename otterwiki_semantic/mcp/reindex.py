"""The tool `reindex` with its aliases: the only tool that changes the index."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from otterwiki_semantic.mcp.answers.status import ReindexAnswer
from otterwiki_semantic.mcp.backend import BackendError, WikiBackend
from otterwiki_semantic.mcp.errors import tool_errors

_MAX_FAILURES = 20
_POLL_SECONDS = 0.25
_PAGES_SECONDS = 30.0
"""The longest wait for pages, which may be queued behind a large sync."""
MAX_PAGES = 100

Report = Callable[[float, float, str], Awaitable[None]]


def reindex_notes(title: str) -> ToolAnnotations:
    """Return the annotations of a tool that reindexes."""
    return ToolAnnotations(
        title=title, read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )


def add_reindex(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add the tool `reindex`."""
    notes = reindex_notes("Index again")

    @server.tool(title=notes.title, annotations=notes)
    async def reindex(
        ctx: Context[Any, Any],
        pages: Annotated[
            list[str] | None, Field(max_length=MAX_PAGES, description="Paths of pages to index again; none: build a new index")
        ] = None,
        full: Annotated[bool, Field(description="Read all pages again, including unchanged ones; not with pages")] = False,
    ) -> Annotated[CallToolResult, ReindexAnswer]:
        """Index some pages again, or build a new index next to the serving one, and wait until that is done.

        The index follows the wiki automatically: use this only if index_status shows a problem that asks for it.
        """
        with tool_errors():
            if pages is not None and not pages:
                raise BackendError("pages is empty; leave it out to index everything", "invalid_parameter")
            if pages and full:
                raise BackendError("full and pages cannot be combined", "invalid_parameter")
            return (await follow_reindex(wiki, pages or (), full=full, report=ctx.report_progress)).result()


async def follow_reindex(wiki: WikiBackend, pages: Sequence[str], *, full: bool, report: Report) -> ReindexAnswer:
    """Start a reindex and wait for it: a rebuild without a limit, pages up to `_PAGES_SECONDS`."""
    start, started = time.monotonic(), await wiki.reindex(pages, full=full)
    failures = 0
    while True:
        try:
            job = await wiki.job(started["job"])
            failures = 0
        except BackendError as error:  # such as during a change of the daemon; the job may continue
            if error.code == "job_unknown":
                raise BackendError("the index daemon was restarted, and the reindex is lost; start it again") from None
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
