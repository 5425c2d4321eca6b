"""Requests. Each field is a parameter, described by the string below it: see `core.parameter_parsing`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, field, structs

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.parameter_parsing import (
    Choice,
    FoldedText,
    Internal,
    LineRange,
    PagePath,
    QueryText,
    Request,
    Revision,
    Text,
    Timestamp,
    TypedText,
    overlaid,
    parse_value,
    shown,
)
from otterwiki_semantic.core.records.filter_expression import FilterText, PageType, Scope
from otterwiki_semantic.core.records.health import FindingKind
from otterwiki_semantic.core.records.search import Hit

MAX_RESULTS = 50
MAX_WINDOW = 1_000
"""Results of one search that can be paged through."""
MAX_QUERIES = 32
_MAX_TOGETHER = MAX_QUERIES * MAX_RESULTS
"""Results that several queries may ask for."""
MAX_TEXT = 100_000
"""Characters of a text that is sent: however they are escaped, it fits into a request."""
MAX_DISMISSED = 100
"""Findings that one request dismisses or restores."""
_MAX_LISTED = 100_000
_MAX_ANSWER = 20_000
"""Characters of an answer that a conversation repeats."""
_REPEATS = {"repeats": True}


class Mode(Choice):
    """What decides the ranking: meaning and words, meaning alone, or words alone."""

    HYBRID = "hybrid"
    SEMANTIC = "semantic"
    KEYWORD = "keyword"


class Fusion(Choice):
    """How a hybrid ranking fuses meaning and words: by their scores, or by their ranks (reciprocal rank fusion)."""

    SUM = "sum"
    RRF = "rrf"


class Sort(Choice):
    """The order of the results: the most relevant first, or the relevant ones by their last change, latest first."""

    RELEVANCE = "relevance"
    UPDATED = "updated"


class Highlight(Choice):
    """How excerpts mark the words of the query: as HTML with `<mark>`, or by ranges of the text."""

    HTML = "html"
    RANGES = "ranges"


class PageSort(Choice):
    """The order of a list of pages: by path, by title, the last changed first, or the longest first."""

    PATH = "path"
    TITLE = "title"
    UPDATED = "updated"
    WORDS = "words"


def _field_names(given: list[Any]) -> list[str]:
    names = [name.strip() for each in given for name in str(each).split(",")]
    for name in names:
        if name not in Hit.__struct_fields__:
            raise ParameterError(f"fields has {shown(name)} in it; allowed are {', '.join(Hit.__struct_fields__)}")
    return names


Count = Annotated[int, Meta(ge=1, le=MAX_RESULTS)]
Share = Annotated[float, Meta(ge=0, le=1)]
DraftText = Annotated[str, Meta(max_length=MAX_TEXT)]
"""A text as it is."""
FindingId = Annotated[str, Meta(pattern="^[0-9a-f]{16}$", extra={"allowed": "an id has 16 hexadecimal digits"})]
FieldNames = Annotated[
    tuple[Annotated[str, Meta(extra_json_schema={"enum": [*Hit.__struct_fields__]})], ...],
    Meta(max_length=len(Hit.__struct_fields__), extra={**_REPEATS, "read": _field_names}),
]
"""Some of the fields of a result, separated by commas or as a list."""


def _query_texts(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return [query_text(each, f"queries[{place}]") if isinstance(each, str) else each for place, each in enumerate(given)]


_QUERIES = {"read": _query_texts, "allowed": "it takes a text, or an object with query"}


def query_text(value: object, name: str = "q") -> str:
    """Return a query. Errors: `ParameterError`, which refers to it as `name`, if it is invalid."""
    query: str = parse_value(QueryText, value, name)
    return query


class Filters(Request, frozen=True, rename={"tags": "tag"}):
    """Which pages may answer; without any, all. Categories, tags and paths are compared without regard to case."""

    category: FoldedText | None = None
    """Only pages of this category."""
    tags: Annotated[tuple[FoldedText, ...], Meta(max_length=20, extra=_REPEATS)] = ()
    """Only pages with this tag. Several tags must all be present."""
    path: Text | None = None
    """Only pages whose path starts with this, such as `garden/`."""
    type: PageType | None = None
    """Only pages, or only attached files of this kind."""
    scope: Scope | None = None
    """Only pages, or only attached files."""
    updated_since: Timestamp | None = None
    """Only pages that a commit changed at or after this date or time (ISO 8601, UTC by default)."""
    updated_before: Timestamp | None = None
    """Only pages that no commit has changed since this date or time (ISO 8601, UTC by default)."""
    filter: FilterText | None = None
    """Only pages for which this holds: `tag:ops AND NOT (path:archive/ OR category:draft)`."""


class SearchOptions(Request, frozen=True):
    """How to search, beyond the query."""

    n: Count = 5
    """Number of results."""
    max_chunks_per_page: Annotated[int, Meta(ge=1, le=5)] = 2
    """Results of one page; 1 ranks pages."""
    mode: Mode = Mode.HYBRID
    """Rank by meaning and words, by meaning alone, or by words alone."""
    limit: Annotated[int, Meta(ge=1, le=MAX_WINDOW)] | None = None
    """Number of results, instead of `n`; with `offset` at most 1,000."""
    offset: Annotated[int, Meta(ge=0, le=MAX_WINDOW - 1)] = 0
    """Results to skip."""
    semantic_ratio: Share | None = None
    """Share of meaning in a hybrid ranking, 0.5 by default; refused in other modes."""
    fusion: Fusion = Fusion.SUM
    """How a hybrid ranking fuses meaning and words: `sum` adds their scores, `rrf` their reciprocal ranks."""
    filters: Filters = Filters()
    sort: Sort = Sort.RELEVANCE
    """`relevance`: the most relevant passages first. `updated`: only the relevant ones, the most recently changed page first;
    `diversity` and `rerank` then have no effect."""
    recency: Share = 0.0
    """Prefer recently changed pages: from not at all (0) to as much as an exact heading (1)."""
    corrections: bool = True
    """Search also for the corrected spelling of words that are not in the wiki."""
    min_similarity: Annotated[float, Meta(ge=-1, le=1)] | None = None
    """Only passages with at least this cosine similarity."""
    diversity: Share = 0.0
    """From best first (0) to as different from each other as possible (1)."""
    context: Annotated[int, Meta(ge=0, le=3)] = 0
    """Passages to show before and after each result."""
    facets: bool = False
    """Count the pages found by category, tag, folder and kind of file."""
    explain: bool = False
    """Explain the place of each result."""
    markdown: bool = False
    """Return also the Markdown of each passage, with the lists, tables and code in it whole."""
    best_sentence: bool = False
    """Name the sentence, list item, table row or line of code of each passage that answers best, by words and meaning."""
    units: Annotated[int, Meta(ge=0, le=10)] = 0
    """Number of sentences, list items, table rows and lines of code to list of each result, the best first."""
    highlight: Highlight | None = None
    """Return an `excerpt` of each passage, and mark the words of the query in it: as `html`, with `<mark>`, or by `ranges`."""
    crop: Annotated[int, Meta(ge=5, le=500)] | None = None
    """Return an `excerpt` of about this many words, around the words of the query or the best sentence."""
    wait: bool = False
    """Wait until the commit that is HEAD now has been indexed; for its words only if embedding takes longer."""
    wait_seconds: Annotated[float, Meta(ge=0, le=10)] = 5.0
    """Longest time to wait."""
    draft: bool = False
    """The query is still being typed: its last word also matches words that begin with it. It is not logged, and not reranked
    unless `rerank` is true."""
    rerank: bool | None = None
    """Let the reranker order the best candidates. Default: in hybrid searches, if the reranker is fast."""

    def __post_init__(self) -> None:
        if self.semantic_ratio is not None and self.mode is not Mode.HYBRID:
            raise ParameterError(f"semantic_ratio goes with mode=hybrid; mode is {self.mode}")
        if self.end > MAX_WINDOW:
            raise ParameterError(
                f"offset {self.offset:,} and limit {self.size:,} are {self.end:,} results; allowed are {MAX_WINDOW:,} together"
            )

    @property
    def size(self) -> int:
        """The number of results: `limit`, or `n` without it."""
        return self.n if self.limit is None else self.limit

    @property
    def end(self) -> int:
        """The rank of the last result, from 1."""
        return self.offset + self.size

    @property
    def needs_best_sentence(self) -> bool:
        """Whether best sentences are shown, or excerpts are centred on them."""
        return self.best_sentence or self.units > 0 or self.crop is not None


class SearchContext(Struct, frozen=True):
    """Where a search comes from; no caller of the API says so."""

    is_logged: bool = True
    """Whether it counts in the search log and the metrics, unless it is a draft."""
    request_id: str | None = None
    """The id of the HTTP request, for the log."""


NO_CONTEXT = SearchContext()


class QueryRequest(Request, frozen=True):
    """One of several queries, and how to search for it."""

    query: QueryText
    """A question or words. "Exact words" must occur in a passage, a -word must not."""
    options: SearchOptions = SearchOptions()
    fields: FieldNames = ()
    """Only these fields of each result, separated by commas; by default all."""


class SearchRequest(QueryRequest, frozen=True):
    """A query, and how to search."""

    query: QueryText = field(name="q")
    compat: bool = False
    """Answer as the earlier plugin did: `distance` is never null, `section_path` is text."""


class BatchRequest(Request, frozen=True):
    """A query or several, and how to search."""

    query: QueryText | None = None
    """One query; its answer is not in a list."""
    queries: Annotated[tuple[str | dict[str, Any], ...], Meta(min_length=1, max_length=MAX_QUERIES, extra=_QUERIES)] = ()
    """Several queries, each a text, or an object with `query` and parameters of its own, which override the others."""
    options: SearchOptions = SearchOptions()
    fields: FieldNames = ()
    """Only these fields of each result, separated by commas; by default all."""

    def __post_init__(self) -> None:
        if self.query is not None and self.queries:
            raise ParameterError("query and queries are both given; allowed is one of them")
        if self.query is None and not self.queries:
            raise ParameterError("queries is missing, and so is query; one of them is needed")

    def searches(self) -> list[QueryRequest]:
        """Return each query with its parameters. Errors: `ParameterError`."""
        if self.query is not None:
            return [QueryRequest(self.query, self.options, self.fields)]
        found = [self._search(entry, position) for position, entry in enumerate(self.queries)]
        if (wanted := sum(each.options.end for each in found)) > _MAX_TOGETHER:
            raise ParameterError(f"the queries ask for {wanted:,} results; allowed are {_MAX_TOGETHER:,} together")
        return found

    def _search(self, entry: str | Mapping[str, Any], position: int) -> QueryRequest:
        if isinstance(entry, str):
            return QueryRequest(entry, self.options, self.fields)
        own = {name: value for name, value in entry.items() if value is not None}
        size = {"limit": own["n"]} if "n" in own and "limit" not in own else {}
        try:
            return overlaid(QueryRequest("", self.options, self.fields), {**entry, "query": "", **own, **size})
        except ParameterError as error:
            raise ParameterError(f"queries[{position}]: {error}") from None


class OutlineRequest(Request, frozen=True):
    """The table of contents of a page."""

    path: PagePath
    """The page's path, with or without `.md`, in any case."""


