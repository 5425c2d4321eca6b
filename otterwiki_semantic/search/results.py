"""Build results from chosen candidates: text, highlights, relevance, explanations, facets, Markdown from git and excerpts."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import pairwise

from msgspec import structs

from otterwiki_semantic.content import Repository, excerpt_window
from otterwiki_semantic.content.chunking import count_words
from otterwiki_semantic.content.markdown import PassageMarkdown, passage_markdown, unpadded_tables
from otterwiki_semantic.content.pages import parent_path
from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.records import (
    Answer,
    ChunkSection,
    Explanation,
    Facets,
    Highlight,
    Hit,
    HitUnit,
    PageUrls,
    RetrieverScore,
    SearchOptions,
    Sort,
    StoredChunk,
    cited_title,
    page_number,
)
from otterwiki_semantic.core.settings import MAX_PAGE_BYTES
from otterwiki_semantic.search.best_unit import Range, ScoredUnit, UnitChooser
from otterwiki_semantic.search.query import Highlighter, Query
from otterwiki_semantic.search.retrieval import CandidateSet
from otterwiki_semantic.search.scoring import Candidate, Tier
from otterwiki_semantic.storage import Catalog

_JOINED_SHARE = 0.75
"""The least share of the best score with which a neighbour is joined."""
_JOINED_RANK_SHARE = 0.9
"""The same share if scores are reciprocal ranks; joins as many words on the judged wikis."""
_JOINED_BLOCK = 5
"""Results whose chunks join no run of another one in the block; a later result may be part of an earlier run."""
_MAX_DISTANCE = 2
"""Chunks between a result and a neighbour that may be joined to it."""
_MAX_JOINED = 3
_WHOLE_SECTIONS = 3
"""Best results that are returned with the rest of a small section."""
_SMALL_SECTION = 120
"""Words of a small section."""
_CHARACTERS_PER_WORD = 8
_MAX_GROWTH, _LONG = 3, 2_000
"""How much longer than the passage its whole blocks may be, and the length in characters above which this applies."""
_MAX_WORD_CHARACTERS = 10
"""An upper bound for the mean length of words, which is large in text without spaces."""
_MIN_CHARACTERS = 60
_CUT = "…"

_OF_CHUNK = (
    *("name", "path", "title", "category", "tags", "prefix_length", "overlap_length", "start_line", "end_line"),
    *("chunk_index", "total_chunks", "page_word_count", "updated", "kind"),
)
"""Fields that a result copies from its chunk."""


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ResultBuilder:
    """Build the results of one query from its candidates."""

    catalog: Catalog
    query: Query
    found: CandidateSet
    ranked: Sequence[Candidate]
    """The eligible candidates, best first."""
    options: SearchOptions
    urls: PageUrls
    units: UnitChooser

    def hits(
        self,
        chosen: Sequence[Candidate],
        also_on: Mapping[int, set[str]],
        shown: set[tuple[str, int]],
        first: int,
        count: int,
    ) -> list[Hit]:
        """Return up to `count` results, best first; the number of the first one is `first`, from 0.

        `also_on` has the pages that repeat a chunk. `shown` has the chunks of earlier results and their joined neighbours, by
        page and number, and is updated. The text of a result depends on the results before it and the next few, but not on
        `count`.
        """
        chosen = chosen[: -(-count // _JOINED_BLOCK) * _JOINED_BLOCK]
        neighbours = self._neighbours(chosen)
        stored = self.catalog.reader.chunks([each.id for each in (*chosen, *neighbours)])
        chosen = [each for each in chosen if each.id in stored]
        near = [stored[each.id] for each in neighbours if each.id in stored]
        runs: list[list[StoredChunk]] = []
        for start in range(0, len(chosen), _JOINED_BLOCK):
            runs += chunk_runs([stored[each.id] for each in chosen[start : start + _JOINED_BLOCK]], near, shown)
        chosen = chosen[:count]
        highlights = [self._highlighter.ranges(stored[each.id].text) for each in chosen]
        units = self._units([stored[each.id] for each in chosen], highlights)
        return [
            self._hit(each, stored[each.id], run, rank, also_on.get(each.id, ()), matches, ranked)
            for rank, (each, run, matches, ranked) in enumerate(zip(chosen, runs, highlights, units, strict=False), first)
        ]

    def _units(self, chunks: Sequence[StoredChunk], highlights: Sequence[tuple[Range, ...]]) -> list[Sequence[ScoredUnit]]:
        """Return the units of each chunk, best first, where the results need them."""
        if self.options.needs_best_sentence:
            return list(self.units.rank(chunks, highlights))
        several = [place for place, chunk in enumerate(chunks) if len(chunk.sections) > 1]
        found = self.units.rank([chunks[place] for place in several], [highlights[place] for place in several])
        units: list[Sequence[ScoredUnit]] = [()] * len(chunks)
        for place, ranked in zip(several, found, strict=True):
            units[place] = ranked
        return units

    def facets(self, chosen: Sequence[Candidate]) -> Facets:
        """Count the pages of the results and of all other relevant candidates."""
        paths = {each.path for each in (*chosen, *(each for each in self.ranked if each.is_relevant))}
        labels = self.catalog.reader.page_labels(sorted(paths))
        return Facets(
            category=_counts(category for category, _, _ in labels.values() if category),
            tag=_counts(tag for _, tags, _ in labels.values() for tag in tags),
            path=_counts(facet_folders(labels)),
            type=_counts(kinds) if {*(kinds := [kind or "page" for _, _, kind in labels.values()])} - {"page"} else {},
        )

    def _neighbours(self, chosen: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates that may be joined to results: nearly as good as the best, and close to one on its page."""
        steps = [step for step in range(-_MAX_DISTANCE, _MAX_DISTANCE + 1) if step]
        close = {(each.path, each.ordinal + step) for each in chosen for step in steps}
        share = _JOINED_RANK_SHARE if self.found.is_rank_fused else _JOINED_SHARE
        threshold = share * max([each.score for each in self.ranked], default=0.0)
        best = [each for each in self.ranked if each.score >= threshold > 0]
        near = [each for each in best if (each.path, each.ordinal) in close]
        return sorted(near, key=lambda each: -each.score)

    @cached_property
    def _highlighter(self) -> Highlighter:
        return Highlighter(self.query)

    def _hit(
        self,
        candidate: Candidate,
        chunk: StoredChunk,
        run: Sequence[StoredChunk],
        rank: int,
        also_on: Iterable[str],
        highlights: tuple[Range, ...],
        units: Sequence[ScoredUnit],
    ) -> Hit:
        """Return a candidate as a result, named after the section of the best of its `units`, which is the first."""
        best = units[0].unit if units else None
        section = ChunkSection(chunk.section_path, chunk.anchor) if best is None else chunk.sections[best.section]
        distance = None if candidate.similarity is None else _rounded(max(0.0, 1 - candidate.similarity))
        number = page_number(chunk.kind, section.anchor)
        page, page_title = self._page_of(chunk)
        before, after = context_around(chunk, self.options.context, self.catalog.reader.page_range)
        return Hit(
            **{name: getattr(chunk, name) for name in _OF_CHUNK},
            snippet=chunk.text,
            distance=distance,
            similarity=None if distance is None else _rounded(1 - distance),
            section=section.heading,
            section_path=(trail := _trail(chunk.title, section.path)),
            breadcrumb=" > ".join((cited_title(chunk.title, chunk.kind, number), *trail[1:])),
            headings=tuple(dict.fromkeys(heading for part in run for heading in part.headings)),
            anchor=section.anchor,
            text=joined_text(run),
            text_start_line=min(part.start_line for part in run),
            text_end_line=max(part.end_line for part in run),
            score=_rounded(candidate.score),
            relevant=candidate.is_relevant,
            highlights=highlights,
            best_sentence=(best.start, best.end) if best is not None and self.options.needs_best_sentence else None,
            units=tuple(_hit_unit(each, chunk) for each in units[: self.options.units]),
            also_on=tuple(sorted(also_on)),
            context_before=before,
            context_after=after,
            explain=self._explanation(candidate, rank) if self.options.explain else None,
            url=self.urls.of(chunk.path, section.anchor, chunk.kind),
            not_shown=not self.urls.shows(chunk.path, chunk.kind),
            attached_to=page,
            attached_to_title=page_title,
            page_number=number,
        )

    def _page_of(self, chunk: StoredChunk) -> tuple[str, str] | tuple[None, None]:
        """Return path and title of the page that a file is attached to; None for a page, or without one in a folder."""
        path = parent_path(chunk.path) if chunk.kind else ""
        titles = self.catalog.pages.titles([path]) if path else {}
        return (path, titles[path][0]) if path in titles else (None, None)

    def _explanation(self, candidate: Candidate, rank: int) -> Explanation:
        rule = candidate.tier.name.lower().replace("_", " ")
        if self.options.sort is Sort.UPDATED:
            rule = "updated"
        elif self.options.diversity > 0 and rank > 0 and candidate.tier is Tier.SCORE:
            rule = "diversity"
        elif candidate.rank_before is not None:
            rule = "reranker"
        return Explanation(
            semantic=_score(candidate.semantic_rank, candidate.similarity),
            keyword=_score(candidate.keyword_rank, candidate.keyword_score),
            fused=_rounded(candidate.fused),
            page_credit=_rounded(candidate.page_credit),
            names=_rounded(candidate.name_points),
            links=_rounded(candidate.link_points),
            recency=_rounded(candidate.recency_points),
            rule=rule,
            coverage=_rounded(candidate.coverage),
            relevance=_rounded(candidate.relevance),
            rerank=_score(candidate.rank_before, candidate.rerank_score),
        )


