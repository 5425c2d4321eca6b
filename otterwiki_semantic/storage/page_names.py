"""The words of pages' titles and paths, in memory, how rare each is among them, and how many pages link to each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from otterwiki_semantic.content.analysis import indexed_text
from otterwiki_semantic.content.pages import page_name
from otterwiki_semantic.core.languages import ENGLISH

_CACHED_NAMES = 50_000


@lru_cache(_CACHED_NAMES)
def name_words(name: str, language: str = ENGLISH) -> frozenset[str]:
    """Return the words of a title, a heading or a path, as the keyword index stores them."""
    return frozenset(indexed_text(name, language).split())


class HeadingWords(NamedTuple):
    """The words of a chunk's headings."""

    all: frozenset[str]
    in_chunk: tuple[frozenset[str], ...]
    """Those of each heading in the chunk."""
    others: frozenset[str]
    """Those of all headings above it and in it but the page's title."""

    @classmethod
    def of(cls, section_path: Sequence[str], headings: Sequence[str], title: str, language: str) -> HeadingWords:
        """Return the words of headings in some language."""
        in_chunk = tuple(name_words(heading, language) for heading in headings)
        without_title = (name_words(heading, language) for heading in (*section_path, *headings) if heading != title)
        others = frozenset[str]().union(*without_title)
        return cls(others.union(*in_chunk), in_chunk, others)


class _Names(NamedTuple):
    """The words of one page's names."""

    written: str
    """The title that they were taken from."""
    language: str
    title: frozenset[str]
    name: frozenset[str]
    """Those of the last part of the path."""
    path: frozenset[str]


class PageNames:
    """The names of all pages of one state of a catalog, and the numbers of links to them."""

    def __init__(self, pages: Iterable[tuple[str, str, str, int]], known: PageNames | None = None) -> None:
        """Take path, title, language and links of each page; the words of those that `known` has are taken from there."""
        before = known._pages if known else {}
        self._pages: dict[str, _Names] = {}
        self._links: dict[str, int] = {}
        for path, title, language, links in pages:
            self._links[path] = links
            page = before.get(path)
            if page is None or (page.written, page.language) != (title, language):
                words = (name_words(name, language) for name in (title, page_name(path), path.replace("/", " ")))
                page = _Names(title, language, *words)
            self._pages[path] = page
        self._counts = Counter(word for page in self._pages.values() for word in page.title | page.name)

    def title(self, path: str) -> str:
        """Return a page's title."""
        page = self._pages.get(path)
        return page.written if page else ""

    def language(self, path: str) -> str:
        """Return a page's language."""
        page = self._pages.get(path)
        return page.language if page else ENGLISH

    def incoming_links(self, path: str) -> int:
        """Return the number of pages that link to a page."""
        return self._links.get(path, 0)

    def path_words(self, path: str) -> frozenset[str]:
        """Return the words of a page's path."""
        page = self._pages.get(path)
        return page.path if page else frozenset()

    def title_words(self, path: str) -> frozenset[str]:
        """Return the words of a page's title, and of the last part of its path."""
        page = self._pages.get(path)
        return page.title | page.name if page else frozenset()

    def share(self, path: str, words: frozenset[str]) -> float:
        """Return how much of a page's title, or of its name if that is more, some words are (0 to 1).

        Each word counts by its inverse frequency among titles: what all have in common says next to nothing.
        """
        page = self._pages.get(path)
        return max(self._share(page.title, words), self._share(page.name, words)) if page else 0.0

    def _share(self, name: frozenset[str], words: frozenset[str]) -> float:
        whole = sum(map(self._weight, name))
        return sum(map(self._weight, name & words)) / whole if whole else 0.0

    def _weight(self, word: str) -> float:
        count = self._counts[word]
        return math.log(1 + (len(self._pages) - count + 0.5) / (count + 0.5))
