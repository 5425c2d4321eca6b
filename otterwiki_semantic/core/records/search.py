"""Answers to searches. Lines are 1-based and inclusive; similarities and scores are rounded to six decimals."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

from otterwiki_semantic.core.records.document import FileKind, UnitKind, cited_title, page_number
from otterwiki_semantic.core.records.pages import NamedPage
from otterwiki_semantic.core.records.status import Freshness

FIRST_BUILD = "the index is being built; results are incomplete until it is done"
"""The message of an answer during the first build."""


class RetrieverScore(Struct, frozen=True):
    """What one retriever makes of a passage."""

    rank: int | None
    """1 is first; null: not among its candidates."""
    score: float | None


class Explanation(Struct, frozen=True):
    """Why a result has its place."""

    semantic: RetrieverScore
    """By cosine similarity."""
    keyword: RetrieverScore
    """By BM25 of the words, plus half that of pairs of words next to each other."""
    fused: float
    """What meaning and words add to the score, or with `fusion=rrf` the weighted sum of their reciprocal ranks."""
    page_credit: float
    """What the rest of the page adds to it; with `fusion=rrf` nothing, as names, links and recency."""
    rule: str
    """What placed it: `score`, `exact title`, `pinned answer`, `reranker`, `diversity` or `updated`."""
    coverage: float
    """The share of the query's words that occur in the passage, weighted by rarity."""
    relevance: float
    """How far the passage is above the relevance threshold; from 0 on it is relevant."""
    names: float = 0.0
    """What the page's title and path and the passage's headings add to the score."""
    links: float = 0.0
    """What links from other pages to this one add to the score."""
    recency: float = 0.0
    """What `recency` adds to the score."""
    rerank: RetrieverScore = RetrieverScore(None, None)
    """If a reranker read the passage: the rank before that, and the reranker's score."""


