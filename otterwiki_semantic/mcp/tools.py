"""The tools that ask the wiki; none of them changes anything."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from otterwiki_semantic.core.parameters import (
    DEFAULT_CHUNKS_PER_PAGE,
    DEFAULT_RELATED,
    DEFAULT_RESULTS,
    MAX_AROUND,
    MAX_CHUNKS_PER_PAGE,
    MAX_CONTEXT,
    MAX_QUERY_CHARACTERS,
    MAX_RESULTS,
    MAX_TAGS,
)
from otterwiki_semantic.mcp.answers.base import Answer
from otterwiki_semantic.mcp.answers.lists import PagesAnswer, RelatedAnswer, pages_answer, related_answer
from otterwiki_semantic.mcp.answers.outline import SectionsAnswer, sections_answer
from otterwiki_semantic.mcp.answers.page import NoteAnswer, note_answer
from otterwiki_semantic.mcp.answers.search import SearchAnswer, search_answer
from otterwiki_semantic.mcp.answers.status import StatusAnswer, status_answer
from otterwiki_semantic.mcp.backend import WikiBackend
from otterwiki_semantic.mcp.budget import DEFAULT_MAX_TOKENS, LEAST_MAX_TOKENS, MOST_MAX_TOKENS
from otterwiki_semantic.mcp.errors import told_to_agent

_MOST_LISTED = 1_000


def add_tools(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add the tools that ask `wiki`."""
    _add_search(server, wiki)
    _add_reading(server, wiki)
    _add_overviews(server, wiki)


def tool_result(answer: Answer) -> CallToolResult:
    """Give an answer as text and as structured content."""
    return CallToolResult(content=[TextContent(type="text", text=answer.text())], structured_content=answer.structured())


def _reads(title: str) -> ToolAnnotations:
    return ToolAnnotations(
        title=title, read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )


def _add_search(server: MCPServer[None], wiki: WikiBackend) -> None:
    @server.tool(title="Search the wiki", annotations=_reads("Search the wiki"))
    async def semantic_search(
        query: Annotated[
            str,
            Field(
                min_length=1,
                max_length=MAX_QUERY_CHARACTERS,
                description='A question or words; "exact words" must stand in a passage, a -word must not',
            ),
        ],
        n: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="Passages at most")] = DEFAULT_RESULTS,
        mode: Annotated[
            Literal["hybrid", "semantic", "keyword"], Field(description="Rank by meaning and words, or by one of them")
        ] = "hybrid",
        category: Category = None,
        tags: Tags = None,
        path: Annotated[str | None, Field(description="Only pages whose path begins so, such as garden/")] = None,
        updated_since: UpdatedSince = None,
        min_similarity: Annotated[
            float | None, Field(ge=-1, le=1, description="Only passages with at least this cosine similarity")
        ] = None,
        max_chunks_per_page: Annotated[
            int, Field(ge=1, le=MAX_CHUNKS_PER_PAGE, description="Passages of one page at most; 1 to find pages")
        ] = DEFAULT_CHUNKS_PER_PAGE,
        diversity: Annotated[float, Field(ge=0, le=1, description="0 best first, 1 as different as they can be")] = 0.0,
        context: Annotated[int, Field(ge=0, le=MAX_CONTEXT, description="Passages before and after each to show, too")] = 0,
        rerank: Annotated[
            bool | None, Field(description="Let the wiki's reranker order the best passages; unset: if that is fast")
        ] = None,
        wait: Annotated[bool, Field(description="Wait until the wiki's latest change can be found")] = False,
        max_tokens: MaxTokens = DEFAULT_MAX_TOKENS,
    ) -> Annotated[CallToolResult, SearchAnswer]:
        """Find the passages of the wiki that answer a question, by meaning and by words, the most relevant first.

        Use this first for any question about what the wiki says. The passages often answer it already; if not, read_note
        takes the path and section of a passage, or its lines with some around them. If confident is false, the wiki
        probably has nothing about it.
        """
        asked: dict[str, Any] = {
            "n": n,
            "mode": mode,
            "category": category,
            "tag": tags,
            "path": path,
            "updated_since": updated_since,
        }
        asked |= {"min_similarity": min_similarity, "max_chunks_per_page": max_chunks_per_page, "diversity": diversity}
        with told_to_agent():
            body = await wiki.search(query, asked | {"context": context, "rerank": rerank, "wait": wait or None})
            return tool_result(search_answer(body, max_tokens))


