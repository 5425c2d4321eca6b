"""The read-only tools."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from otterwiki_semantic.core.parameters import Integer, Text, Texts, parameter
from otterwiki_semantic.core.records import OutlineRequest, PageListRequest, ReadRequest, RelatedRequest, SearchRequest
from otterwiki_semantic.mcp.answers.lists import PagesAnswer, RelatedAnswer, pages_answer, related_answer
from otterwiki_semantic.mcp.answers.outline import SectionsAnswer, sections_answer
from otterwiki_semantic.mcp.answers.page import NoteAnswer, note_answer
from otterwiki_semantic.mcp.answers.search import SearchAnswer, search_answer
from otterwiki_semantic.mcp.answers.status import StatusAnswer, status_answer
from otterwiki_semantic.mcp.backend import WikiBackend
from otterwiki_semantic.mcp.budget import SEARCH_MAX_TOKENS
from otterwiki_semantic.mcp.parameters import Tool, with_parameters


@dataclass(frozen=True, slots=True)
class _SearchRequest(SearchRequest):
    """A question or several, and how to search."""

    more_queries: tuple[str, ...] = parameter(
        Texts(Text(), 8), "Further questions, answered together; each passage comes once.", ()
    )


@dataclass(frozen=True, slots=True)
class _NotesRequest(PageListRequest):
    """A part of the list of pages that an agent can read at once."""

    limit: int = parameter(Integer(1, 1_000), "Number of pages.", 100)


def reading_notes(title: str) -> ToolAnnotations:
    """Return what clients are told of a tool that only reads."""
    return ToolAnnotations(title=title, read_only_hint=True, open_world_hint=False)


def add_tools(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add the read-only tools."""

    def reads(
        title: str, record: type | None = None, *, without: Collection[str] = (), **defaults: object
    ) -> Callable[[Tool], None]:
        notes = reading_notes(title)
        return lambda tool: server.add_tool(with_parameters(tool, record, without, defaults), title=title, annotations=notes)

    @reads(
        "Search the wiki",
        _SearchRequest,
        without=("semantic_ratio", "facets", "explain", "best_sentence", "markdown", "wait_seconds", "draft", "compat"),
        max_chunks_per_page=4,
        max_tokens=SEARCH_MAX_TOKENS,
    )
    async def semantic_search(q: str, more_queries: str | list[str] | None, max_tokens: int, **options: Any) -> SearchAnswer:
        """Find passages of the wiki that answer a question, by meaning and by keywords, most relevant first.

        Use this first. The passages often answer; if not, read_note with the path and section of one.
        """
        more = [more_queries] if isinstance(more_queries, str) else more_queries or []
        return search_answer(await wiki.search([q, *more], {**options, "markdown": True}), max_tokens)

    @reads("Read a page or section", ReadRequest)
    async def read_note(path: str, max_tokens: int, **parts: Any) -> NoteAnswer:
        """Read the Markdown of a page: sections by heading, some lines, or all of it.

        Use it if a passage of semantic_search is not enough, with its section or lines. If the page is too long for
        max_tokens, it returns the beginning and the sections to ask for.
        """
        return note_answer(await wiki.page(path, parts), max_tokens, parts["revision"])

    @reads("List a page's sections", OutlineRequest)
    async def list_sections(path: str, max_tokens: int) -> SectionsAnswer:
        """Return the table of contents of a page, with the lines and the word count of each section.

        Use it before reading a long page, to choose sections for read_note.
        """
        return sections_answer(await wiki.page(path, {}), max_tokens)

    @reads("List pages", _NotesRequest)
    async def list_notes(offset: int, max_tokens: int, **filters: Any) -> PagesAnswer:
        """List pages by path, with title, category, tags, date and length.

        Use it to see which pages exist: in a folder, in a category, changed since a date. To search the content, use
        semantic_search.
        """
        return pages_answer(await wiki.pages(filters | {"offset": offset}), offset, max_tokens)

    @reads("Find related pages", RelatedRequest)
    async def related_notes(path: str, n: int, max_tokens: int) -> RelatedAnswer:
        """Return the pages nearest in meaning to a page, and whether it links to them already.

        Use it to explore around a known page, or to suggest links.
        """
        return related_answer(await wiki.related(path, n), max_tokens)

    @reads("Show the index's state")
    async def index_status(max_tokens: int) -> StatusAnswer:
        """Return the state of the search index: whether it is up to date, its size, problems and what to do.

        Use it if answers lack something that should be there.
        """
        return status_answer(await wiki.status(), max_tokens)