def _hit_unit(scored: ScoredUnit, chunk: StoredChunk) -> HitUnit:
    unit, section = scored.unit, chunk.sections[scored.unit.section]
    return HitUnit(
        range=(unit.start, unit.end),
        kind=unit.kind,
        section=section.heading,
        section_path=_trail(chunk.title, section.path),
        anchor=section.anchor,
        start_line=unit.start_line,
        end_line=unit.end_line,
        score=_rounded(scored.score),
        similarity=None if scored.similarity is None else _rounded(scored.similarity),
        coverage=_rounded(scored.coverage),
        header=scored.header,
        items=scored.items,
        code=scored.code,
    )


def _trail(title: str, headings: Sequence[str]) -> tuple[str, ...]:
    """Return the page's title and headings; a first heading equal to the title is dropped."""
    return title, *(headings[1:] if headings[:1] == (title,) else headings)


def _score(rank: int | None, score: float | None) -> RetrieverScore:
    return RetrieverScore(rank, None if score is None else _rounded(score))


def _rounded(number: float) -> float:
    return round(number, 6)


def facet_folders(paths: Iterable[str]) -> list[str]:
    """Return the folders of pages at the first level that has several, or at the last one; pages above it have none."""
    folders = [path.split("/")[:-1] for path in paths]
    named: list[str] = []
    for level in range(1, 1 + max(map(len, folders), default=0)):
        named = ["/".join(folder[:level]) + "/" for folder in folders if len(folder) >= level]
        if len({*named}) > 1:
            break
    return named


