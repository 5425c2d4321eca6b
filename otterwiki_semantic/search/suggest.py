"""Suggest pages and sections whose names begin with the typed text, without the model.

Every typed word must begin a word of the name, in any order, or the text must contain the whole title; compounds match written
together or apart. docs/api.md has the order of suggestions.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from enum import IntEnum
from itertools import chain, combinations, islice
from typing import Literal, NamedTuple

from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from otterwiki_semantic.content.analysis import NamePart, fold, name_key, name_parts
from otterwiki_semantic.core.records import NO_URLS, PageSort, PageUrls, SuggestedLabel, SuggestedTag, SuggestRequest
from otterwiki_semantic.search.query import merged_ranges
from otterwiki_semantic.storage import Catalog, Filter, LabelId, SectionLabel, page_filter, with_key, with_words

_MAX_WORDS = 16
"""Words that are looked up; further words are ignored."""
_MAX_EQUALS = 100
"""Names of one tier and length that are ordered by the number of links."""
_FEW = 3
"""Misspelled words are corrected if there are fewer suggestions."""
_MAX_CORRECTED = 4
"""Words of the longest text that is corrected."""
_ONE_ERROR, _TWO_ERRORS = 4, 8
"""The least letters of a word that may have one error, and two."""
_MAX_NEAREST = 100
_MIN_TAG, _MAX_TAGS = 2, 3
"""Letters to type before a tag is suggested, and tags suggested at a time."""
_PAGE = SectionLabel("", (), "")


class _Tier(IntEnum):
    """How well a name matches the typed text, best first."""

    NAME = 0
    """The text is the page's title, an alias, the path, or the last part of the path."""
    TITLE_BEGINS = 1
    """The title or an alias begins with the text."""
    TITLE_WORDS = 2
    PATH_WORDS = 3
    """All words are in the path or the title."""
    TITLE_CONTAINED = 4
    """The title or an alias is a part of the text."""
    HEADING = 5
    HEADING_BEGINS = 6
    HEADING_WORDS = 7
    SECTION_WORDS = 8
    """All words are in the heading, or in the page's title or path."""
    CORRECTED_PAGE = 9
    CORRECTED_SECTION = 10


_OF_SECTIONS = {_Tier.HEADING, _Tier.HEADING_BEGINS, _Tier.HEADING_WORDS, _Tier.SECTION_WORDS, _Tier.CORRECTED_SECTION}


class _Match(NamedTuple):
    """A matching page or section; sorts in the order of suggestions."""

    tier: _Tier
    length: int
    """The length of the title or heading."""
    links: int
    """The negated number of pages that link to the page."""
    path: str
    chunk: int
    """The first chunk with the section's heading."""
    place: int
    """The index of the heading in the chunk."""
    is_section: bool


def suggest(catalog: Catalog, request: SuggestRequest, urls: PageUrls = NO_URLS) -> tuple[SuggestedLabel, ...]:
    """Return pages and sections whose names match the text; without a text, the most recently changed pages.

    Raises errors of the catalog.
    """
    text = request.query
    parts = list(islice(name_parts(text), _MAX_WORDS))
    words = list(dict.fromkeys(key for part in parts for key in part.keys))
    beginnings = [fold(text[part.start : part.end]) for part in parts]
    with catalog.snapshot():
        if not text:
            newest, _ = catalog.pages.select(request.filters, request.n, 0, PageSort.UPDATED)
            return _labels(catalog, [_Match(_Tier.NAME, 0, 0, page.path, 0, 0, False) for page in newest], "", (), (), urls)
        search = _Search(catalog, page_filter(request.filters), request.n)
        corrected: tuple[str, ...] = ()
        search.add_spelled(text, words, parts)
        if search.found_few and len(words) <= _MAX_CORRECTED:
            corrected = search.add_corrected(words)
        return _labels(catalog, search.best(), name_key(text), beginnings, corrected, urls)


def suggest_tags(catalog: Catalog, request: SuggestRequest) -> tuple[SuggestedTag, ...]:
    """Return the tags that begin with the text; none if it is too short or a tag is selected. Raises errors of the catalog."""
    text = request.query.removeprefix("#")
    if len(text) < _MIN_TAG or request.filters.tags:
        return ()
    return tuple(SuggestedTag(tag, pages) for tag, pages in catalog.pages.tags_beginning_with(text, _MAX_TAGS))