class RelatedRequest(OutlineRequest, frozen=True):
    """Pages near in meaning to one page."""

    n: Count = 5
    """Number of pages."""


class DraftRequest(Request, frozen=True):
    """A text that is being written, and where."""

    text: DraftText
    """The Markdown so far."""
    path: PagePath = ""
    """The path that it is or will be saved at: this page is not suggested."""
    cursor: Annotated[int, Meta(ge=0, le=MAX_TEXT)] | None = None
    """Where somebody is writing, in characters from the beginning; by default the end."""
    n: Count = 5
    """Number of pages about the same."""


class SuggestRequest(Request, frozen=True, rename={"query": "q"}):
    """What somebody has typed so far."""

    query: TypedText = ""
    """The beginning of words of a title, an alias, a path or a heading; empty: the pages that were changed last."""
    n: Count = 8
    """Number of suggestions."""
    filters: Filters = Filters()


class _ListFilters(Filters, frozen=True):
    path: Text | None = field(default=None, name="prefix")


class PageListRequest(Request, frozen=True):
    """A part of the list of pages."""

    filters: _ListFilters = _ListFilters()
    limit: Annotated[int, Meta(ge=1, le=_MAX_LISTED)] = _MAX_LISTED
    """Number of pages."""
    offset: Annotated[int, Meta(ge=0, le=100_000_000)] = 0
    """Pages to skip."""
    sort: PageSort = PageSort.PATH
    """The order: by path or title, the last changed first, or the longest first."""


