"""What can be asked. Each field is a request parameter: see `core.parameters`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.filter_expression import FilterText
from otterwiki_semantic.core.parameters import (
    Choice,
    Conversation,
    DraftText,
    Exchange,
    FindingIds,
    Flag,
    Integer,
    LineRange,
    Names,
    Number,
    PagePath,
    PagePaths,
    Queries,
    QueryText,
    Revision,
    Text,
    Texts,
    Timestamp,
    nested,
    overlaid,
    parameter,
)
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
_MAX_LISTED = 100_000
_PAGE = "The page's path, with or without `.md`, in any case."


class Mode(StrEnum):
    """What decides the ranking: meaning and words, meaning alone, or words alone."""

    HYBRID = "hybrid"
    SEMANTIC = "semantic"
    KEYWORD = "keyword"


class Fusion(StrEnum):
    """How a hybrid ranking fuses meaning and words: by their scores, or by their ranks (reciprocal rank fusion)."""

    SUM = "sum"
    RRF = "rrf"


class Sort(StrEnum):
    """The order of the results: the most relevant first, or of those that are relevant the most recently changed first."""

    RELEVANCE = "relevance"
    UPDATED = "updated"


class Highlight(StrEnum):
    """How excerpts mark the words of the query: as HTML with `<mark>`, or by ranges of the text."""

    HTML = "html"
    RANGES = "ranges"


@dataclass(frozen=True, slots=True)
class Filters:
    """Which pages may answer; without any, all. Categories, tags and paths are compared without regard to case."""

    category: str | None = parameter(Text(folds_spaces=True), "Only pages of this category.", None)
    tags: tuple[str, ...] = parameter(
        Texts(Text(folds_spaces=True), 20), "Only pages with this tag; repeat it to require several.", (), name="tag"
    )
    path: str | None = parameter(Text(), "Only pages whose path starts with this, such as `garden/`.", None)
    updated_since: int | None = parameter(
        Timestamp(), "Only pages that a commit changed at or after this date or time (ISO 8601, UTC by default).", None
    )
    updated_before: int | None = parameter(
        Timestamp(), "Only pages that no commit has changed since this date or time (ISO 8601, UTC by default).", None
    )
    filter: str | None = parameter(
        FilterText(), "Only pages for which this holds: `tag:ops AND NOT (path:archive/ OR category:draft)`.", None
    )


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search, beyond the query."""

    n: int = parameter(Integer(1, MAX_RESULTS), "Number of results.", 5)
    max_chunks_per_page: int = parameter(Integer(1, 5), "Results of one page; 1 ranks pages.", 2)
    mode: Mode = parameter(Choice(Mode), "Rank by meaning and words, by meaning alone, or by words alone.", Mode.HYBRID)
    limit: int | None = parameter(
        Integer(1, MAX_WINDOW), "Number of results, instead of `n`; with `offset` at most 1,000.", None
    )
    offset: int = parameter(Integer(0, MAX_WINDOW - 1), "Results to skip.", 0)
    semantic_ratio: float | None = parameter(
        Number(0, 1), "Share of meaning in a hybrid ranking, 0.5 by default; refused in other modes.", None
    )
    fusion: Fusion = parameter(
        Choice(Fusion),
        "How a hybrid ranking fuses meaning and words: `sum` adds their scores, `rrf` their reciprocal ranks.",
        Fusion.SUM,
    )
    filters: Filters = nested(Filters())
    sort: Sort = parameter(
        Choice(Sort),
        "`relevance`: the most relevant passages first. `updated`: only the relevant ones, the most recently changed page "
        "first; `diversity` and `rerank` then have no effect.",
        Sort.RELEVANCE,
    )
    recency: float = parameter(
        Number(0, 1), "Prefer recently changed pages: from not at all (0) to as much as an exact heading (1).", 0.0
    )
    corrections: bool = parameter(Flag(), "Search also for the corrected spelling of words that stand nowhere.", default=True)
    min_similarity: float | None = parameter(Number(-1, 1), "Only passages with at least this cosine similarity.", None)
    diversity: float = parameter(Number(0, 1), "From best first (0) to as different from each other as possible (1).", 0.0)
    context: int = parameter(Integer(0, 3), "Passages to show before and after each result.", 0)
    facets: bool = parameter(Flag(), "Count the pages found by category, tag and folder.", default=False)
    explain: bool = parameter(Flag(), "Explain the place of each result.", default=False)
    markdown: bool = parameter(
        Flag(), "Return also the Markdown of each passage, with the lists, tables and code in it whole.", default=False
    )
    best_sentence: bool = parameter(
        Flag(),
        "Name the sentence, list item, table row or line of code of each passage that answers best, by words and meaning.",
        default=False,
    )
    units: int = parameter(
        Integer(0, 10),
        "Number of sentences, list items, table rows and lines of code to list of each result, the best first.",
        0,
    )
    highlight: Highlight | None = parameter(
        Choice(Highlight),
        "Return an `excerpt` of each passage, and mark the words of the query in it: as `html`, with `<mark>`, or by `ranges`.",
        None,
    )
    crop: int | None = parameter(
        Integer(5, 500), "Return an `excerpt` of about so many words, around those of the query or the best sentence.", None
    )
    wait: bool = parameter(
        Flag(),
        "Wait until the commit that is HEAD now has been indexed; for its words only if embedding takes longer.",
        default=False,
    )
    wait_seconds: float = parameter(Number(0, 10), "Longest time to wait.", 5.0)
    draft: bool = parameter(
        Flag(),
        "The query is still being typed: its last word also stands for those that it begins; it is not logged, and not reranked"
        " unless `rerank` is true.",
        default=False,
    )
    rerank: bool | None = parameter(
        Flag(), "Let the reranker order the best candidates. Default: in hybrid searches, if the reranker is fast.", None
    )
    is_logged: bool = True
    """Whether it counts in the search log and the metrics, unless it is a draft. No parameter of a request."""
    section_words: int = 0
    """Words of the largest section that `markdown` returns whole; 0 for the default. No parameter of a request."""
    asks_shadow: bool = False
    """Whether the index of `SEMANTIC_SHADOW_MODEL` answers. No parameter of a request."""
    request_id: str | None = None
    """The id of the HTTP request, for the log. No parameter of a request."""

    def __post_init__(self) -> None:
        if self.semantic_ratio is not None and self.mode is not Mode.HYBRID:
            raise ParameterError(f"semantic_ratio goes with mode=hybrid; mode is {self.mode}")
        if self.limit is not None:  # another name of `n`, which all else reads
            object.__setattr__(self, "n", self.limit)
            object.__setattr__(self, "limit", None)
        if self.end > MAX_WINDOW:
            raise ParameterError(
                f"offset {self.offset:,} and limit {self.n:,} are {self.end:,} results; allowed are {MAX_WINDOW:,} together"
            )

    @property
    def end(self) -> int:
        """The rank of the last result, from 1."""
        return self.offset + self.n

    @property
    def wants_excerpts(self) -> bool:
        """Whether results have excerpts."""
        return self.highlight is not None or self.crop is not None

    @property
    def needs_best_sentence(self) -> bool:
        """Whether the best sentences are shown, or excerpts are cut around them."""
        return self.best_sentence or self.units > 0 or self.crop is not None

    @property
    def counts(self) -> bool:
        """Whether it counts as a search in the search log and the metrics; further results of a search do not."""
        return self.is_logged and not self.draft and not self.offset

    @property
    def seconds_to_wait(self) -> float:
        """How long to wait for the index; 0 not to wait."""
        return self.wait_seconds if self.wait else 0.0


