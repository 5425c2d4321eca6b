"""Excerpts of the passages of an answer, with what matches the query marked."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from msgspec import structs

from otterwiki_semantic.content import excerpt_window
from otterwiki_semantic.content.chunking import count_words
from otterwiki_semantic.core.records import Answer, Highlight, Hit, SearchOptions

_MAX_WORD_CHARACTERS = 10
"""The mean length of words is taken for this if it is longer, as it is in text without spaces."""
_MIN_CHARACTERS = 60
_CUT = "…"

Range = tuple[int, int]


def with_excerpts(answer: Answer, options: SearchOptions) -> Answer:
    """Return an answer with an excerpt of each passage if one is asked for; `best_sentence` is left out if it is not."""
    if not options.wants_excerpts:
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
    """Return the characters of about so many words of a text; of the whole text if it is not cropped."""
    if words is None:
        return len(text)
    mean = len(text) / max(1, count_words(text))
    return max(_MIN_CHARACTERS, round(words * min(mean, _MAX_WORD_CHARACTERS)))


def _marked(text: str, ranges: Sequence[Range]) -> str:
    """Return a text as HTML, with ranges of it inside of ``<mark>``."""
    parts, at = [], 0
    for begin, end in ranges:
        parts += [escape(text[at:begin]), f"<mark>{escape(text[begin:end])}</mark>"]
        at = end
    return "".join((*parts, escape(text[at:])))
