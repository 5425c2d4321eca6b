"""The tools `search` and `fetch`, as required by ChatGPT's connectors and deep research.

Both answer with JSON as text. An id is a page's path, with ``#`` and an anchor for a section.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent
from pydantic import Field

from otterwiki_semantic.content.markdown import truncate_markdown
from otterwiki_semantic.core.humanize import count
from otterwiki_semantic.mcp.backend import Json, WikiBackend
from otterwiki_semantic.mcp.errors import tool_errors
from otterwiki_semantic.mcp.tools import reading_notes

_RESULTS = 10
_EXCERPT = 300
_MAX_TEXT = 24_000
"""Characters of a page per answer: about 6,000 tokens."""


def add_connectors(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add the tools."""

    async def search(query: Annotated[str, Field(description="A question, or words")]) -> CallToolResult:
        """Find sections of the wiki by meaning. Use fetch with their ids."""
        with tool_errors():
            (body,) = await wiki.search([query], {"n": _RESULTS, "markdown": True})
        found = [result for result in body["results"] if result["relevant"]] or body["results"]
        return _json({"results": list(map(_result, found))})

    async def fetch(id: Annotated[str, Field(description="An id from search")]) -> CallToolResult:  # noqa: A002
        """Read a section or a page of the wiki."""
        path, _, anchor = id.partition("#")
        with tool_errors():
            page = await wiki.page(path, {"section": [f"#{anchor}"]} if anchor else {})
        text = truncate_markdown(page["content"], _MAX_TEXT)
        missing = len(page["content"]) - len(text)
        metadata = {
            "path": page["path"],
            "updated": (page.get("last_commit") or {}).get("date"),
            "left_out": f"{count(missing, 'character')}; read_note has the rest" if missing else None,
        }
        known = {name: value for name, value in metadata.items() if value}
        return _json({"id": id, "title": page["title"], "text": text, "url": _url(page, anchor), "metadata": known})

    for tool, title in ((search, "Search"), (fetch, "Fetch")):
        server.add_tool(tool, title=title, annotations=reading_notes(title))


def _result(result: Json) -> Json:
    anchor = result["anchor"]
    return {
        "id": f"{result['path']}#{anchor}" if anchor else result["path"],
        "title": result["breadcrumb"],
        "text": truncate_markdown(result.get("markdown") or result["text"], _EXCERPT),
        "url": _url(result, anchor),
    }


def _url(body: Json, anchor: str) -> str:
    """Return the address of a page or section, or its path if the wiki has no address."""
    url = body.get("url") or body["path"]
    return url if not anchor or "#" in url else f"{url}#{anchor}"


def _json(value: dict[str, Any]) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=json.dumps(value, ensure_ascii=False))])
