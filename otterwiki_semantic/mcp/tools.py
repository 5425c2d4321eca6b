"""The read-only tools."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from otterwiki_semantic.core.parameters import Integer
from otterwiki_semantic.core.records import OutlineRequest, PageListRequest, ReadRequest, RelatedRequest, SearchRequest
from otterwiki_semantic.mcp.answers.base import ToolResponse
from otterwiki_semantic.mcp.answers.lists import PagesAnswer, RelatedAnswer, pages_answer, related_answer
from otterwiki_semantic.mcp.answers.outline import SectionsAnswer, sections_answer
from otterwiki_semantic.mcp.answers.page import NoteAnswer, note_answer
from otterwiki_semantic.mcp.answers.search import SearchAnswer, search_answer
from otterwiki_semantic.mcp.answers.status import StatusAnswer, status_answer
from otterwiki_semantic.mcp.backend import WikiBackend
from otterwiki_semantic.mcp.budget import DEFAULT_MAX_TOKENS
from otterwiki_semantic.mcp.errors import tool_errors
from otterwiki_semantic.mcp.parameters import MaxTokens, tool_arguments


def add_tools(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add the read-only tools."""
    _add_search(server, wiki)
    _add_reading(server, wiki)
    _add_overviews(server, wiki)


def tool_result(answer: ToolResponse) -> CallToolResult:
    """Return an answer as text and as structured content."""
    return CallToolResult(content=[TextContent(type="text", text=answer.text())], structured_content=answer.structured())


def _reads(title: str) -> ToolAnnotations:
    return ToolAnnotations(
        title=title, read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )


def _add_search(server: MCPServer[None], wiki: WikiBackend) -> None:
    @server.tool(title="Search the wiki", annotations=_reads("Search the wiki"))
    @tool_arguments(SearchRequest, SearchAnswer, without=("semantic_ratio", "facets", "explain", "wait_seconds", "draft"))
    async def semantic_search(q: str, max_tokens: int, **options: Any) -> CallToolResult:
        """Find passages of the wiki that answer a question, by meaning and by keywords, most relevant first.

        Use this first for any question about the content of the wiki. The passages often answer it; if not, use read_note
        with the path and section of a passage, or its lines and some around them. If confident is false, the wiki
        probably has nothing about it.
        """
        with tool_errors():
            return tool_result(search_answer(await wiki.search(q, options), max_tokens))


def _add_reading(server: MCPServer[None], wiki: WikiBackend) -> None:
    @server.tool(title="Read a page or section", annotations=_reads("Read a page or section"))
    @tool_arguments(ReadRequest, NoteAnswer)
    async def read_note(path: str, max_tokens: int, **parts: Any) -> CallToolResult:
        """Read the Markdown of a page: sections by heading, some lines, or all of it.

        Use it if a passage of semantic_search is not enough, with its section or lines. If the page is too long for
        max_tokens, it returns the beginning and the sections to ask for.
        """
        with tool_errors():
            body = await wiki.page(path, parts)
            return tool_result(note_answer(body, max_tokens, parts["revision"]))

    @server.tool(title="List a page's sections", annotations=_reads("List a page's sections"))
    @tool_arguments(OutlineRequest, SectionsAnswer)
    async def list_sections(path: str, max_tokens: int) -> CallToolResult:
        """Return the table of contents of a page, with the lines and the word count of each section.

        Use it before reading a long page, to choose sections for read_note.
        """
        with tool_errors():
            return tool_result(sections_answer(await wiki.page(path, {}), max_tokens))


def _add_overviews(server: MCPServer[None], wiki: WikiBackend) -> None:
    @server.tool(title="List pages", annotations=_reads("List pages"))
    @tool_arguments(PageListRequest, PagesAnswer, limits={"limit": (Integer(1, 1_000), 100)})
    async def list_notes(offset: int, max_tokens: int, **filters: Any) -> CallToolResult:
        """List pages by path, with title, category, tags, date and length.

        Use it to see which pages exist: in a folder, in a category, changed since a date. To search the content, use
        semantic_search.
        """
        with tool_errors():
            return tool_result(pages_answer(await wiki.pages(filters | {"offset": offset}), offset, max_tokens))

    @server.tool(title="Find related pages", annotations=_reads("Find related pages"))
    @tool_arguments(RelatedRequest, RelatedAnswer)
    async def related_notes(path: str, n: int, max_tokens: int) -> CallToolResult:
        """Return the pages nearest in meaning to a page, and whether it links to them already.

        Use it to explore around a known page, or to suggest links.
        """
        with tool_errors():
            return tool_result(related_answer(await wiki.related(path, n), max_tokens))

    @server.tool(title="Show the index's state", annotations=_reads("Show the index's state"))
    async def index_status(max_tokens: MaxTokens = DEFAULT_MAX_TOKENS) -> Annotated[CallToolResult, StatusAnswer]:
        """Return the state of the search index: whether it is up to date, its size, problems and what to do.

        Use it if answers lack something that should be there.
        """
        with tool_errors():
            return tool_result(status_answer(await wiki.status(), max_tokens))
