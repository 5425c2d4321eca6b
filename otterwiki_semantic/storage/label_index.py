"""The labels of all pages in memory, by their words and as a whole: what is looked up while somebody types.

As in Lucene, an index is a list of segments that never change. Pages that were added are a new segment, those that are gone are
masked, and small segments are merged. A changed page has a new number, so that a segment is the pages between two numbers.
"""

from __future__ import annotations

import json
import math
import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.content.analysis import name_key, name_parts
from otterwiki_semantic.content.pages import page_name
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.storage.exact_index import Mask
from otterwiki_semantic.storage.filters import Filter
from otterwiki_semantic.storage.labels import section_labels
from otterwiki_semantic.storage.page_names import name_words
from otterwiki_semantic.storage.schema import read_revision
from otterwiki_semantic.storage.sqlite import IN_LIST, SqliteFile

Places = npt.NDArray[np.int32]

_STATES = 2
"""States kept: a request that began before the last change still reads the previous one."""
_GROWTH = 2
"""A segment is merged with those after it unless it is more than so many times as large as all of them."""
_MAX_MERGED_AT_ONCE = 32
"""Pages that are read again to merge segments while somebody waits; more only in the background."""
_MAX_CACHED_MASKS = 16
_MAX_KEYS = 1_000
_LAST_BYTE = b"\xff"
"""Follows every byte of UTF-8."""


class _Texts(Sequence[bytes]):
    """Sorted texts in one piece of UTF-8, whose order is that of the characters."""

    def __init__(self, texts: Iterable[str]) -> None:
        encoded = [_encoded(text) for text in texts]
        self._joined = b"\n".join(encoded)
        self._starts = array("i", accumulate((len(text) + 1 for text in encoded), initial=0))
        """An array of Python's, of which binary search reads single numbers faster than of NumPy's."""

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, place: int) -> bytes:  # type: ignore[override]
        return self._joined[self._starts[place] : self._starts[place + 1] - 1]

    def range_of(self, text: str, *, is_beginning: bool = True) -> slice:
        """Return where the text stands, or all that it begins."""
        encoded = _encoded(text)
        start = bisect_left(self, encoded)
        if is_beginning:
            return slice(start, bisect_left(self, encoded + _LAST_BYTE, start))
        return slice(start, start + (start < len(self) and self[start] == encoded))

    def has_beginning(self, text: str) -> bool:
        """Return whether a text begins so."""
        encoded = _encoded(text)
        place = bisect_left(self, encoded)
        return place < len(self) and self[place].startswith(encoded)

    def part(self, places: slice) -> list[str]:
        """Return some of the texts."""
        if places.start >= places.stop:
            return []
        joined = self._joined[self._starts[places.start] : self._starts[places.stop] - 1]
        return joined.decode("utf-8", "surrogatepass").split("\n")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class _PlacesOf(dict[str, "array[int]"]):
    """The labels that have a text, in an array: lists would take several times the memory while a segment is made."""

    def __missing__(self, text: str) -> array[int]:
        found = self[text] = array("i")
        return found


class _Postings:
    """Which labels have a text: their places, by the texts in order."""

    def __init__(self, places_of: _PlacesOf) -> None:
        ordered = sorted(places_of)
        self.texts = _Texts(ordered)
        self._starts = np.cumsum([0, *(len(places_of[text]) for text in ordered)], dtype=np.int32)
        self._places = np.fromiter((place for text in ordered for place in places_of[text]), np.int32, int(self._starts[-1]))

    def find(self, text: str, *, is_beginning: bool = True) -> Places:
        """Return the places of a text, or of all that it begins; some of them repeatedly."""
        found = self.texts.range_of(text, is_beginning=is_beginning)
        return self._places[self._starts[found.start] : self._starts[found.stop]]


class LabelMasks(NamedTuple):
    """Labels, by what they are."""

    titles: Mask
    """Titles with the pages' aliases, one for each page."""
    paths: Mask
    """One for each page."""
    headings: Mask
    """One for each heading."""


