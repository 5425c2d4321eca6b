"""The read-only tools. Their arguments are generated from request records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import Parameter as Argument
from inspect import Signature
from typing import Annotated, Any, Literal, get_type_hints

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from msgspec import Meta
from pydantic import Field

from otterwiki_semantic.core.parameter_parsing import Parameter, Request, Text, Timestamp, parameters_of
from otterwiki_semantic.core.records import (
    FindingKind,
    HistoryRequest,
    OutlineRequest,
    PageListRequest,
    PageSort,
    ReadRequest,
    RelatedRequest,
    SearchRequest,
    numbered_sources,
)
from otterwiki_semantic.core.serialization import Schema
from otterwiki_semantic.mcp.answers import lists
from otterwiki_semantic.mcp.answers.base import ToolResponse
from otterwiki_semantic.mcp.answers.page import NoteAnswer, SectionsAnswer, note_answer, sections_answer
from otterwiki_semantic.mcp.answers.search import SearchAnswer, search_answer
from otterwiki_semantic.mcp.backend import Json, WikiBackend
from otterwiki_semantic.mcp.errors import tool_errors
from otterwiki_semantic.mcp.untrusted_text import Markers

DEFAULT_MAX_TOKENS = 1_500
_SEARCH_MAX_TOKENS = 900
"""The budget for passages; the rest of a small budget is for reading a section afterwards."""
_MaxTokens = Annotated[int, Field(ge=100, le=100_000, description="Size of the answer")]
_BUDGET = Argument("max_tokens", Argument.KEYWORD_ONLY, default=DEFAULT_MAX_TOKENS, annotation=_MaxTokens)
_JSON_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": str | list[str]}
_ARGUMENTS = {"q": "query", "tag": "tags"}
"""The agents' names of parameters that are short in URLs."""
_LIMITS = {"minimum": "ge", "maximum": "le", "minLength": "min_length", "maxLength": "max_length"}
_NOT_FOR_AGENTS = frozenset(
    {"limit", "offset", "highlight", "crop", "semantic_ratio", "facets", "explain", "best_sentence", "units", "markdown"}
    | {"wait_seconds", "draft", "fields", "compat"}
)
"""Parameters of a search that its tool does not have."""


class _SearchRequest(SearchRequest, frozen=True):
    more_queries: Annotated[tuple[Text, ...], Meta(max_length=8, extra={"repeats": True})] = ()
    """Further questions; each passage is returned once."""


class _NotesRequest(PageListRequest, frozen=True):
    """A part of the list of pages that an agent can read at once."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class _ChangesRequest(Request, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 20
    """Number of pages."""
    prefix: Text | None = None
    """Only pages whose path starts with this."""
    updated_since: Timestamp | None = None
    """Only since this date or time (ISO 8601, UTC)."""


class _OrphansRequest(Request, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    """Number of pages."""


def reading_notes(title: str) -> ToolAnnotations:
    """Return the annotations of a tool that only reads."""
    return ToolAnnotations(title=title, read_only_hint=True, open_world_hint=False)


Tool = Callable[..., Awaitable[ToolResponse]]


def _adder(server: MCPServer[None], title: str, record: type[Request] = Request, **defaults: object) -> Callable[[Tool], None]:
    """Return a decorator that adds a tool with the parameters of a record."""
    notes = reading_notes(title)
    return lambda tool: server.add_tool(_with_parameters(tool, record, defaults), title=title, annotations=notes)


def add_tools(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add the read-only tools."""
    reads = partial(_adder, server)

    @reads("Search the wiki", _SearchRequest, max_chunks_per_page=4, max_tokens=_SEARCH_MAX_TOKENS)
    async def semantic_search(q: str, more_queries: str | list[str] | None, max_tokens: int, **options: Any) -> SearchAnswer:
        """Find passages of the wiki that answer a question, by meaning and keywords. Use this first.

        If the passages are not enough, use read_note with the path and section of one.
        """
        more = [more_queries] if isinstance(more_queries, str) else more_queries or []
        return search_answer(await wiki.search([q, *more], {**options, "markdown": True, "best_sentence": True}), max_tokens)

    @reads("Read a page or section", ReadRequest)
    async def read_note(path: str, max_tokens: int, **parts: Any) -> NoteAnswer:
        """Read a page in Markdown: all of it, sections by heading, or lines.

        If the text exceeds max_tokens, the beginning is returned, with the sections to choose from.
        """
        return note_answer(await wiki.page(path, parts), max_tokens, parts["revision"])

    @reads("List a page's sections", OutlineRequest)
    async def list_sections(path: str, max_tokens: int) -> SectionsAnswer:
        """Return the table of contents of a page, with lines and words of each section."""
        return sections_answer(await wiki.page(path, {}), max_tokens)

    @reads("List pages", _NotesRequest)
    async def list_notes(offset: int, max_tokens: int, **filters: Any) -> lists.PagesAnswer:
        """List pages by folder, tag or date of change, with title, category, tags, date and length."""
        return lists.pages_answer(await wiki.pages(filters | {"offset": offset}), offset, max_tokens)

    @reads("List recent changes", _ChangesRequest)
    async def recent_changes(max_tokens: int, **filters: Any) -> lists.PagesAnswer:
        """List the most recently changed pages."""
        return lists.pages_answer(await wiki.pages({**filters, "sort": PageSort.UPDATED}), 0, max_tokens)

    @reads("Show a page's history", HistoryRequest)
    async def page_history(path: str, limit: int, max_tokens: int) -> lists.HistoryAnswer:
        """List the commits that changed a page, as revisions for read_note."""
        return lists.history_answer(await wiki.history(path, limit), max_tokens)

    @reads("List orphaned pages", _OrphansRequest)
    async def orphaned_notes(limit: int, max_tokens: int) -> lists.OrphansAnswer:
        """List pages that no other page links to."""
        return lists.orphans_answer(await wiki.health(FindingKind.ORPHAN, limit), max_tokens)

    @reads("Find related pages", RelatedRequest)
    async def related_notes(path: str, n: int, max_tokens: int) -> lists.RelatedAnswer:
        """Find the pages nearest in meaning to a page, and whether it links to them."""
        return lists.related_answer(await wiki.related(path, n), max_tokens)

    @reads("Show the index's state")
    async def index_status(max_tokens: int) -> lists.StatusAnswer:
        """Return the state of the search index. Use this if answers seem incomplete."""
        return lists.status_answer(await wiki.status(), max_tokens)


