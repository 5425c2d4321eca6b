"""Pages and sections whose names begin with what somebody is typing; without the model.

Every word that was typed has to begin a word of the name, in any order; what is typed may also be written together or apart.
docs/api.md has the order.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, partial
from itertools import chain, islice
from typing import Literal, NamedTuple

import numpy as np
from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from otterwiki_semantic.content.analysis import NamePart, fold, name_key, name_parts
from otterwiki_semantic.core.records import NO_URLS, PageUrls, SuggestedLabel, SuggestedTag, SuggestRequest
from otterwiki_semantic.storage import Catalog, LabelSegment, Mask, SectionLabel, page_filter

_MAX_WORDS = 16
"""Words that are looked up; the others of a longer text have no effect."""
_MAX_EQUALS = 1_000
"""Names of one tier and length that are ordered by the number of links."""
_FEW = 3
"""Misspelled words are corrected if fewer suggestions were found."""
_MAX_CORRECTED = 4
"""Words of a text that are corrected; a longer one is not."""
_ONE_ERROR, _TWO_ERRORS = 4, 8
"""The least numbers of letters of a word that may have one error and two."""
_MAX_NEAREST = 100
_MIN_TAG, _MAX_TAGS = 2, 3
"""Letters of a tag that are typed before it is suggested, and tags that are suggested at a time."""
_PAGE = SectionLabel("", (), "")


class _Tier(IntEnum):
    """How a name fits what was typed, the best first."""

    NAME = 0
    """It is the page's title, an alias, its path, or the last part of that."""
    TITLE_BEGINS = 1
    """The title or an alias begins with it."""
    TITLE_WORDS = 2
    PATH_WORDS = 3
    """Words of the path, and of the title."""
    HEADING = 4
    HEADING_BEGINS = 5
    HEADING_WORDS = 6
    SECTION_WORDS = 7
    """Words of the heading, and of the page's title or path."""
    CORRECTED_PAGE = 8
    CORRECTED_SECTION = 9


class _Match(NamedTuple):
    """A page or a section that fits."""

    order: tuple[int, int, int, str, int, int]
    """The tier, the length of the name, minus the number of links, the path, and for a section its chunk and place in that."""
    is_page: bool
    words: tuple[str, ...]
    """What the words of the name were found by, if those that were typed are misspelled."""

    @property
    def path(self) -> str:
        """The page's path."""
        return self.order[3]

    @property
    def chunk(self) -> int:
        """The first chunk with the section's heading."""
        return self.order[4]

    @property
    def number(self) -> int:
        """Which of the chunk's headings it is."""
        return self.order[5]

    @property
    def identity(self) -> tuple[object, ...]:
        """What no two suggestions have in common."""
        return self.is_page, *self.order[3:]


@dataclass(frozen=True)
class _Typed:
    """What somebody has typed."""

    text: str

    @cached_property
    def key(self) -> str:
        """All of it, as names are compared."""
        return name_key(self.text)

    @cached_property
    def parts(self) -> tuple[NamePart, ...]:
        """Its words."""
        return tuple(islice(name_parts(self.text), _MAX_WORDS))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """What is looked up for them."""
        return tuple(dict.fromkeys(key for part in self.parts for key in part.keys))

    @cached_property
    def beginnings(self) -> tuple[str, ...]:
        """What is marked in a name."""
        return tuple(fold(self.text[part.start : part.end]) for part in self.parts)


def suggest(catalog: Catalog, request: SuggestRequest, urls: PageUrls = NO_URLS) -> tuple[SuggestedLabel, ...]:
    """Return pages and sections whose names begin with the text; without a text, the pages that were changed last.

    Errors: those of the catalog.
    """
    where = page_filter(request.filters)
    index, typed = catalog.labels.get(), _Typed(request.query)
    if not request.query:
        newest = catalog.pages.paths(catalog.labels.last_changed(index, where, request.n))
        return _labels(catalog, [_Match((0, 0, 0, path, 0, 0), True, ()) for path in newest], typed, urls)
    names = catalog.reader.page_names()
    passing = catalog.labels.passing(index, where)
    searches = [_Search(*each, request.n, names.incoming_links) for each in zip(index.segments, passing, strict=True)]
    found = sorted(match for search in searches for match in search.matches(typed))[: request.n]
    if len(found) < min(_FEW, request.n) and len(typed.words) <= _MAX_CORRECTED:
        found = _with_corrected(searches, typed, found, request.n)
    return _labels(catalog, found, typed, urls)