class PageRow(NamedTuple):
    """A page as it is read for a segment."""

    number: int
    path: str
    title: str
    language: str


class SectionRow(NamedTuple):
    """The headings of a chunk as they are read for a segment."""

    page: int
    ordinal: int
    section_path: str
    headings: str
    anchor: str


class Names(NamedTuple):
    """What is stored of the names of a segment's pages."""

    keys: Iterable[tuple[int, str]]
    """The page's number and the key of each name."""
    stored_words: Callable[[Sequence[int]], Iterable[tuple[int, str]]]
    """Returns the words of the names of pages, by number, as the keyword index stores them."""


def _add(words: _PlacesOf, keys: _PlacesOf, place: int, label: str) -> None:
    _add_key(keys, place, label)
    for word in {word for part in name_parts(label) for word in part.beginnings}:
        words[word].append(place)


def _add_key(keys: _PlacesOf, place: int, label: str) -> None:
    key = name_key(label)
    if key:
        keys[key].append(place)


class LabelSegment:
    """The labels of some pages, whose order is that of their paths."""

    def __init__(self, rows: Iterable[PageRow], sections: Iterable[SectionRow], names: Names, last: int) -> None:
        """`last` is the highest number of a page."""
        self.last_number = last
        pages = sorted(rows, key=lambda page: page.path)
        self.paths = [page.path for page in pages]
        self.numbers = np.array([page.number for page in pages], dtype=np.int32)
        self.title_lengths = np.array([len(page.title) for page in pages], dtype=np.int16)
        words, keys = _PlacesOf(), _PlacesOf()
        for place, page in enumerate(pages):
            _add(words, keys, place, page.title)
            _add(words, keys, len(pages) + place, page.path)
            _add_key(keys, len(pages) + place, page_name(page.path))
        self._add_aliases(words, keys, pages, names)
        columns = tuple(array("i") for _ in range(4))
        for heading, of_heading in self._sections(pages, sections):
            _add(words, keys, 2 * len(pages) + len(columns[0]), heading)
            for column, value in zip(columns, of_heading, strict=True):
                column.append(value)
        self.pages_of_headings = np.array(columns[0], dtype=np.int32)
        self.ordinals = np.array(columns[1], dtype=np.int16)
        """Of each heading, the first chunk with it."""
        self.numbers_in_chunk = np.array(columns[2], dtype=np.int16)
        """Of each heading, which of the chunk's `section_labels` it is."""
        self.heading_lengths = np.array(columns[3], dtype=np.int16)
        self.words, self.keys = _Postings(words), _Postings(keys)

    def _add_aliases(self, words: _PlacesOf, keys: _PlacesOf, pages: Sequence[PageRow], names: Names) -> None:
        """Add the keys of pages that are neither title nor path, and what words are stored of these pages in addition."""
        place_of = {page.number: place for place, page in enumerate(pages)}
        aliased = set()
        for number, key in names.keys:
            page = pages[place_of[number]]
            if key not in map(name_key, (page.title, page.path, page_name(page.path))):
                keys[key].append(place_of[number])
                aliased.add(number)
        for number, stored in names.stored_words(sorted(aliased)) if aliased else ():
            page = pages[place_of[number]]
            known = name_words(page.title, page.language) | name_words(page.path.replace("/", " "), page.language)
            for word in set(stored.split()) - known:
                words[word].append(place_of[number])

    def _sections(
        self, pages: Sequence[PageRow], sections: Iterable[SectionRow]
    ) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
        """Yield headings, each with its page, its chunk, its number in that and its length; each anchor of a page once."""
        place_of = {page.number: place for place, page in enumerate(pages)}
        page, known = 0, set[tuple[str, str]]()
        for row in sections:
            if row.page != page:
                page, known = row.page, set()
            place = place_of[page]
            labels = section_labels(pages[place].title, row.section_path, row.headings, row.anchor)
            for number, label in enumerate(labels):
                identity = (label.anchor, "" if label.anchor else label.heading)
                if identity not in known:
                    known.add(identity)
                    yield label.heading, (place, row.ordinal, number, len(label.heading))

    def with_words(self, beginnings: Iterable[str]) -> LabelMasks:
        """Return the labels with a word that begins in one of these ways."""
        return self._masks(map(self.words.find, beginnings))

    def keys_beginning(self, key: str) -> Sequence[str]:
        """Return the keys of labels that begin with this one; none if there are more than 1,000."""
        found = self.keys.texts.range_of(key)
        return self.keys.texts.part(found) if found.stop - found.start <= _MAX_KEYS else ()

    def with_key(self, key: str, *, is_beginning: bool = False) -> LabelMasks:
        """Return the labels that are the key of a name, or begin with it."""
        return self._masks([self.keys.find(key, is_beginning=is_beginning)])

    def _masks(self, found: Iterable[Places]) -> LabelMasks:
        pages = len(self.paths)
        mask = np.zeros(2 * pages + len(self.pages_of_headings), dtype=bool)
        for places in found:
            mask[places] = True
        return LabelMasks(mask[:pages], mask[pages : 2 * pages], mask[2 * pages :])