def _with_parameters(
    tool: Tool, record: type[Request], defaults: dict[str, object]
) -> Callable[..., Awaitable[CallToolResult]]:
    """Return a tool for registration with the SDK: its arguments are the parameters of a record and ``max_tokens``.

    The tool receives them under their names in the REST API. `defaults` replaces defaults of the record.
    """
    chosen = [each for each in parameters_of(record) if record is not _SearchRequest or each.name not in _NOT_FOR_AGENTS]

    async def call(*, max_tokens: int, **arguments: Any) -> CallToolResult:
        with tool_errors():
            answer = await tool(max_tokens=max_tokens, **{each.name: arguments[_argument_name(each)] for each in chosen})
            return answer.result()

    result = Annotated[CallToolResult, get_type_hints(tool)["return"]]
    arguments = [*map(_argument, chosen), _BUDGET]
    changed = [each.replace(default=defaults.get(each.name, each.default)) for each in arguments]
    call.__signature__ = Signature(changed, return_annotation=result)  # type: ignore[attr-defined]
    call.__name__, call.__doc__ = tool.__name__, tool.__doc__
    return call


def _argument(parameter: Parameter) -> Argument:
    schema = parameter.values
    kind: Any = Literal[tuple(schema["enum"])] if "enum" in schema else _JSON_TYPES[schema["type"]]
    facts = {_LIMITS[name]: limit for name, limit in schema.items() if name in _LIMITS and _is_checked_here(schema, name)}
    default = Argument.empty if parameter.is_required else parameter.schema.get("default")
    wanted: Any = kind if parameter.is_required or default is not None else kind | None
    annotation: Any = Annotated[wanted, Field(description=parameter.help, **facts)]
    return Argument(_argument_name(parameter), Argument.KEYWORD_ONLY, default=default, annotation=annotation)


def _argument_name(parameter: Parameter) -> str:
    return _ARGUMENTS.get(parameter.name, parameter.name)


def _is_checked_here(schema: Schema, limit: str) -> bool:
    """Whether a limit is worth its tokens in the schema; the length of one line of text is not."""
    return "pattern" not in schema or (limit == "maxLength" and "x00" not in schema["pattern"])


class AskAnswer(ToolResponse):
    """The wiki's answer to a question."""

    sentences: list[str] = Field(description="The sentences, with the numbers of their sources; unsupported ones are marked")
    sources: list[str] = Field(description="Address or path, and section, by number")

    def lines(self, markers: Markers) -> list[str]:
        parts = {"answer": self.sentences, "sources": self.sources}
        return [markers.wrap("\n".join(texts), list=name) for name, texts in parts.items() if texts]


def add_asking(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add `answer_question`."""
    title = "Answer a question"

    async def answer_question(question: Annotated[str, Field(description="A question")]) -> CallToolResult:
        """Answer a question from the wiki, with a source for each sentence. semantic_search returns passages instead."""
        with tool_errors():
            return _answer(await wiki.ask(question)).result()

    server.add_tool(answer_question, title=title, annotations=reading_notes(title))


def _answer(body: Json) -> AskAnswer:
    numbers = numbered_sources([sentence["sources"] for sentence in body["answer"]], len(body["sources"]))
    sources = []
    for place, number in numbers.items():
        source = body["sources"][place]
        sources.append(f"[{number}] {source.get('url') or source['path']} ({source['breadcrumb']})")
    sentences = []
    for sentence in body["answer"]:
        marks = "".join(f"[{numbers[place]}]" for place in sentence["sources"])
        doubt = "" if sentence["supported"] else " (not confirmed by its source)"
        sentences.append(f"{sentence['text']} {marks}".rstrip() + doubt)
    return AskAnswer(sentences=sentences, sources=sources, notice=body.get("message"))
