"""The Markdown of a passage from git, and its excerpt with matches marked."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from msgspec import structs

from otterwiki_semantic.content import Repository, excerpt_window
from otterwiki_semantic.content.chunking import count_words
from otterwiki_semantic.content.markdown import PassageMarkdown, passage_markdown
from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.records import Answer, Highlight, Hit, SearchOptions
from otterwiki_semantic.core.settings import MAX_PAGE_BYTES
from otterwiki_semantic.search.pipeline import SearchResult
from otterwiki_semantic.storage import Catalog

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

Range = tuple[int, int]

log = logging.getLogger(__name__)


def with_markdown(found: SearchResult, repository: Repository, catalog: Catalog, section_words: int = 0) -> SearchResult:
    """Return the results of a catalog search with their Markdown, unless git fails. Raises errors of the catalog.

    Sections of up to `section_words` words are returned whole; by default only small sections of the best results.
    """
    blobs = catalog.pages.blobs({hit.path for hit in found.hits})
    try:
        pages = _texts(found.hits, repository, blobs)
    except RepositoryError as error:
        log.warning("passages are returned without their Markdown: %s", error)
        return found
    hits = [
        _with_markdown(hit, page, section_words or (_SMALL_SECTION if rank < _WHOLE_SECTIONS else 0))
        if (page := pages.get(hit.path)) is not None
        else hit
        for rank, hit in enumerate(found.hits)
    ]
    return replace(found, hits=tuple(hits))


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
    if len(source.text) > max(_MAX_GROWTH * len(own), _LONG, words * _CHARACTERS_PER_WORD):  # very long lines
        source = PassageMarkdown(own, hit.text_start_line, hit.text_end_line)
    return structs.replace(hit, markdown=source.text, markdown_start_line=source.start_line, markdown_end_line=source.end_line)


def with_excerpts(answer: Answer, options: SearchOptions) -> Answer:
    """Return an answer with excerpts if requested, and without `best_sentence` unless requested."""
    if options.highlight is None and options.crop is None:
        return answer
    hits = (_with_excerpt(hit, options) for hit in answer.results)
    return structs.replace(answer, results=tuple(hits))


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