@dataclass(frozen=True, slots=True)
class LabelIndex:
    """The labels of one state of a catalog."""

    revision: int
    segments: tuple[LabelSegment, ...]
    live: tuple[Mask, ...]
    """Of each segment, the pages that are there."""
    masks: dict[Filter, tuple[Mask, ...]] = field(default_factory=dict)
    """The pages of each segment that pass a filter."""
    newest: list[Places] = field(default_factory=list)
    """The numbers of all pages, the most recently changed first, once somebody asked for them."""

    def begins_name(self, key: str) -> bool:
        """Whether a label's key begins with this one."""
        return any(segment.keys.texts.has_beginning(key) for segment in self.segments)

    def pages_named(self, key: str) -> set[int]:
        """Return the numbers of the pages whose title or alias has this key."""
        found: set[int] = set()
        for segment, live in zip(self.segments, self.live, strict=True):
            places = segment.keys.find(key, is_beginning=False)
            found.update(int(segment.numbers[place]) for place in places[places < len(live)] if live[place])
        return found

    def keys_beginning(self, key: str) -> set[str]:
        """Return the keys of labels that begin with this one; without those of a segment that has more than 1,000."""
        return {each for segment in self.segments for each in segment.keys_beginning(key)}


class LabelIndexCache:
    """The label indexes of the last states of a catalog. Errors: those of `SqliteFile`."""

    def __init__(self, database: SqliteFile, *, is_current: bool = True) -> None:
        self._database = database
        self._language = "language" if is_current else f"'{ENGLISH}'"
        self._loading = threading.Lock()
        self._states: tuple[LabelIndex, ...] = ()
        """The newest first."""

    def get(self) -> LabelIndex:
        """Return the index of the state that the calling thread reads; see `SqliteFile.snapshot`."""
        with self._database.snapshot():
            revision = read_revision(self._database)
            index = self._known(revision)
            if index is None:
                with self._loading:
                    index = self._known(revision) or self._load(revision, _MAX_MERGED_AT_ONCE)
            return index

    def refresh(self) -> None:
        """Read what was added, and merge segments whatever that takes. For the background."""
        with self._database.snapshot(), self._loading:
            self._load(read_revision(self._database))

    def passing(self, index: LabelIndex, where: Filter) -> tuple[Mask, ...]:
        """Return the pages of each segment that are there and pass a filter; the last ones are cached."""
        if not where:
            return index.live
        found = index.masks.get(where)
        if found is None:
            if len(index.masks) >= _MAX_CACHED_MASKS:
                index.masks.clear()
            numbers = self._numbers(f"WHERE {where.sql}", *where.values)
            found = index.masks[where] = tuple(np.isin(segment.numbers, numbers) for segment in index.segments)
        return found

    def last_changed(self, index: LabelIndex, where: Filter, limit: int) -> list[int]:
        """Return the numbers of pages that are there and pass a filter, the most recently changed first."""
        if not index.newest:
            index.newest.append(self._numbers("ORDER BY updated DESC, path"))
        passing = self.passing(index, where)
        numbers = [segment.numbers[mask] for segment, mask in zip(index.segments, passing, strict=True)]
        ordered = index.newest[0]
        return ordered[np.isin(ordered, np.concatenate(numbers))][:limit].tolist() if numbers else []

    def _known(self, revision: int) -> LabelIndex | None:
        return next((index for index in self._states if index.revision == revision), None)

    def _numbers(self, condition: str = "", *values: str | int) -> Places:
        # One JSON text is quicker than as many rows.
        (row,) = self._database.select(f"SELECT json_group_array(number) FROM (SELECT number FROM pages {condition})", *values)
        return np.array(json.loads(row[0]), dtype=np.int32)

    def _load(self, revision: int, max_merged: float = math.inf) -> LabelIndex:
        """Return the index of a revision, for which up to `max_merged` pages are read again to merge segments."""
        numbers = self._numbers()
        base = next((index for index in self._states if index.revision <= revision), None)
        if base is None and self._states:  # of a state before the last ones: pages that were replaced since are left out
            return _index_of(revision, self._states[-1].segments, numbers)
        segments = base.segments if base else ()
        sizes = [int(np.count_nonzero(mask)) for mask in _index_of(revision, segments, numbers).live]
        kept = _kept(sizes, len(numbers) - sum(sizes), max_merged)
        if kept < len(segments) or len(numbers) > sum(sizes):
            last = segments[kept - 1].last_number if kept else 0
            segments = (*segments[:kept], self._read(last, int(numbers.max(initial=last))))
        index = _index_of(revision, segments, numbers)
        others = (each for each in self._states if each.revision != revision)
        self._states = tuple(sorted((index, *others), key=lambda each: -each.revision)[:_STATES])
        return index

    def _read(self, after: int, last: int) -> LabelSegment:
        """Read the pages with numbers after one."""
        with self._database.read() as connection:
            pages = connection.execute(f"SELECT number, path, title, {self._language} FROM pages WHERE number > ?", (after,))
            names = connection.execute(
                "SELECT number, key FROM pages JOIN names USING (path) WHERE number > ? AND names.ordinal < 0", (after,)
            )
            sections = connection.execute(
                "SELECT number, ordinal, section_path, headings, anchor FROM pages JOIN chunks USING (path)"
                " WHERE number > ? ORDER BY number, ordinal",
                (after,),
            )
            return LabelSegment(
                (PageRow(*row) for row in pages),
                (SectionRow(*row) for row in sections),
                Names((tuple(row) for row in names), self._stored_words),
                last,
            )

    def _stored_words(self, pages: Sequence[int]) -> list[tuple[int, str]]:
        rows = self._database.select(
            "SELECT number, keywords.title FROM pages JOIN chunks ON chunks.path = pages.path AND chunks.ordinal = 0"
            f" JOIN keywords ON keywords.rowid = chunks.id WHERE number {IN_LIST}",
            pages,
        )
        return [tuple(row) for row in rows]


def _kept(sizes: Sequence[int], added: int, max_merged: float) -> int:
    """Return how many of the first segments remain: none that is not much larger than all after it, and what was added."""
    kept, after = len(sizes), added
    for place in reversed(range(len(sizes))):
        is_small = sizes[place] <= _GROWTH * after or not sizes[place]
        after += sizes[place]
        if is_small and after <= max_merged:
            kept = place
    return kept


def _index_of(revision: int, segments: Sequence[LabelSegment], numbers: Places) -> LabelIndex:
    live = tuple(np.isin(segment.numbers, numbers) for segment in segments)
    return LabelIndex(revision, tuple(segments), live)