def _counts(values: Iterable[str]) -> dict[str, int]:
    """Return how often each value occurs, most frequent first, ties by name."""
    return dict(Counter(sorted(values)).most_common())


def chunk_runs(
    chosen: Sequence[StoredChunk], candidates: Sequence[StoredChunk], taken: set[tuple[str, int]]
) -> list[list[StoredChunk]]:
    """Return for each chosen chunk its run: the chunk and adjacent candidates of the page, in order.

    Answers often continue after a chunk's end. A candidate that is a result itself joins no other run, and a run has up to
    three chunks. Chunks in `taken` are not joined; the chunks of all runs are added to it.
    """
    taken.update((chunk.path, chunk.chunk_index) for chunk in chosen)
    runs = [[chunk] for chunk in chosen]
    for candidate in candidates:
        if (candidate.path, candidate.chunk_index) in taken:
            continue
        for run in runs:
            is_next = candidate.chunk_index in (run[0].chunk_index - 1, run[-1].chunk_index + 1)
            if candidate.path == run[0].path and is_next and len(run) < _MAX_JOINED:
                run.insert(0 if candidate.chunk_index < run[0].chunk_index else len(run), candidate)
                taken.add((candidate.path, candidate.chunk_index))
                break
    return runs


def joined_text(run: Sequence[StoredChunk]) -> str:
    """Return the text of consecutive chunks without overlaps, with the heading path where it changes."""
    if not run:
        return ""
    own = [chunk.text[chunk.prefix_length + chunk.overlap_length :] for chunk in run]
    text = run[0].text[: run[0].prefix_length] + own[0].lstrip()
    for (before, following), new in zip(pairwise(run), own[1:], strict=True):
        goes_on = following.overlap_length > 0 or before.section_path == following.section_path
        text += ("" if new[:1].isspace() else "\n\n") + new if goes_on else f"\n\n{following.text}"
    return text


def context_around(
    chunk: StoredChunk, count: int, page_chunks: Callable[[str, int, int], Sequence[StoredChunk]]
) -> tuple[str | None, str | None]:
    """Return the text of up to `count` chunks before and after a chunk, or None where there are none.

    `page_chunks` reads the chunks of a page from one index to another.
    """
    if not count:
        return None, None
    around = page_chunks(chunk.path, chunk.chunk_index - count, chunk.chunk_index + count)
    before = [other for other in around if other.chunk_index < chunk.chunk_index]
    after = [other for other in around if other.chunk_index > chunk.chunk_index]
    return joined_text(before) or None, joined_text(after) or None


