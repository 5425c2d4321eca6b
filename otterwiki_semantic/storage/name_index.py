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
_MAX_FOUND = 500
"""Names that are returned for a query; if there are more, it is too short to tell which are meant."""
_MAX_TEXTS = 8


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


def name_tokens(text: str) -> list[str]:
    """Return the folded words of a name or a query."""
    return _WORD.findall(fold(text))


class _Text:
    """Some names, in the order in which they were added."""

    def __init__(self, names: Iterable[Name]) -> None:
        self._pages, self._chunks, self._places, self._starts = array("i"), array("q"), array("h"), array("i")
        self.vocabulary: set[str] = set()
        """All words."""
        lines, length = [], 1
        for page, chunk, place, name in names:
            words = name_tokens(name)
            self.vocabulary.update(words)
            self._pages.append(page)
            self._chunks.append(chunk)
            self._places.append(place)
            self._starts.append(length)
            lines.append("".join(f" {word}" for word in words))
            length += len(lines[-1]) + 1
        self._text = "\n" + "\n".join(lines) + "\n"

    def find(self, tokens: Sequence[str], *, at_start: bool) -> Iterator[Name]:
        """Yield the names with words that begin with these tokens; a token in a script without spaces may stand anywhere.

        `at_start` only yields those that begin with the tokens, in this order.
        """
        needles = [f" {token}" if token.isascii() else token for token in tokens]
        sought = "\n " + " ".join(tokens) if at_start else max(needles, key=len)
        at = self._text.find(sought)
        while at >= 0:
            end = self._text.find("\n", at + 1)
            row = bisect_right(self._starts, at + at_start) - 1
            line = self._text[self._starts[row] : end]
            if at_start or all(needle in line for needle in needles):
                yield Name(self._pages[row], self._chunks[row], self._places[row], line)
            at = self._text.find(sought, end)

    def names(self) -> Iterator[Name]:
        """Yield all names."""
        return map(Name, self._pages, self._chunks, self._places, self._text[1:].split("\n"))


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
        new._live = live
        for kind, added in ((NameKind.PAGE, list(pages)), (NameKind.SECTION, list(sections))):
            texts = new._texts[kind] = [*self._texts[kind], *([_Text(added)] if added else [])]
            if len(texts) > _MAX_TEXTS:
                new._texts[kind] = [_Text(name for text in texts for name in text.names() if name.page in live)]
            new.last_page = max(new.last_page, self.last_page, *(name.page for name in added))
            new.last_chunk = max(new.last_chunk, self.last_chunk, *(name.chunk for name in added))
        return new

    def find(self, kind: NameKind, tokens: Sequence[str], *, at_start: bool = False) -> list[Name]:
        """Return names with words that begin with all of these tokens, or that begin with them; at most 500, in no order."""
        found = chain.from_iterable(text.find(tokens, at_start=at_start) for text in reversed(self._texts[kind]))
        return list(islice((name for name in found if name.page in self._live), _MAX_FOUND))

    @property
    def vocabulary(self) -> frozenset[str]:
        """The words of all names, also of some that are gone."""
        return frozenset().union(*(text.vocabulary for texts in self._texts.values() for text in texts))