_FIELDS = Names(Hit.__struct_fields__)
_FIELDS_HELP = "Only these fields of each result, separated by commas; by default all."
_QUERY_HELP = 'A question or words. "Exact words" must occur in a passage, a -word must not.'


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A query, and how to search."""

    query: str = parameter(QueryText(), _QUERY_HELP, name="q")
    options: SearchOptions = nested()
    fields: tuple[str, ...] = parameter(_FIELDS, _FIELDS_HELP, ())
    compat: bool = parameter(
        Flag(), "Answer as the earlier plugin did: `distance` is never null, `section_path` is text.", default=False
    )


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """One of several queries, and how to search for it."""

    query: str = parameter(QueryText(), _QUERY_HELP)
    options: SearchOptions = nested()
    fields: tuple[str, ...] = parameter(_FIELDS, _FIELDS_HELP, ())


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A query or several, and how to search."""

    query: str | None = parameter(QueryText(), "One query; its answer is not in a list.", None)
    queries: tuple[Mapping[str, Any], ...] = parameter(
        Queries(MAX_QUERIES, QueryRequest),
        "Several queries, each a text, or an object with `query` and parameters of its own, which override the others.",
        (),
    )
    options: SearchOptions = nested(SearchOptions())
    fields: tuple[str, ...] = parameter(_FIELDS, _FIELDS_HELP, ())

    def __post_init__(self) -> None:
        if self.query is not None and self.queries:
            raise ParameterError("query and queries are both given; allowed is one of them")
        if self.query is None and not self.queries:
            raise ParameterError("queries is missing, and so is query; one of them is needed")

    def searches(self) -> list[QueryRequest]:
        """Return each query with its parameters. Errors: `ParameterError`."""
        if self.query is not None:
            return [QueryRequest(self.query, self.options, self.fields)]
        shared = QueryRequest("", self.options, self.fields)
        found = [_overlaid(shared, entry, position) for position, entry in enumerate(self.queries)]
        if (wanted := sum(each.options.end for each in found)) > _MAX_TOGETHER:
            raise ParameterError(f"the queries ask for {wanted:,} results; allowed are {_MAX_TOGETHER:,} together")
        return found


