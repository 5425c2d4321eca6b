"""The tools that change pages; only for a running wiki, and only on request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from otterwiki_semantic.mcp.answers.base import REVISION_DIGITS, ToolResponse, short_url
from otterwiki_semantic.mcp.errors import tool_errors
from otterwiki_semantic.mcp.rest_backend import RestBackend
from otterwiki_semantic.mcp.untrusted_text import Markers


class WrittenAnswer(ToolResponse):
    """A saved or deleted page."""

    path: str = Field(description="The page's path")
    revision: str = Field(description="The commit, for the next edit")
    done: str = Field(description="What was done")
    url: str | None = Field(default=None, description="The page's address in the wiki")
    related: list[str] | None = Field(default=None, description="Pages about the subject of a new page")

    def lines(self, markers: Markers) -> list[str]:
        shown = [f"{self.done}, revision {self.revision}"]
        shown += [markers.wrap(self.url, list="address")] if self.url else []
        if self.related:
            shown.append(markers.wrap("\n".join(self.related), list="pages about the same; link to them, or edit them instead"))
        return shown


def add_writing(server: MCPServer[None], wiki: RestBackend) -> None:
    """Add the tools that create, change and delete pages, in the name of the caller's account in the wiki."""

    def changes(title: str, *, deletes: bool = False) -> Callable[[Callable[..., object]], None]:
        notes = ToolAnnotations(title=title, read_only_hint=False, destructive_hint=deletes, open_world_hint=False)
        return lambda tool: server.add_tool(tool, title=title, annotations=notes)

    saved = partial(_saved, wiki)

    @changes("Create a page")
    async def write_note(path: str, text: str, revision: str | None = None, message: str = "") -> CallToolResult:
        """Create a page from Markdown; search first, as it may exist. To replace a page, give its revision from read_note."""
        return await saved("PUT", path, text=text, revision=revision, message=message or None)

    @changes("Edit a page")
    async def edit_note(path: str, revision: str, old: str, new: str, message: str = "") -> CallToolResult:
        """Replace old, which must occur exactly once in the page as read_note returned it at revision, with new."""
        return await saved("PATCH", path, revision=revision, old=old, new=new, message=message or None)

    @changes("Append to a page")
    async def append_note(path: str, text: str, section: str | None = None, message: str = "") -> CallToolResult:
        """Append Markdown to a page or section."""
        return await saved("PATCH", path, append=text, section=section or None, message=message or None)

    @changes("Delete a page", deletes=True)
    async def delete_note(path: str, revision: str, message: str = "") -> CallToolResult:
        """Delete a page as read_note returned it at revision. Keeps subpages, attached files and history."""
        return await saved("DELETE", path, revision=revision, message=message or None)


async def _saved(wiki: RestBackend, method: str, path: str, **given: str | None) -> CallToolResult:
    with tool_errors():
        body = await wiki.write(method, path, {name: value for name, value in given.items() if value is not None})
        done = next((name for name in ("created", "changed") if body.get(name)), "nothing changed")
        if not body["indexed"]:
            done += "; searches find it in a moment"
        return WrittenAnswer(
            path=body["path"],
            revision=body["revision"][:REVISION_DIGITS],
            done=done if "changed" in body else "deleted",
            url=short_url(body),
            related=[f"{each['path']}: {each['title']}" for each in body.get("related") or ()] or None,
        ).result()
