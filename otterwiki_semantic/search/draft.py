"""What a text that is being written could link to: pages that it names, and pages about the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs

from otterwiki_semantic.content.analysis import name_key
from otterwiki_semantic.content.pages import find_links, page_key, prose
from otterwiki_semantic.core.records import Mention, PageUrls, RelatedPage
from otterwiki_semantic.embedding import Matrix, is_common_word
from otterwiki_semantic.search.related import PageVectors, pages_near
from otterwiki_semantic.search.similarity_scale import Scale
from otterwiki_semantic.storage import Catalog, Generation, LabelSegment

_WORD = re.compile(r"\w+(?:['’.]\w+)*")
_BETWEEN_WORDS = re.compile(r"[ \t]*[\s&/'’-][ \t]*")
"""What may stand between two words of a name; a line break, but no empty line."""
_MOST_WORDS, _MOST_MENTIONS = 8, 20
_LEAST_LETTERS = 3
_PARAGRAPHS = 8
"""Paragraphs of a text that are embedded: the ones around the cursor, and others evenly spread."""
_NEAR_CURSOR = 3
_MAX_PARAGRAPH = 1_000
"""Characters of a paragraph that are embedded."""
_MIN_WORDS = 4
"""Shorter paragraphs say little."""
_FLOOR = 0.45
"""The least similarity, on the bundled model's scale, of a page to one of the paragraphs."""
_DUPLICATE, _BEGUN_WORDS, _MOST_DUPLICATES = 0.55, 200, 2
"""The same of a page that may be about exactly this already, and up to which length a text counts as begun."""
_BLANK_LINE = re.compile(r"\n[ \t]*\n")

Embed = Callable[[Sequence[str]], Matrix]


class _Phrase(NamedTuple):
    """Words of the text that are the name of one page."""

    start: int
    end: int
    segment: int
    place: int
    """Which page of the segment."""


def find_mentions(catalog: Catalog, text: str, path: str, urls: PageUrls) -> tuple[Mention, ...]:
    """Return the phrases of a text that name a page, each page once, without the page at `path` and those linked already.

    Titles and aliases count, whatever their case; a single word only as the title has it, unless it is a rare one. Nothing is
    found in links, code, headings and front matter. Errors: those of the catalog.
    """
    index = catalog.labels.get()
    numbers: dict[int, _Phrase] = {}
    for phrase in _phrases(catalog, text):
        number = int(index.segments[phrase.segment].numbers[phrase.place])
        numbers.setdefault(number, phrase)
    paths = catalog.pages.paths(list(numbers))
    titles = catalog.pages.titles(paths)
    linked = find_links(text, path, {page_key(each) for each in paths})
    found = (
        Mention(phrase.start, phrase.end, text[phrase.start : phrase.end], named, titles[named][0], urls.of(named))
        for named, phrase in zip(paths, numbers.values(), strict=True)
        if page_key(named) not in {*linked, page_key(path)} and _is_meant(text[phrase.start : phrase.end], titles[named][0])
    )
    return tuple(sorted(found, key=lambda each: each.start))[:_MOST_MENTIONS]


def _is_meant(phrase: str, title: str) -> bool:
    """Whether a phrase means the page that it names: a single word may be an everyday one."""
    if sum(map(str.isalpha, phrase)) < _LEAST_LETTERS:
        return False
    if len(_WORD.findall(phrase)) > 1:
        return True
    return (phrase == title and phrase != phrase.lower()) or not is_common_word(phrase.casefold())


class _Names:
    """The names of a wiki's pages, as they are looked up for one text: the same words only once."""

    def __init__(self, segments: Sequence[LabelSegment]) -> None:
        self._segments = segments
        self._begun: dict[str, bool] = {}
        self._named: dict[str, list[tuple[int, int]]] = {}

    def is_begun_by(self, key: str) -> bool:
        """Whether a name begins with a key."""
        if key not in self._begun:
            self._begun[key] = any(segment.begins_name(key) for segment in self._segments)
        return self._begun[key]

    def pages(self, key: str) -> list[tuple[int, int]]:
        """Return the pages with a name, as segments and places in these."""
        if key not in self._named:
            found = [(at, place) for at, segment in enumerate(self._segments) for place in segment.pages_named(key)]
            self._named[key] = found
        return self._named[key]