def _overlaid(shared: QueryRequest, entry: Mapping[str, Any], position: int) -> QueryRequest:
    try:
        return overlaid(shared, {**entry, "query": "" if entry.get("query") is None else entry["query"]})
    except ParameterError as error:
        raise ParameterError(f"queries[{position}]: {error}") from None


@dataclass(frozen=True, slots=True)
class RelatedRequest:
    """Pages near in meaning to one page."""

    path: str = parameter(PagePath(), _PAGE)
    n: int = parameter(Integer(1, MAX_RESULTS), "Number of pages.", 5)


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """A text that is being written, and where."""

    text: str = parameter(DraftText(MAX_TEXT), "The Markdown so far.")
    path: str = parameter(PagePath(), "The path that it is or will be saved at: this page is not suggested.", "")
    cursor: int | None = parameter(
        Integer(0, MAX_TEXT), "Where somebody is writing, in characters from the beginning; by default the end.", None
    )
    n: int = parameter(Integer(1, MAX_RESULTS), "Number of pages about the same.", 5)


@dataclass(frozen=True, slots=True)
class SuggestRequest:
    """What somebody has typed so far."""

    query: str = parameter(
        QueryText(may_be_empty=True),
        "The beginning of words of a title, an alias, a path or a heading; empty: the pages that were changed last.",
        "",
        name="q",
    )
    n: int = parameter(Integer(1, MAX_RESULTS), "Number of suggestions.", 8)
    filters: Filters = nested(Filters())


class PageSort(StrEnum):
    """The order of a list of pages: by path, by title, the last changed first, or the longest first."""

    PATH = "path"
    TITLE = "title"
    UPDATED = "updated"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class PageListRequest:
    """A part of the list of pages."""

    filters: Filters = nested(Filters(), rename={"path": "prefix"})
    limit: int = parameter(Integer(1, _MAX_LISTED), "Number of pages.", _MAX_LISTED)
    offset: int = parameter(Integer(0, 100_000_000), "Pages to skip.", 0)
    sort: PageSort = parameter(
        Choice(PageSort), "The order: by path or title, the last changed first, or the longest first.", PageSort.PATH
    )


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which parts of a page to read; without any, all of it."""

    section: tuple[str, ...] = parameter(
        Texts(Text(), 50), "A heading, with those above it (`A > B`) if it is not unique, or `#anchor`; or several.", ()
    )
    lines: tuple[int, int] | None = parameter(
        LineRange(), "A line or a range of lines, such as 12-40; after the sections, if both are given.", None
    )
    around: int = parameter(Integer(0, 1_000), "Lines to read before and after `lines`.", 0)
    revision: str | None = parameter(Revision(), "A commit, to read the page as it was then; by default HEAD.", None)


@dataclass(frozen=True, slots=True)
class OutlineRequest:
    """The table of contents of a page."""

    path: str = parameter(PagePath(), _PAGE)


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A page, and which parts of it to read."""

    path: str = parameter(PagePath(), _PAGE)
    parts: PageRequest = nested(PageRequest())


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """The last commits that changed a page."""

    path: str = parameter(PagePath(), _PAGE)
    limit: int = parameter(Integer(1, 100), "Number of commits.", 10)