class _Search:
    """Search for names, tier by tier, until there are enough."""

    def __init__(self, catalog: Catalog, where: Filter, count: int) -> None:
        self._catalog = catalog
        self._where = where
        self._count = count
        self._found: dict[LabelId, _Tier] = {}

    @property
    def found_few(self) -> bool:
        """Whether there are so few matches that words may be misspelled."""
        return len(self._found) < min(_FEW, self._count)

    def add_spelled(self, text: str, prefixes: Sequence[str], parts: Sequence[NamePart]) -> None:
        """Add the names that begin with the text, whose words begin with the prefixes, or that are some of its parts."""
        words = [[prefix] for prefix in prefixes]
        self._add(_Tier.NAME, with_key("key path_key", text))
        self._add(_Tier.TITLE_BEGINS, with_key("key", text, is_beginning=True))
        self._add(_Tier.TITLE_WORDS, with_words("words", words))
        self._add(_Tier.PATH_WORDS, with_key("path_key", text, is_beginning=True))
        self._add(_Tier.PATH_WORDS, with_words("words page_words", words))
        contained = (text[one.start : other.end] for one, other in combinations(parts, 2))
        self._add(_Tier.TITLE_CONTAINED, " OR ".join(filter(None, (with_key("key", name) for name in contained))))
        self._add(_Tier.HEADING, with_key("key", text))
        self._add(_Tier.HEADING_BEGINS, with_key("key", text, is_beginning=True))
        self._add(_Tier.HEADING_WORDS, with_words("words", words))
        if len(words) > 1:
            self._add(_Tier.SECTION_WORDS, _in_section(words))

    def add_corrected(self, words: Sequence[str]) -> tuple[str, ...]:
        """Add names with one error in each word that begins none; if there are none at all, with two.

        Returns the corrected prefixes.
        """
        known = {word for word in words if self._catalog.labels.has_word(word)}
        for errors in (1, 2) if len(known) < len(words) else ():
            alternatives = [[word] if word in known else self._spelled_like(word, errors) for word in words]
            if all(alternatives):
                self._add(_Tier.CORRECTED_PAGE, with_words("words page_words", alternatives))
                self._add(_Tier.CORRECTED_SECTION, _in_section(alternatives))
            if self._found:
                return tuple(chain.from_iterable(alternatives))
        return ()

    def _add(self, tier: _Tier, expression: str) -> None:
        if len(self._found) < self._count:
            limit = self._count + len(self._found) + _MAX_EQUALS
            found = self._catalog.labels.find(expression, self._where, limit, is_section=tier in _OF_SECTIONS)
            self._found = dict.fromkeys(found, tier) | self._found

    def _spelled_like(self, word: str, errors: int) -> list[str]:
        """Return the prefixes of names' words within `errors` edits. The first letter must match one of its first two."""
        allowed = min(errors, (len(word) >= _ONE_ERROR) + (len(word) >= _TWO_ERRORS))
        if not allowed:
            return []
        lengths = range(len(word) - allowed, len(word) + allowed + 1)
        known = [self._catalog.labels.words(letter, lengths[0]) for letter in dict.fromkeys(word[:2])]
        beginnings = dict.fromkeys(other[:length] for length in lengths for other in chain.from_iterable(known))
        near = extract(word, beginnings.keys(), scorer=OSA.distance, score_cutoff=allowed, limit=_MAX_NEAREST)
        return [beginning for beginning, _, _ in near]

    def best(self) -> list[_Match]:
        """Return the best matches, in order."""
        ranks = sorted((tier, label.length) for label, tier in self._found.items())[: self._count]
        found = [(label, tier) for label, tier in self._found.items() if (tier, label.length) <= ranks[-1]]
        paths = self._catalog.pages.paths({label.page for label, _ in found})
        links = self._catalog.pages.count_links(paths.values())
        matches = [
            _Match(tier, label.length, -links.get(path, 0), path, label.chunk, label.place, label.is_section)
            for label, tier in found
            if (path := paths.get(label.page)) is not None
        ]
        return sorted(matches)[: self._count]


def _in_section(words: Sequence[Sequence[str]]) -> str:
    """Return the expression for headings that contain all words together with their page, and at least one by themselves."""
    return f"({with_words('words page_words', words)}) AND ({with_words('words', [list(chain.from_iterable(words))])})"


def _labels(
    catalog: Catalog,
    matches: Sequence[_Match],
    key: str,
    beginnings: Collection[str],
    corrected: Collection[str],
    urls: PageUrls,
) -> tuple[SuggestedLabel, ...]:
    pages = catalog.pages.titles({match.path for match in matches})
    found = []
    for match in matches:
        title, updated, file = pages[match.path]
        section = _PAGE
        if match.is_section:
            section = catalog.reader.section_labels(match.path, match.chunk, title)[match.place]
        label = section.heading or title
        is_corrected = match.tier >= _Tier.CORRECTED_PAGE
        ranges = marked_ranges(label, corrected) if is_corrected else marked_ranges(label, beginnings, key)
        kind: Literal["page", "section"] = "section" if match.is_section else "page"
        url = urls.of(match.path, section.anchor, file)
        found.append(SuggestedLabel(kind, match.path, title, *section, ranges, updated, url, file))
    return tuple(found)


def marked_ranges(label: str, beginnings: Collection[str], key: str = "") -> tuple[tuple[int, int], ...]:
    """Return what to mark in a name, in code points: its beginning if that is the `key`, else the beginnings of its words."""
    if key and name_key(label).startswith(key):
        start = next((part.start for part in name_parts(label)), 0)
        return ((start, _end(label, start, key, name_key)),)
    found = []
    for part in name_parts(label):
        for start in (part.start, *part.inner):
            folded = fold(label[start : part.end])
            begun = max((each for each in beginnings if folded.startswith(each)), key=len, default="")
            if begun:
                found.append((start, _end(label, start, begun, fold)))
    return merged_ranges(found)


def _end(label: str, start: int, beginning: str, normalised: Callable[[str], str]) -> int:
    """Return the end of the shortest part of a name that has the beginning, including accents on its last letter."""
    end = bisect_left(range(len(label)), True, start + 1, key=lambda end: normalised(label[start:end]).startswith(beginning))
    while end < len(label) and unicodedata.combining(label[end]):
        end += 1
    return end