def _phrases(catalog: Catalog, text: str) -> Iterator[_Phrase]:
    """Yield the longest names in a text, from its beginning, that are those of one page."""
    words = list(_WORD.finditer(prose(text)))
    keys = [name_key(word[0]) for word in words]
    names = _Names(catalog.labels.get().segments)
    at = 0
    while at < len(words):
        number, page = _longest_name(names, text, words[at : at + _MOST_WORDS], keys[at : at + _MOST_WORDS])
        if page is not None:
            yield _Phrase(words[at].start(), words[at + number - 1].end(), *page)
        at += number


def _longest_name(
    names: _Names, text: str, words: Sequence[re.Match[str]], keys: Sequence[str]
) -> tuple[int, tuple[int, int] | None]:
    """Return how many of some words, from the first on, are the longest name of one page, and that; or 1 and None."""
    key = ""
    best: tuple[int, tuple[int, int] | None] = 1, None
    for number, (word, own_key) in enumerate(zip(words, keys, strict=True), 1):
        if number > 1 and not _BETWEEN_WORDS.fullmatch(text, words[number - 2].end(), word.start()):
            break
        key += own_key
        if not names.is_begun_by(key):
            break
        if len(pages := names.pages(key)) == 1:
            best = number, pages[0]
    return best


def pages_about(
    generation: Generation, text: str, cursor: int | None, path: str, n: int, embed: Embed, scale: Scale, urls: PageUrls
) -> tuple[RelatedPage, ...]:
    """Return the pages nearest in meaning to a text, without the page at `path`; `embed` returns the vectors of paragraphs.

    Errors: those of the model, of the catalog and of ChromaDB.
    """
    chosen = _chosen(_paragraphs(text), len(text) if cursor is None else cursor)
    if not chosen:
        return ()
    own = PageVectors(list(range(len(chosen))), np.asarray(embed(chosen)))
    floor = scale.from_bundled(_FLOOR)
    found = pages_near(generation, own, path, (), n, scale, urls, pairs=1)
    near = [page for page in found if page.similarity >= floor]
    linked = find_links(text, path, {page_key(page.path) for page in near})
    return tuple(structs.replace(page, linked=page_key(page.path) in linked) for page in near)


def likely_duplicates(text: str, pages: Sequence[RelatedPage], scale: Scale) -> tuple[RelatedPage, ...]:
    """Return the pages that a page which is being begun might duplicate, of those near to it; none of a text of some length."""
    floor = scale.from_bundled(_DUPLICATE)
    is_begun = len(text.split()) <= _BEGUN_WORDS
    return tuple(page for page in pages if is_begun and page.similarity >= floor)[:_MOST_DUPLICATES]


def _paragraphs(text: str) -> list[tuple[int, str]]:
    """Return the paragraphs of a text that say something, with where they begin."""
    starts = [0, *(match.end() for match in _BLANK_LINE.finditer(text))]
    ends = [*starts[1:], len(text)]
    parts = [(start, text[start:end].strip()[:_MAX_PARAGRAPH]) for start, end in zip(starts, ends, strict=True)]
    return [(start, part) for start, part in parts if len(part.split()) >= _MIN_WORDS]


def _chosen(paragraphs: Sequence[tuple[int, str]], cursor: int) -> list[str]:
    """Return the paragraphs to embed, in order: those nearest to the cursor, and others evenly spread."""
    near = sorted(range(len(paragraphs)), key=lambda number: abs(paragraphs[number][0] - cursor))[:_NEAR_CURSOR]
    spread = (
        np.linspace(0, len(paragraphs) - 1, min(len(paragraphs), _PARAGRAPHS - len(near))).astype(int) if paragraphs else ()
    )
    return [paragraphs[number][1] for number in sorted({*near, *map(int, spread)})]