class HitUnit(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A sentence, list item, table row or line of code of a passage."""

    range: tuple[int, int]
    """Where it stands in `snippet`, as `[start, end)` in Unicode code points; so the other ranges."""
    kind: UnitKind
    """`sentence`, `item`, `row` or `code`."""
    section: str
    """The heading above it."""
    section_path: tuple[str, ...]
    """The page's title and the headings from the outermost to `section`."""
    anchor: str
    """The heading's id in the page."""
    start_line: int
    end_line: int
    score: float
    """How well it answers; comparable within one answer only."""
    similarity: float | None = None
    """To the query; null if the model was not asked."""
    coverage: float
    """The share of the query's words that it has, weighted by rarity."""
    header: tuple[int, int] | None = None
    """Of a row: where the header of its table stands."""
    items: tuple[tuple[int, int], ...] = ()
    """Of an item, or of a sentence that announces a list: where all items of the list stand."""
    code: tuple[int, int] | None = None
    """Of a sentence or item that code follows, at once or after a sentence that announces it: where the code stands."""


class Hit(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A passage that answers a query; what identifies it comes first."""

    path: str
    """The page's path in the wiki."""
    title: str
    """The front matter's title, else the first heading of level 1, else the name."""
    section: str
    """The heading above the part of the passage that answers best."""
    breadcrumb: str
    """The page's title and the headings as one text, `Page > Heading`; a first heading that is the title stands once.
    With the page of a file: `Contract.pdf, page 4 > Heading`."""
    url: str | None = None
    """The page in the wiki, at the heading if there is one."""
    not_shown: bool = False
    """Only if the wiki cannot show the page, because its name has capitals and RETAIN_PAGE_NAME_CASE is off."""
    score: float
    """What ranks; comparable within one answer only."""
    relevant: bool
    """Whether the passage is about the query."""
    similarity: float | None
    """1 - `distance`."""
    distance: float | None
    """Cosine distance of query and passage: 0 = same, 2 = opposite; null if the model was not used or failed."""
    excerpt: str | None = None
    """With `highlight` or `crop`: the passage's own text, with `…` where it is cut."""
    excerpt_html: str | None = None
    """With `highlight=html`: the excerpt as HTML, the words of the query in `<mark>`, all else escaped."""
    excerpt_highlights: tuple[tuple[int, int], ...] | None = None
    """With `highlight=ranges`: ranges of `excerpt` that match the query's words, `[start, end)` in Unicode code points."""
    text: str
    """What to read: the passage's own words, joined with neighbours that are nearly as good."""
    text_start_line: int
    text_end_line: int
    snippet: str
    """The whole passage; it starts with its page's title and heading path in brackets."""
    prefix_length: int
    """Characters of `snippet` that are title and heading path."""
    overlap_length: int
    """Characters of `snippet` after them that repeat the end of the passage before."""
    highlights: tuple[tuple[int, int], ...]
    """Ranges of `snippet` that match the query's words, `[start, end)` in Unicode code points."""
    best_sentence: tuple[int, int] | None = None
    """With `best_sentence`: the range of `snippet` with the sentence, list item, table row or line of code that answers best;
    null if no word matches and the model is not asked."""
    units: tuple[HitUnit, ...] = ()
    """With `units`: what of the passage answers best, the best first."""
    markdown: str | None = None
    """With `markdown`: the page's own text from `markdown_start_line` to `markdown_end_line`; null if git cannot read it."""
    markdown_start_line: int | None = None
    markdown_end_line: int | None = None
    context_before: str | None = None
    """With `context`: the text before the passage, if there is any."""
    context_after: str | None = None
    """With `context`: the text after the passage, if there is any."""
    category: str | None
    """From the front matter."""
    tags: tuple[str, ...]
    """From the front matter."""
    updated: str | None
    """When a commit last changed the page, ISO 8601 in UTC."""
    also_on: tuple[str, ...]
    """Paths of other pages with nearly the same passage."""
    name: str
    """The last part of the page's path."""
    section_path: tuple[str, ...]
    """The page's title and the headings from the outermost to `section`; a first heading that is the title stands once."""
    headings: tuple[str, ...]
    """All headings whose sections have a part in `text`."""
    anchor: str
    """The heading's id in the page."""
    start_line: int
    """The first line of the passage in the page's file."""
    end_line: int
    """The last line of the passage in the page's file."""
    chunk_index: int
    """Which passage of the page this is, from 0."""
    total_chunks: int
    """Number of passages of the page."""
    page_word_count: int
    """Words of the page."""
    explain: Explanation | None = None
    """With `explain`: why the result has its place."""
    kind: FileKind | None = None
    """Only of an attached file: what it is. Its `title` is then its name, and its `url` leads to the file."""
    attached_to: str | None = None
    """Only of an attached file: the path of its page; in a folder, if there is one."""
    attached_to_title: str | None = None
    """Only of an attached file: the title of its page."""
    page_number: int | None = None
    """Only of a PDF or slides: the page or slide with the part that answers best, from 1."""

    def at(self, unit: HitUnit) -> Hit:
        """Return the result for one of its units, named after its section: the only one, and the `best_sentence`."""
        number = page_number(self.kind, unit.anchor)
        fragment = f"#{unit.anchor}" if unit.anchor and self.kind in {None, FileKind.PDF} else ""
        return structs.replace(
            self,
            section=unit.section,
            section_path=unit.section_path,
            breadcrumb=" > ".join((cited_title(unit.section_path[0], self.kind, number), *unit.section_path[1:])),
            anchor=unit.anchor,
            url=self.url and self.url.partition("#")[0] + fragment,
            page_number=number,
            best_sentence=unit.range,
            units=(unit,),
        )


class Correction(Struct, frozen=True):
    """A misspelled word of the query, and its correction."""

    typed: str
    corrected: str
    """The word that is searched for as well."""


class Facets(Struct, frozen=True):
    """The number of pages found for each value, the most frequent first."""

    category: dict[str, int]
    """Pages by category."""
    tag: dict[str, int]
    """Pages by tag."""
    path: dict[str, int]
    """Pages by folder, which ends in `/`, at the first level that has several: mostly by top folder."""
    type: dict[str, int] = {}
    """Attached files by kind, and pages as `page`; empty if there are no files among them."""


class TotalHits(Struct, frozen=True):
    """The number of results, in the form that Elasticsearch uses."""

    value: int
    """Results from the first one on that can be paged through, relevant or not: passages that pass the filters, each once, with
    up to `max_chunks_per_page` of a page."""
    relation: Literal["eq", "gte"]
    """`eq`: these are all; `gte`: there may be more."""


class Lead(Struct, frozen=True):
    """What answers a query by itself."""

    text: str
    """The unit's text on its own: a row as `nightly – kept: 14`. Steps of a list, and rows that the question does not tell
    apart, are one line each."""
    result: int
    """Which of the `results` it is from, from 0."""
    unit: HitUnit


class Answer(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The passages for one query, best first."""

    query: str
    """The query without surrounding space."""
    total: int
    """The number of results in this answer."""
    total_hits: TotalHits
    confident: bool
    """Whether any result, from the first one to the last of this answer, is about the query."""
    processing_ms: float | None = None
    """Milliseconds that the index took for all queries of the request, without waiting for the index."""
    message: str | None = None
    """Only during the first build: that results are incomplete."""
    degraded: str | None = None
    """Only if a part of the search failed: which, and why."""
    corrections: tuple[Correction, ...] = ()
    """Only if words were misspelled: what is searched for as well."""
    reranker: str | None = None
    """Only if a reranker has ordered the best candidates: which one."""
    index: Freshness
    lead: Lead | None = None
    """With `units`, if the query is a question: what answers it by itself, if anything does."""
    results: tuple[Hit, ...]
    facets: Facets | None = None
    """With `facets`."""


class SectionMatch(Struct, frozen=True):
    """A section of a page, and the nearest section of another page."""

    section: str
    anchor: str
    related_section: str
    related_anchor: str
    similarity: float


class RelatedPage(NamedPage, frozen=True):
    """A page near in meaning to another one."""

    similarity: float
    """The mean of the two pages' up to three nearest pairs of passages."""
    linked: bool
    """Whether the other page links to this one already."""
    sections: tuple[SectionMatch, ...]
    """The nearest pairs of passages."""
    relevant: bool
    """Whether it is near enough to be offered to readers."""
    url: str | None = None
    """The page in the wiki."""
    link: str | None = None
    """A link to it, in the wiki's syntax."""
    kind: FileKind | None = None
    """Only of an attached file: what it is."""


class RelatedPages(Struct, frozen=True):
    """The pages near in meaning to one page, nearest first."""

    path: str
    """The page they are near to."""
    results: tuple[RelatedPage, ...]
    total: int
    """The number of results."""
    index: Freshness


class Mention(Struct, frozen=True, omit_defaults=True):
    """A phrase of a text that names a page."""

    start: int
    """Where it begins in the text, in Unicode code points."""
    end: int
    """Where it ends: before this place."""
    phrase: str
    path: str
    """The page's path in the wiki."""
    title: str
    """The page's title."""
    url: str | None = None
    """The page in the wiki."""
    link: str | None = None
    """The phrase as a link to the page, in the wiki's syntax."""


class LikelyDuplicate(NamedPage, frozen=True):
    """An existing page that may already cover the subject of a new one."""

    similarity: float | None = None
    """That of its passage nearest to a paragraph, if it is near in meaning; the names may be similar, too."""
    url: str | None = None
    """The page in the wiki."""
    link: str | None = None
    """A link to it, in the wiki's syntax."""


class DraftLinks(Struct, frozen=True, omit_defaults=True):
    """What a text that is being written could link to."""

    mentions: tuple[Mention, ...]
    """Phrases that name a page which is not linked yet, in order; each page once, at most 20."""
    pages: tuple[RelatedPage, ...]
    """Pages about the same, nearest first; only relevant ones."""
    duplicates: tuple[LikelyDuplicate, ...]
    """Of a page that is being begun: those that have a similar name or seem to be about exactly this, at most three."""
    index: Freshness
    degraded: str | None = None
    """Only if there are no `pages`: why."""


class SuggestedLabel(Struct, frozen=True, omit_defaults=True):
    """A page or a section whose name begins with what was typed."""

    kind: Literal["page", "section"]
    path: str
    """The page's path in the wiki."""
    title: str
    """The page's title."""
    section: str
    """The heading; empty for a page."""
    section_path: tuple[str, ...]
    """The headings from the outermost to this one, as far as the index has them; empty for a page."""
    anchor: str
    """The heading's id in the page; empty for a page."""
    ranges: tuple[tuple[int, int], ...]
    """What to mark in the title of a page or in the heading of a section, `[start, end)` in Unicode code points."""
    updated: str | None
    """When a commit last changed the page, ISO 8601 in UTC."""
    url: str | None = None
    """The page in the wiki, at the heading if it is a section."""
    file: FileKind | None = None
    """Only of an attached file: what it is."""


class SuggestedTag(Struct, frozen=True):
    """A tag that begins with what was typed."""

    tag: str
    pages: int
    """Number of pages with it."""


class Suggestions(Struct, frozen=True):
    """Pages and sections that may be meant by what was typed, best first."""

    query: str
    """The query without surrounding space."""
    suggestions: tuple[SuggestedLabel, ...]
    index: Freshness
    tags: tuple[SuggestedTag, ...] = ()
    """Up to three tags to narrow a search to, unless it is narrowed to one already; the most frequent first."""


class WrittenPage(Struct, frozen=True, omit_defaults=True):
    """A page as it was saved."""

    path: str
    revision: str
    """The commit that has it, or the one before if nothing has changed."""
    created: bool
    changed: bool
    indexed: bool
    """Whether searches find it as it is now; else they will in a moment."""
    related: tuple[RelatedPage, ...] = ()
    """Of a page that was created: up to three pages about the same."""
    url: str | None = None
    """The page in the wiki."""


class DeletedPage(Struct, frozen=True, omit_defaults=True):
    """A page that was deleted."""

    path: str
    revision: str
    """The commit that deleted it; its parent still has the page."""
    indexed: bool
    """Whether searches find it no more; else they will not in a moment."""
