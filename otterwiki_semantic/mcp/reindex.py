"""The tool `reindex`, the only one that changes something."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from otterwiki_semantic.mcp.answers.status import ReindexAnswer
from otterwiki_semantic.mcp.backend import BackendError, Json, WikiBackend
from otterwiki_semantic.mcp.errors import tool_errors
from otterwiki_semantic.mcp.tools import tool_result

_MAX_FAILURES = 20
_POLL_SECONDS = 0.25
_PAGES_SECONDS = 3.0
"""Longest wait for the sync that reads pages again: `last_sync` has seconds, so that it may look like the one before."""
_MAX_PAGES = 100

Report = Callable[[float, float, str], Awaitable[None]]


def add_reindex(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add the tool `reindex`."""
    notes = ToolAnnotations(
        title="Index again", read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )

    @server.tool(title="Index again", annotations=notes)
    async def reindex(
        ctx: Context[Any, Any],
        pages: Annotated[
            list[str] | None, Field(max_length=_MAX_PAGES, description="Paths of pages to index again; none: build a new index")
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
            follow = _follow_pages if pages else _follow_rebuild
            return tool_result(await follow(wiki, pages or [], full, ctx.report_progress))


async def _follow_rebuild(wiki: WikiBackend, _pages: list[str], full: bool, report: Report) -> ReindexAnswer:
    start = time.monotonic()
    await wiki.reindex((), full=full)
    failures = 0
    while True:
        try:
            status = await wiki.status()
            failures = 0
        except BackendError:  # such as while another daemon takes over; the rebuild may continue
            failures += 1
            if failures > _MAX_FAILURES:
                raise
            await anyio.sleep(_POLL_SECONDS)
            continue
        rebuild: Json = status["rebuild"]
        if rebuild["state"] == "done":
            return ReindexAnswer(state="done", pages=status["pages"], seconds=round(time.monotonic() - start, 1))
        if rebuild["state"] != "running":
            reason = rebuild["error"] or "the index daemon was restarted, and the rebuild is lost"
            raise BackendError(f"the rebuild failed: {reason}; the previous index still serves")
        done, total = rebuild["pages_done"], rebuild["pages_total"]
        await report(done, total, f"{done} of {total} pages")
        await anyio.sleep(_POLL_SECONDS)


async def _follow_pages(wiki: WikiBackend, pages: list[str], _full: bool, report: Report) -> ReindexAnswer:
    start, before = time.monotonic(), (await wiki.status())["last_sync"]
    asked = len((await wiki.reindex(pages, full=False))["pages"])
    while True:
        status, seconds = await wiki.status(), time.monotonic() - start
        is_done = status["status"] == "ready" and not status["pending_pages"]
        if seconds >= _PAGES_SECONDS or (is_done and status["last_sync"] != before):
            return ReindexAnswer(state="done" if is_done else "running", pages=asked, seconds=round(seconds, 1))
        await report(0 if status["last_sync"] == before else max(asked - status["pending_pages"], 0), asked, "reading again")
        await anyio.sleep(_POLL_SECONDS)