class PageRequest(Request, frozen=True):
    """Which parts of a page to read; without any, all of it."""

    section: Annotated[tuple[Text, ...], Meta(max_length=50, extra=_REPEATS)] = ()
    """A heading, with those above it (`A > B`) if it is not unique, or `#anchor`; or several."""
    lines: LineRange | None = None
    """A line or a range of lines, such as 12-40; after the sections, if both are given."""
    around: Annotated[int, Meta(ge=0, le=1_000)] = 0
    """Lines to read before and after `lines`."""
    revision: Revision | None = None
    """A commit, to read the page as it was then; by default HEAD."""


class ReadRequest(OutlineRequest, frozen=True):
    """A page, and which parts of it to read."""

    parts: PageRequest = PageRequest()


class HistoryRequest(OutlineRequest, frozen=True):
    """The last commits that changed a page."""

    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    """Number of commits."""


class ReindexStatusRequest(Request, frozen=True):
    """Which reindex to show."""

    job: Text | None = None
    """The `job` of the answer that started it; without it, the last rebuild."""


class ReindexRequest(Request, frozen=True):
    """What to index again: the pages named, or everything."""

    full: bool = False
    """Read and divide every page again, even if nothing has changed."""
    embed: bool = False
    """Embed every passage again as well, instead of reusing vectors of unchanged text; implies `full`."""
    pages: Annotated[tuple[PagePath, ...], Meta(min_length=1, max_length=1_000)] = ()
    """Read only these pages again, in the serving index."""
    rollback: bool = False
    """Return to the index that the last change of model or chunk profile replaced, whatever else is asked."""


