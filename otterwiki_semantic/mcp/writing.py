"""The tools that change pages; only for a running wiki, and only on request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from otterwiki_semantic.mcp.answers.base import REVISION_DIGITS, ToolResponse, short_url
from otterwiki_semantic.mcp.backend import Json
from otterwiki_semantic.mcp.errors import tool_errors
from otterwiki_semantic.mcp.rest_backend import RestBackend
from otterwiki_semantic.mcp.untrusted_text import Markers


class WrittenAnswer(ToolResponse):
    """A page as it was saved."""

    path: str = Field(description="The page's path")
    revision: str = Field(description="The commit that has it; the next edit takes it")
    done: str = Field(description="What was done")
    url: str | None = Field(default=None, description="The page's address in the wiki")
    related: list[str] | None = Field(
        default=None, description="Of a new page: pages about the same, to link to or to merge with"
    )

    def lines(self, markers: Markers) -> list[str]:
        shown = [f"{self.done}, revision {self.revision}"]
        shown += [markers.wrap(self.url, list="address")] if self.url else []
        shown += (
            [markers.wrap("\n".join(self.related), list="pages about the same; link to them, or edit them instead")]
            if self.related
            else []
        )
        return shown


class DeletedAnswer(ToolResponse):
    """A page that was deleted."""

    path: str = Field(description="The page's path")
    revision: str = Field(description="The commit that deleted it; its parent has the page")

    def lines(self, _: Markers) -> list[str]:
        return [f"deleted, revision {self.revision}"]


def add_writing(server: MCPServer[None], wiki: RestBackend) -> None:
    """Add the tools that create and change pages, in the name of the caller's account in the wiki."""

    def changes(title: str, *, deletes: bool = False) -> Callable[[Callable[..., object]], None]:
        notes = ToolAnnotations(title=title, read_only_hint=False, destructive_hint=deletes, open_world_hint=False)
        return lambda tool: server.add_tool(tool, title=title, annotations=notes)

    @changes("Create a page")
    async def write_note(path: str, text: str, revision: str | None = None, message: str = "") -> CallToolResult:
        """Create a page from Markdown; with the revision of an existing one, replace it. Search first: it may exist."""
        return await _saved(wiki.write(path, _given(text=text, revision=revision, message=message or None)))

    @changes("Edit a page")
    async def edit_note(path: str, revision: str, old: str, new: str, message: str = "") -> CallToolResult:
        """Replace text of a page: old stands there exactly once, as read_note returned it at revision."""
        return await _saved(wiki.edit(path, _given(revision=revision, old=old, new=new, message=message or None)))

    @changes("Append to a page")
    async def append_note(path: str, text: str, section: str | None = None, message: str = "") -> CallToolResult:
        """Add Markdown at the end of a page, or of a section."""
        return await _saved(wiki.edit(path, _given(append=text, section=section or None, message=message or None)))

    @changes("Delete a page", deletes=True)
    async def delete_note(path: str, revision: str, message: str = "") -> CallToolResult:
        """Delete a page as read_note returned it at revision; its subpages and attached files stay. Git still has it."""
        with tool_errors():
            body = await wiki.delete(path, _given(revision=revision, message=message or None))
            return DeletedAnswer(path=body["path"], revision=body["revision"][:REVISION_DIGITS]).result()


def _given(**values: str | None) -> Json:
    return {name: value for name, value in values.items() if value is not None}


async def _saved(saving: Awaitable[Json]) -> CallToolResult:
    with tool_errors():
        body = await saving
        done = "created" if body["created"] else "changed" if body["changed"] else "nothing changed"
        return WrittenAnswer(
            path=body["path"],
            revision=body["revision"][:REVISION_DIGITS],
            done=done if body["indexed"] else f"{done}; searches find it in a moment",
            url=short_url(body),
            related=[f"{each['path']}: {each['title']}" for each in body.get("related") or ()] or None,
        ).result()