def with_markdown(hits: Sequence[Hit], repository: Repository, catalog: Catalog, section_words: int) -> tuple[Hit, ...]:
    """Return the results of a catalog search with their Markdown, unless git fails. Raises errors of the catalog.

    Sections of up to `section_words` words are returned whole; if 0, only small sections of the best results.
    """
    try:
        pages = _texts(hits, repository, catalog.pages.blobs({hit.path for hit in hits}))
    except RepositoryError as error:
        log.warning("passages are returned without their Markdown: %s", error)
        return tuple(hits)
    sizes = [section_words or (_SMALL_SECTION if rank < _WHOLE_SECTIONS else 0) for rank in range(len(hits))]
    return tuple(
        _with_markdown(hit, pages[hit.path], size) if hit.path in pages else hit for hit, size in zip(hits, sizes, strict=True)
    )


def _texts(hits: Sequence[Hit], repository: Repository, blobs: Mapping[str, str]) -> dict[str, str]:
    """Return the Markdown of pages from git, and of attached files where known, by path. Raises errors of git."""
    kinds = {hit.path: hit.kind for hit in hits}
    texts = {path: text.markdown for path, kind in kinds.items() if kind and (text := repository.file_text(blobs[path], kind))}
    pages = [path for path in blobs if not kinds[path]]
    contents = repository.read_blobs((blobs[path] for path in pages), MAX_PAGE_BYTES)
    return texts | {path: content.decode("utf-8", "replace") for path, content in zip(pages, contents, strict=True)}


def _with_markdown(hit: Hit, page: str, section_words: int) -> Hit:
    words = section_words if hit.relevant else 0
    source = passage_markdown(page, hit.text_start_line, hit.text_end_line, words)
    own = hit.text.removeprefix(hit.snippet[: hit.prefix_length])
    limit = max(_MAX_GROWTH * len(own), _LONG, words * _CHARACTERS_PER_WORD)
    if len(source.text) > limit:
        source = replace(source, text=unpadded_tables(source.text))
    if len(source.text) > limit:  # very long lines
        source = PassageMarkdown(own, hit.text_start_line, hit.text_end_line)
    return structs.replace(hit, markdown=source.text, markdown_start_line=source.start_line, markdown_end_line=source.end_line)


def with_excerpts(answer: Answer, options: SearchOptions) -> Answer:
    """Return an answer with excerpts if requested, and without `best_sentence` unless requested."""
    if options.highlight is None and options.crop is None:
        return answer
    return structs.replace(answer, results=tuple(_with_excerpt(hit, options) for hit in answer.results))


def _with_excerpt(hit: Hit, options: SearchOptions) -> Hit:
    start = hit.prefix_length + hit.overlap_length
    matches = [(begin, end) for begin, end in hit.highlights if begin >= start]
    size = _size(hit.snippet[start:], options.crop)
    first, last = excerpt_window(hit.snippet, start, matches, hit.best_sentence, size, is_filled=True)
    text = hit.snippet[first:last].rstrip()
    before = f"{_CUT} " if hit.snippet[start:first].strip() else ""
    after = f" {_CUT}" if hit.snippet[last:].strip() else ""
    shift, end = len(before) - first, first + len(text)
    ranges = tuple((begin + shift, min(stop, end) + shift) for begin, stop in matches if first <= begin < end)
    excerpt = f"{before}{text}{after}"
    return structs.replace(
        hit,
        best_sentence=hit.best_sentence if options.best_sentence else None,
        excerpt=excerpt,
        excerpt_html=_marked(excerpt, ranges) if options.highlight is Highlight.HTML else None,
        excerpt_highlights=ranges if options.highlight is Highlight.RANGES else None,
    )


def _size(text: str, words: int | None) -> int:
    """Return the number of characters in about `words` words; the length of the text if None."""
    if words is None:
        return len(text)
    mean = len(text) / max(1, count_words(text))
    return max(_MIN_CHARACTERS, round(words * min(mean, _MAX_WORD_CHARACTERS)))


def _marked(text: str, ranges: Sequence[Range]) -> str:
    """Return a text as HTML, with ranges enclosed in ``<mark>``."""
    parts, at = [], 0
    for begin, end in ranges:
        parts += [escape(text[at:begin]), f"<mark>{escape(text[begin:end])}</mark>"]
        at = end
    return "".join((*parts, escape(text[at:])))