def _add_reading(server: MCPServer[None], wiki: WikiBackend) -> None:
    @server.tool(title="Read a page or section", annotations=_reads("Read a page or section"))
    async def read_note(
        path: Path,
        section: Annotated[
            str | list[str] | None,
            Field(description="A section's heading, or several; with the headings above it if it is not unique: A > B"),
        ] = None,
        lines: Annotated[str | None, Field(description="Lines of the page, such as 12-40; after the sections, if any")] = None,
        around: Annotated[int, Field(ge=0, le=MAX_AROUND, description="With lines: so many more before and after them")] = 0,
        revision: Annotated[str | None, Field(description="A commit, to read the page as it was then")] = None,
        max_tokens: MaxTokens = DEFAULT_MAX_TOKENS,
    ) -> Annotated[CallToolResult, NoteAnswer]:
        """Read a page's markdown: sections by their headings, some lines, or all of it.

        Use it when a passage that semantic_search found is not enough, and ask for the section or the lines it names. Of a
        page that is too long for max_tokens it gives the beginning, and the sections to ask for.
        """
        asked = {"section": section, "lines": lines, "revision": revision}
        with told_to_agent():
            body = await wiki.page(path, asked | {"around": around if lines else None})
            return tool_result(note_answer(body, max_tokens, revision))

    @server.tool(title="List a page's sections", annotations=_reads("List a page's sections"))
    async def list_sections(
        path: Path, max_tokens: MaxTokens = DEFAULT_MAX_TOKENS
    ) -> Annotated[CallToolResult, SectionsAnswer]:
        """Give a page's table of contents, with the lines and words of each section.

        Use it before reading a long page, to choose the sections for read_note.
        """
        with told_to_agent():
            return tool_result(sections_answer(await wiki.page(path, {}), max_tokens))


def _add_overviews(server: MCPServer[None], wiki: WikiBackend) -> None:
    @server.tool(title="List pages", annotations=_reads("List pages"))
    async def list_notes(
        prefix: Annotated[str | None, Field(description="Only pages whose path begins so, such as garden/")] = None,
        category: Category = None,
        tags: Tags = None,
        updated_since: UpdatedSince = None,
        limit: Annotated[int, Field(ge=1, le=_MOST_LISTED, description="Pages at most")] = 100,
        offset: Annotated[int, Field(ge=0, description="Pages to pass over")] = 0,
        max_tokens: MaxTokens = DEFAULT_MAX_TOKENS,
    ) -> Annotated[CallToolResult, PagesAnswer]:
        """List the wiki's pages by path, with title, category, tags, date and length.

        Use it to see what there is: a folder, a category, what changed since a date. To find what pages say, use
        semantic_search.
        """
        asked = {"prefix": prefix, "category": category, "tag": tags, "updated_since": updated_since}
        with told_to_agent():
            body = await wiki.pages(asked | {"limit": limit, "offset": offset})
            return tool_result(pages_answer(body, offset, max_tokens))

    @server.tool(title="Find related pages", annotations=_reads("Find related pages"))
    async def related_notes(
        path: Path,
        n: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="Pages at most")] = DEFAULT_RELATED,
        max_tokens: MaxTokens = DEFAULT_MAX_TOKENS,
    ) -> Annotated[CallToolResult, RelatedAnswer]:
        """Give the pages nearest in meaning to a page, and whether it links to them already.

        Use it to explore around a page you know, or to suggest links.
        """
        with told_to_agent():
            return tool_result(related_answer(await wiki.related(path, n), max_tokens))

    @server.tool(title="Show the index's state", annotations=_reads("Show the index's state"))
    async def index_status(max_tokens: MaxTokens = DEFAULT_MAX_TOKENS) -> Annotated[CallToolResult, StatusAnswer]:
        """Tell how the search index is: whether it is as new as the wiki, its size, and any problems with their cures.

        Use it when answers lack what should be there.
        """
        with told_to_agent():
            return tool_result(status_answer(await wiki.status(), max_tokens))


MaxTokens = Annotated[
    int, Field(ge=LEAST_MAX_TOKENS, le=MOST_MAX_TOKENS, description="About how many tokens the answer may take at most")
]
Path = Annotated[str, Field(description="A page's path, such as garden/irrigation; its case does not matter")]
Category = Annotated[str | None, Field(description="Only pages of this category")]
Tags = Annotated[list[str] | None, Field(max_length=MAX_TAGS, description="Only pages that have all of these tags")]
UpdatedSince = Annotated[str | None, Field(description="Only pages changed since this date or time (ISO 8601)")]

__all__ = ["DEFAULT_MAX_TOKENS", "Category", "MaxTokens", "Path", "Tags", "UpdatedSince"]
