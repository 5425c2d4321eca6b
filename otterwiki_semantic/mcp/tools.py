"""The read-only tools."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from msgspec import Meta

from otterwiki_semantic.core.parameters import Request, Text, Timestamp
from otterwiki_semantic.core.records import (
    FindingKind,
    HistoryRequest,
    OutlineRequest,
    PageListRequest,
    PageSort,
    ReadRequest,
    RelatedRequest,
    SearchRequest,
)
from otterwiki_semantic.mcp.answers.lists import (
    HistoryAnswer,
    OrphansAnswer,
    PagesAnswer,
    RelatedAnswer,
    history_answer,
    orphans_answer,
    pages_answer,
    related_answer,
)
from otterwiki_semantic.mcp.answers.page import NoteAnswer, SectionsAnswer, note_answer, sections_answer
from otterwiki_semantic.mcp.answers.search import SearchAnswer, search_answer
from otterwiki_semantic.mcp.answers.status import StatusAnswer, status_answer
from otterwiki_semantic.mcp.backend import WikiBackend
from otterwiki_semantic.mcp.budget import SEARCH_MAX_TOKENS
from otterwiki_semantic.mcp.parameters import Tool, with_parameters


class _SearchRequest(SearchRequest, frozen=True):
    """A question or several, and how to search."""

    more_queries: Annotated[tuple[Text, ...], Meta(max_length=8, extra={"repeats": True})] = ()
    """Further questions, answered together; each passage comes once."""


class _NotesRequest(PageListRequest, frozen=True):
    """A part of the list of pages that an agent can read at once."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class _ChangesRequest(Request, frozen=True):
    """Which of the last changes to list."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 20
    """Number of pages."""
    prefix: Text | None = None
    """Only pages whose path starts with this."""
    updated_since: Timestamp | None = None
    """Only since this date or time (ISO 8601, UTC)."""


class _OrphansRequest(Request, frozen=True):
    """How many orphaned pages to list."""

    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    """Number of pages."""


def reading_notes(title: str) -> ToolAnnotations:
    """Return what clients are told of a tool that only reads."""
    return ToolAnnotations(title=title, read_only_hint=True, open_world_hint=False)


def add_tools(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add the read-only tools."""
    _add_reading(_adder(server), wiki)
    _add_lists(_adder(server), wiki)


def _adder(server: MCPServer[None]) -> Callable[..., Callable[[Tool], None]]:
    """Return a decorator that adds a tool, whose arguments are the parameters of a record; see `with_parameters`."""

    def reads(
        title: str, record: type[Request] | None = None, *, without: Collection[str] = (), **defaults: object
    ) -> Callable[[Tool], None]:
        notes = reading_notes(title)
        return lambda tool: server.add_tool(with_parameters(tool, record, without, defaults), title=title, annotations=notes)

    return reads


def _add_reading(reads: Callable[..., Callable[[Tool], None]], wiki: WikiBackend) -> None:
    @reads(
        "Search the wiki",
        _SearchRequest,
        without=(
            "limit",
            "offset",
            "highlight",
            "crop",
            "semantic_ratio",
            "facets",
            "explain",
            "best_sentence",
            "units",
            "markdown",
            "wait_seconds",
            "draft",
            "fields",
            "compat",
        ),
        max_chunks_per_page=4,
        max_tokens=SEARCH_MAX_TOKENS,
    )
    async def semantic_search(q: str, more_queries: str | list[str] | None, max_tokens: int, **options: Any) -> SearchAnswer:
        """Find passages of the wiki that answer a question, by meaning and by keywords, most relevant first.

        Use this first. The passages often answer; if not, read_note with the path and section of one.
        """
        more = [more_queries] if isinstance(more_queries, str) else more_queries or []
        return search_answer(await wiki.search([q, *more], {**options, "markdown": True, "best_sentence": True}), max_tokens)

    @reads("Read a page or section", ReadRequest)
    async def read_note(path: str, max_tokens: int, **parts: Any) -> NoteAnswer:
        """Read the Markdown of a page: sections by heading, some lines, or all of it.

        Of what is too long for max_tokens, it returns the beginning and the sections to ask for.
        """
        return note_answer(await wiki.page(path, parts), max_tokens, parts["revision"])

    @reads("List a page's sections", OutlineRequest)
    async def list_sections(path: str, max_tokens: int) -> SectionsAnswer:
        """Return the table of contents of a page, with lines and words of each section, to choose from before reading."""
        return sections_answer(await wiki.page(path, {}), max_tokens)


def _add_lists(reads: Callable[..., Callable[[Tool], None]], wiki: WikiBackend) -> None:
    @reads("List pages", _NotesRequest)
    async def list_notes(offset: int, max_tokens: int, **filters: Any) -> PagesAnswer:
        """List pages, with title, category, tags, date and length: all, in a folder, with a tag, changed since a date."""
        return pages_answer(await wiki.pages(filters | {"offset": offset}), offset, max_tokens)

    @reads("List recent changes", _ChangesRequest)
    async def recent_changes(max_tokens: int, **filters: Any) -> PagesAnswer:
        """List the pages that changed last."""
        return pages_answer(await wiki.pages({**filters, "sort": PageSort.UPDATED}), 0, max_tokens)

    @reads("Show a page's history", HistoryRequest)
    async def page_history(path: str, limit: int, max_tokens: int) -> HistoryAnswer:
        """List the commits that changed a page; read_note takes them as revision."""
        return history_answer(await wiki.history(path, limit), max_tokens)

    @reads("List orphaned pages", _OrphansRequest)
    async def orphaned_notes(limit: int, max_tokens: int) -> OrphansAnswer:
        """List pages that no other page links to."""
        return orphans_answer(await wiki.health(FindingKind.ORPHAN, limit), max_tokens)

    @reads("Find related pages", RelatedRequest)
    async def related_notes(path: str, n: int, max_tokens: int) -> RelatedAnswer:
        """Return the pages nearest in meaning to a page, and whether it links to them already."""
        return related_answer(await wiki.related(path, n), max_tokens)

    @reads("Show the index's state")
    async def index_status(max_tokens: int) -> StatusAnswer:
        """Return the state of the search index, if answers lack something that should be there."""
        return status_answer(await wiki.status(), max_tokens)
