"""The titles, paths and headings of all pages in memory, to be found by the beginnings of their words.

All names are one text, a line each, in which every word begins after a space: looking for the words of a query takes as long as
searching some megabytes of text. What was added later is another text, until there are several.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain, islice
from typing import NamedTuple

from otterwiki_semantic.content.analysis import fold

_WORD = re.compile(r"\w+")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])[A-Z]\w*")
_MORE, _OF_PAGE = "\x1f", "\x1e"
"""What follows the words of a name in its line: the later words of identifiers, and the names of a heading's page."""
_MAX_FOUND = 500
"""Names that are returned for a query; if there are more, it is too short to tell which are meant."""
_MAX_TEXTS, _SMALL_SHARE = 8, 0.2
"""Texts that there may be, and the share of the largest one up to which the others are not joined with it."""

_Row = tuple[int, int, int, str]
"""Page, chunk and place of a name, as in `Name`, and its line."""


class NameKind(Enum):
    """Kinds of names."""

    PAGE = "page"
    """Titles and paths."""
    SECTION = "section"
    """Headings."""


class Name(NamedTuple):
    """A name."""

    page: int
    """The page's number."""
    chunk: int
    """The id of the chunk with the heading; 0 for a title or a path."""
    place: int
    """Which of the chunk's headings it is, from 0; for a page 0 is its title, 1 its path."""
    text: str
    """The name itself; of one that was found its folded words, each after a space."""
    of_page: str = ""
    """For a heading the names of its page."""


def name_tokens(text: str) -> list[str]:
    """Return the folded words of a name or a query."""
    return _WORD.findall(fold(text))


def _spaced(text: str) -> str:
    return "".join(f" {word}" for word in name_tokens(text))


def _row(name: Name) -> _Row:
    inner = " ".join(_INNER_CAPITAL.findall(name.text))
    return *name[:3], f"{_spaced(name.text)}{_MORE}{_spaced(inner)}{_OF_PAGE}{_spaced(name.of_page)}"


class _Text:
    """Some names, in the order in which they were added."""

    def __init__(self, rows: Iterable[_Row]) -> None:
        self._pages, self._chunks, self._places, self._starts = array("i"), array("q"), array("h"), array("i")
        self.vocabulary: set[str] = set()
        """All words of names."""
        lines, length = [], 1
        for page, chunk, place, line in rows:
            self._pages.append(page)
            self._chunks.append(chunk)
            self._places.append(place)
            self._starts.append(length)
            self.vocabulary.update(line.partition(_OF_PAGE)[0].replace(_MORE, "").split())
            lines.append(line)
            length += len(line) + 1
        self._text = "\n" + "\n".join(lines) + "\n"

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def last_page(self) -> int:
        """The highest number of a page; 0 without names."""
        return max(self._pages, default=0)

    @property
    def last_chunk(self) -> int:
        """The highest id of a chunk; 0 without headings."""
        return max(self._chunks, default=0)

    def find(self, tokens: Sequence[str], *, at_start: bool) -> Iterator[Name]:
        """Yield the names with words that begin with these tokens; of a heading, some may begin a word of its page's names.

        A token in a script without spaces may stand anywhere. `at_start` only yields names that begin with the tokens.
        """
        needles = [f" {token}" if token.isascii() else token for token in tokens]
        sought = "\n " + " ".join(tokens) if at_start else max(needles, key=len)
        at = self._text.find(sought)
        while at >= 0:
            end = self._text.find("\n", at + 1)
            row = bisect_right(self._starts, at + at_start) - 1
            line = self._text[self._starts[row] : end]
            own = line.partition(_OF_PAGE)[0]
            if at_start or (all(needle in line for needle in needles) and any(needle in own for needle in needles)):
                yield Name(self._pages[row], self._chunks[row], self._places[row], own.partition(_MORE)[0])
            at = self._text.find(sought, end)

    def rows(self, live: Container[int]) -> Iterator[_Row]:
        """Yield the names of the pages that are left."""
        rows = zip(self._pages, self._chunks, self._places, self._text[1:].split("\n"), strict=False)
        return (row for row in rows if row[0] in live)


def _joined(texts: list[_Text], live: Container[int]) -> list[_Text]:
    """Return a few texts with the names of the pages that are left, the largest one first."""
    if len(texts) <= _MAX_TEXTS:
        return texts
    largest, *others = sorted(texts, key=len, reverse=True)
    small = _Text(row for text in others for row in text.rows(live))
    if len(small) <= _SMALL_SHARE * len(largest):
        return [largest, small]
    return [_Text(row for text in texts for row in text.rows(live))]


class NameIndex:
    """The names of all pages of one state of a catalog."""

    def __init__(self) -> None:
        """Begin with no names; `updated` adds them."""
        self._live: Container[int] = frozenset()
        self._texts: dict[NameKind, list[_Text]] = {kind: [] for kind in NameKind}
        self.last_page = 0
        """The highest number of a page whose names were added."""
        self.last_chunk = 0
        """The highest id of a chunk whose headings were added."""

    def updated(self, pages: Iterable[Name], sections: Iterable[Name], live: Container[int]) -> NameIndex:
        """Return the names with more of them; `live` are the numbers of the pages that are left."""
        new = NameIndex()
        new._live, new.last_page, new.last_chunk = live, self.last_page, self.last_chunk
        for kind, names in ((NameKind.PAGE, pages), (NameKind.SECTION, sections)):
            text = _Text(map(_row, names))
            new._texts[kind] = _joined([*self._texts[kind], *([text] if len(text) else [])], live)
            new.last_page, new.last_chunk = max(new.last_page, text.last_page), max(new.last_chunk, text.last_chunk)
        return new

    def find(self, kind: NameKind, tokens: Sequence[str], *, at_start: bool = False) -> list[Name]:
        """Return names with words that begin with all of these tokens, or that begin with them; at most 500, in no order."""
        found = chain.from_iterable(text.find(tokens, at_start=at_start) for text in reversed(self._texts[kind]))
        return list(islice((name for name in found if name.page in self._live), _MAX_FOUND))

    @property
    def vocabulary(self) -> frozenset[str]:
        """The words of all names, also of some that are gone."""
        return frozenset().union(*(text.vocabulary for texts in self._texts.values() for text in texts))