def suggest_tags(catalog: Catalog, request: SuggestRequest) -> tuple[SuggestedTag, ...]:
    """Return the tags that begin with the text, unless it is too short or a tag is chosen. Errors: those of the catalog."""
    text = request.query.removeprefix("#")
    if len(text) < _MIN_TAG or request.filters.tags:
        return ()
    return tuple(SuggestedTag(tag, pages) for tag, pages in catalog.pages.tags_beginning_with(text, _MAX_TAGS))


def _with_corrected(searches: Sequence[_Search], typed: _Typed, found: Sequence[_Match], n: int) -> list[_Match]:
    """Return what was found, and names with one error in each word that begins none; if there are none at all, with two."""
    known = {word for word in typed.words if any(search.has_word(word) for search in searches)}
    all_found = {match.identity: match for match in found}
    for errors in (1, 2) if len(known) < len(typed.words) else ():
        for match in sorted(match for search in searches for match in search.corrected(typed.words, known, errors)):
            all_found.setdefault(match.identity, match)
        if all_found:
            break
    return list(all_found.values())[:n]


class _Search:
    """Looks for names in one segment."""

    def __init__(self, segment: LabelSegment, passing: Mask, count: int, links: Callable[[str], int]) -> None:
        self._segment = segment
        self._passing = passing
        self._passing_headings: Mask = passing[segment.pages_of_headings]
        self._count = count
        self._links = links

    def has_word(self, word: str) -> bool:
        """Return whether a word begins so."""
        return len(self._segment.words.find(word)) > 0

    def matches(self, typed: _Typed) -> Iterator[_Match]:
        """Yield the best names, at least as many as are wanted if there are."""
        left, pages, headings = self._count, self._passing, self._passing_headings
        for tier, is_page, mask in self._tiers(typed):
            found = list(self._best(tier, mask & (pages if is_page else headings), is_page=is_page))
            yield from found
            left -= len(found)
            if left <= 0:
                return
            if is_page:
                pages = pages & ~mask
            else:
                headings = headings & ~mask

    def _tiers(self, typed: _Typed) -> Iterator[tuple[_Tier, bool, Mask]]:
        """Yield each tier, whether it is one of pages, and what is in it."""
        if not typed.key:  # accents alone, which begin every name
            return
        whole, begun = self._segment.with_key(typed.key), self._segment.with_key(typed.key, is_beginning=True)
        words = self._with_all([[word] for word in typed.words])
        yield _Tier.NAME, True, whole.titles | whole.paths
        yield _Tier.TITLE_BEGINS, True, begun.titles
        yield _Tier.TITLE_WORDS, True, words.titles
        yield _Tier.PATH_WORDS, True, begun.paths | words.paths
        yield _Tier.HEADING, False, whole.headings
        yield _Tier.HEADING_BEGINS, False, begun.headings
        yield _Tier.HEADING_WORDS, False, words.headings
        yield _Tier.SECTION_WORDS, False, words.sections

    def corrected(self, words: Sequence[str], known: Container[str], errors: int) -> Iterator[_Match]:
        """Yield the best names with words that begin like these, with up to so many errors in each that is not known."""
        alternatives = [[word] if word in known else self._spelled_like(word, errors) for word in words]
        if all(alternatives):
            found, marked = self._with_all(alternatives), tuple(chain.from_iterable(alternatives))
            yield from self._best(_Tier.CORRECTED_PAGE, found.paths & self._passing, marked, is_page=True)
            yield from self._best(_Tier.CORRECTED_SECTION, found.sections & self._passing_headings, marked, is_page=False)

    def _spelled_like(self, word: str, errors: int) -> list[str]:
        """Return how words begin that are a word's but for up to so many errors; the first letter is one of its first two."""
        allowed = min(errors, (len(word) >= _ONE_ERROR) + (len(word) >= _TWO_ERRORS))
        if not allowed:
            return []
        known = self._segment.words.texts
        lengths = range(len(word) - allowed, len(word) + allowed + 1)
        beginnings: dict[str, None] = {}
        for other in chain.from_iterable(known.part(known.range_of(letter)) for letter in dict.fromkeys(word[:2])):
            beginnings.update((other[:length], None) for length in lengths if length <= len(other))
        near = extract(word, beginnings.keys(), scorer=OSA.distance, score_cutoff=allowed, limit=_MAX_NEAREST)
        return [beginning for beginning, _, _ in near]

    def _with_all(self, words: Sequence[Sequence[str]]) -> _Found:
        """Return the names that have one of each of these."""
        segment = self._segment
        if not words:
            nothing = segment.with_words(())
            return _Found(*nothing, nothing.headings)
        titles, paths, headings = segment.with_words(words[0])
        pages, has_any = titles | paths, headings
        sections = headings | pages[segment.pages_of_headings]
        for each in words[1:]:
            if not (pages.any() or sections.any()):
                break
            found = segment.with_words(each)
            on_page = found.titles | found.paths
            titles, pages, headings = titles & found.titles, pages & on_page, headings & found.headings
            sections = sections & (found.headings | on_page[segment.pages_of_headings])
            has_any = has_any | found.headings
        return _Found(titles, pages, headings, sections & has_any)

    def _best(self, tier: _Tier, mask: Mask, words: tuple[str, ...] = (), *, is_page: bool) -> Iterator[_Match]:
        """Yield the best names of a mask in one tier, in order."""
        all_lengths = self._segment.title_lengths if is_page else self._segment.heading_lengths
        found = np.flatnonzero(mask)
        if len(found) > self._count:
            lengths = all_lengths[found]
            found = found[lengths <= np.partition(lengths, self._count - 1)[self._count - 1]]
            found = found[np.argsort(all_lengths[found], kind="stable")][: self._count + _MAX_EQUALS]
        yield from sorted(self._match(tier, place, words, is_page=is_page) for place in found.tolist())[: self._count]

    def _match(self, tier: _Tier, place: int, words: tuple[str, ...], *, is_page: bool) -> _Match:
        segment = self._segment
        if is_page:
            path = segment.paths[place]
            return _Match((tier, int(segment.title_lengths[place]), -self._links(path), path, 0, 0), True, words)
        path = segment.paths[segment.pages_of_headings[place]]
        length, chunk, number = (
            int(of_all[place]) for of_all in (segment.heading_lengths, segment.ordinals, segment.numbers_in_chunk)
        )
        return _Match((tier, length, -self._links(path), path, chunk, number), False, words)