class HealthRequest(Request, frozen=True):
    """Which findings about the wiki to list."""

    kind: FindingKind | None = None
    """Only findings of this kind."""
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    """Number of findings of each kind."""
    dismissed: bool = False
    """Include dismissed findings, and unanswered questions that are answered by now."""
    linked: Internal[tuple[str, ...]] = ("Home",)
    """Pages that the wiki itself links to: its home page and those of its menu."""
    shows_queries: Internal[bool] = False
    """Whether to list what people searched for."""
    counts_all: Internal[bool] = False
    """Whether to count the findings of all kinds, not only of the requested one."""


class DismissalRequest(Request, frozen=True):
    """Findings that nobody needs to see, or that are to be seen again."""

    findings: Annotated[list[FindingId], Meta(min_length=1, max_length=MAX_DISMISSED)]
    """The ids of the findings."""
    restore: bool = False
    """Show them again."""
    shows_queries: Internal[bool] = False
    """Whether what people searched for may be dismissed."""


class Exchange(Struct, frozen=True, forbid_unknown_fields=True):
    """A question and the answer to it."""

    question: QueryText
    answer: Annotated[str, Meta(max_length=_MAX_ANSWER)]

    def __post_init__(self) -> None:
        structs.force_setattr(self, "question", self.question.strip())


class AskRequest(Request, frozen=True):
    """A question to be answered from the wiki."""

    question: QueryText
    """The question."""
    history: Annotated[tuple[Exchange, ...], Meta(max_length=10)] = ()
    """The questions and answers before, the oldest first; a question may refer to the last."""
    filters: Filters = Filters()
    limit: Annotated[int, Meta(ge=1, le=20)] = 6
    """Number of passages that the answer may rest on."""
    strict: bool = False
    """Leave out sentences that their sources do not support."""
    stream: bool = False
    """Send Server-Sent Events: `sources`, then `text` for each sentence, then `done`."""
    asker: Internal[str] = ""
    """Whose questions are counted together: an account or an address; empty for a program with the key."""


class WriteRequest(Request, frozen=True):
    """The text of a page."""

    text: DraftText
    """The Markdown of the whole page."""
    revision: Revision | None = None
    """The commit that the text is based on, to replace a page; without it, the page must not exist."""
    message: Text = ""
    """The message of the change in the page's history."""


class EditRequest(Request, frozen=True):
    """A change of a page: a text that is replaced, or one that is appended."""

    revision: Revision | None = None
    """The commit in which `old` was read. Required with `old`."""
    old: DraftText | None = None
    """Text of the page to replace; it must occur exactly once."""
    new: DraftText | None = None
    """What replaces it."""
    append: DraftText | None = None
    """Text that is added at the end of the page, or of a section."""
    section: Text | None = None
    """Where to append: a heading, with those above it (`A > B`) if it is not unique, or `#anchor`."""
    message: Text = ""
    """The message of the change in the page's history."""

    def __post_init__(self) -> None:
        edit = (self.revision, self.old, self.new)
        is_edit, is_append = None not in edit and self.section is None, self.append is not None and edit == (None, None, None)
        if is_edit == is_append or (is_edit and self.append is not None):
            raise ParameterError("send either revision, old and new, or append, with or without section")


class DeleteRequest(Request, frozen=True):
    """The page to delete, as it was read."""

    revision: Revision
    """The commit in which the page was read."""
    message: Text = ""
    """The message of the change in the page's history."""