@dataclass(frozen=True, slots=True)
class ReindexStatusRequest:
    """Which reindex to show."""

    job: str | None = parameter(Text(), "The `job` of the answer that started it; without it, the last rebuild.", None)


@dataclass(frozen=True, slots=True)
class ReindexRequest:
    """What to index again: the pages named, or everything."""

    full: bool = parameter(Flag(), "Read and divide every page again, even if nothing has changed.", default=False)
    pages: tuple[str, ...] = parameter(PagePaths(1_000), "Read only these pages again, in the serving index.", ())
    rollback: bool = parameter(
        Flag(),
        "Return to the index that the last change of model or chunk profile replaced, whatever else is asked.",
        default=False,
    )


@dataclass(frozen=True, slots=True)
class HealthRequest:
    """Which findings about the wiki to list."""

    kind: FindingKind | None = parameter(Choice(FindingKind), "Only findings of this kind.", None)
    limit: int = parameter(Integer(1, 500), "Number of findings of each kind.", 50)
    dismissed: bool = parameter(Flag(), "List also those that were dismissed or are answered now.", default=False)
    linked: tuple[str, ...] = ("Home",)
    """Pages that the wiki itself links to: its home page and those of its menu. No parameter of a request."""
    shows_queries: bool = False
    """Whether to list what people searched for. No parameter of a request."""


@dataclass(frozen=True, slots=True)
class DismissalRequest:
    """Findings that nobody needs to see, or that are to be seen again."""

    findings: list[str] = parameter(FindingIds(100), "The ids of the findings.")
    restore: bool = parameter(Flag(), "Show them again.", default=False)
    shows_queries: bool = False
    """Whether what people searched for may be dismissed. No parameter of a request."""


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A question to be answered from the wiki."""

    question: str = parameter(QueryText(), "The question.")
    history: tuple[Exchange, ...] = parameter(
        Conversation(10),
        "The questions and answers before, the oldest first; a question may refer to the last.",
        (),
    )
    filters: Filters = nested(Filters())
    limit: int = parameter(Integer(1, 20), "Number of passages that the answer may rest on.", 6)
    strict: bool = parameter(Flag(), "Leave out sentences that their sources do not support.", default=False)
    stream: bool = parameter(
        Flag(), "Send Server-Sent Events: `sources`, then `text` for each sentence, then `done`.", default=False
    )
    asker: str = ""
    """Whose questions are counted together: an account or an address; empty for a program with the key. No parameter of a
    request."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The text of a page."""

    text: str = parameter(DraftText(MAX_TEXT), "The Markdown of the whole page.")
    revision: str | None = parameter(
        Revision(), "The commit that the text is based on, to replace a page; without it, the page must not exist.", None
    )
    message: str = parameter(Text(), "What is said about the change in the page's history.", "")


@dataclass(frozen=True, slots=True)
class EditRequest:
    """A change of a page: a text that is replaced, or one that is appended."""

    revision: str | None = parameter(Revision(), "The commit that `old` was read in; needed with it.", None)
    old: str | None = parameter(
        DraftText(MAX_TEXT), "Text of the page that is replaced; it must stand there exactly once.", None
    )
    new: str | None = parameter(DraftText(MAX_TEXT), "What replaces it.", None)
    append: str | None = parameter(DraftText(MAX_TEXT), "Text that is added at the end of the page, or of a section.", None)
    section: str | None = parameter(
        Text(), "Where to append: a heading, with those above it (`A > B`) if it is not unique, or `#anchor`.", None
    )
    message: str = parameter(Text(), "What is said about the change in the page's history.", "")

    def __post_init__(self) -> None:
        edit = (self.revision, self.old, self.new)
        is_edit, is_append = None not in edit and self.section is None, self.append is not None and edit == (None, None, None)
        if is_edit == is_append or (is_edit and self.append is not None):
            raise ParameterError("send either revision, old and new, or append, with or without section")
