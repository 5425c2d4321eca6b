"""The tools under the names that MCP servers for Markdown files use, so that prompts written for those keep working."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult
from pydantic import Field

from otterwiki_semantic.core.parameters import Integer, QueryText, parameter
from otterwiki_semantic.core.records import MAX_RESULTS
from otterwiki_semantic.mcp.answers.search import SearchAnswer, search_answer
from otterwiki_semantic.mcp.answers.status import ReindexAnswer
from otterwiki_semantic.mcp.backend import WikiBackend
from otterwiki_semantic.mcp.errors import tool_errors
from otterwiki_semantic.mcp.parameters import with_parameters
from otterwiki_semantic.mcp.reindex import MAX_PAGES, follow_reindex, reindex_notes
from otterwiki_semantic.mcp.tools import reading_notes


@dataclass(frozen=True, slots=True)
class _SearchRequest:
    query: str = parameter(QueryText(), "A question or words.")
    num_results: int = parameter(Integer(1, MAX_RESULTS), "Number of results.", 5)


def add_search_alias(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add `search_markdown`, which is `semantic_search`."""

    async def search_markdown(query: str, num_results: int, max_tokens: int) -> SearchAnswer:
        """Find passages of the wiki's Markdown pages that answer a question, by meaning and by keywords, best first.

        The same as semantic_search, which also has filters.
        """
        return search_answer(await wiki.search([query], {"n": num_results, "markdown": True}), max_tokens)

    notes = reading_notes("Search Markdown pages")
    server.add_tool(with_parameters(search_markdown, _SearchRequest), title=notes.title, annotations=notes)


def add_reindex_aliases(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add `reindex_documents` and `update_files`, which are `reindex` without and with pages."""
    notes = reindex_notes("Index all pages again")

    @server.tool(title=notes.title, annotations=notes)
    async def reindex_documents(ctx: Context[Any, Any]) -> Annotated[CallToolResult, ReindexAnswer]:
        """Build a new index next to the serving one, and wait until it is done.

        The same as reindex without pages. The index follows the wiki automatically: this is rarely needed.
        """
        with tool_errors():
            return (await follow_reindex(wiki, (), full=False, report=ctx.report_progress)).result()

    notes = reindex_notes("Index some files again")

    @server.tool(title=notes.title, annotations=notes)
    async def update_files(
        ctx: Context[Any, Any],
        file_paths: Annotated[
            list[str],
            Field(
                min_length=1,
                max_length=MAX_PAGES,
                description="Paths of files in the wiki's repository, such as garden/irrigation.md",
            ),
        ],
    ) -> Annotated[CallToolResult, ReindexAnswer]:
        """Index some files again, as they are in the latest commit, and wait until that is done.

        The same as reindex with pages. The index follows the wiki automatically: this is rarely needed.
        """
        with tool_errors():
            return (await follow_reindex(wiki, file_paths, full=False, report=ctx.report_progress)).result()