class _Found(NamedTuple):
    """Labels that have all words."""

    titles: Mask
    paths: Mask
    """With those of the titles."""
    headings: Mask
    sections: Mask
    """Headings with those of the page's title and path; at least one word is the heading's."""


def _labels(catalog: Catalog, matches: Sequence[_Match], typed: _Typed, urls: PageUrls) -> tuple[SuggestedLabel, ...]:
    """Return what is shown of pages and sections."""
    pages = catalog.pages.titles({match.path for match in matches})
    found = []
    for match in matches:
        title, updated = pages[match.path]
        section = _PAGE
        if not match.is_page:
            section = catalog.reader.section_labels(match.path, match.chunk, title)[match.number]
        label = section.heading or title
        ranges = marked_ranges(label, match.words) if match.words else marked_ranges(label, typed.beginnings, typed.key)
        kind: Literal["page", "section"] = "page" if match.is_page else "section"
        url = urls.of(match.path, section.anchor)
        found.append(SuggestedLabel(kind, match.path, title, *section, ranges, updated, url))
    return tuple(found)


def marked_ranges(label: str, beginnings: Collection[str], key: str = "") -> tuple[tuple[int, int], ...]:
    """Return what to mark in a name, in code points: its beginning if it begins with the `key`, else those of its words."""
    if key and name_key(label).startswith(key):
        start = next((part.start for part in name_parts(label)), 0)
        return ((start, _end(label, start, lambda text: name_key(text).startswith(key))),)
    found = []
    for part in name_parts(label):
        for start in (part.start, *part.inner):
            folded = fold(label[start : part.end])
            begun = max((each for each in beginnings if folded.startswith(each)), key=len, default="")
            if begun:
                found.append((start, _end(label, start, partial(_begins, begun))))
    return tuple(_merged(found))


def _end(label: str, start: int, is_enough: Callable[[str], bool]) -> int:
    """Return where the shortest part of a name ends that is enough, with the accents on its last letter."""
    end = bisect_left(range(len(label)), True, start + 1, key=lambda end: is_enough(label[start:end]))
    while end < len(label) and unicodedata.combining(label[end]):
        end += 1
    return end


def _begins(beginning: str, text: str) -> bool:
    return fold(text).startswith(beginning)


def _merged(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield ranges in order, those that overlap as one."""
    last: tuple[int, int] | None = None
    for start, end in sorted(ranges):
        if last is not None and start <= last[1]:
            last = last[0], max(end, last[1])
            continue
        if last is not None:
            yield last
        last = start, end
    if last is not None:
        yield last
