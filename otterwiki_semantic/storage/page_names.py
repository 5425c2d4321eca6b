"""The words of page titles and paths in memory, the rarity of each word, and the number of links to each page.

Words are tuples of strings, which the garbage collector ignores: with as many sets, each full collection would take longer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from sys import intern
from typing import NamedTuple

from otterwiki_semantic.content.analysis import name_words

Words = tuple[str, ...]
HeadingWords = tuple[tuple[Words, ...], Words]
"""The words of each heading in a chunk; and the words of all headings in and above the chunk, without the page's title."""


def heading_words(section_path: Sequence[str], headings: Sequence[str], title: str, language: str) -> HeadingWords:
    """Return the words of a chunk's headings in a language."""
    others = (name_words(heading, language) for heading in (*section_path, *headings) if heading != title)
    in_chunk = tuple([name_words(heading, language) for heading in headings])
    return in_chunk, tuple(dict.fromkeys(chain.from_iterable(others)))


class _Names(NamedTuple):
    number: int
    """The page's number, which changes with each change of the page."""
    key: str
    """The folded path, which links refer to."""
    title: Words
    name: Words
    path: Words

    @property
    def title_and_name(self) -> frozenset[str]:
        return frozenset(self.title + self.name)


_NO_NAMES = _Names(0, "", (), (), ())


class PageNames:
    """The names of all pages in one state of a catalog, and the number of links to each page."""

    def __init__(self) -> None:
        """Start without pages; `updated` adds them."""
        self.last_number = 0
        self._pages: dict[str, _Names] = {}
        self._links: Mapping[str, int] = {}
        self._counts: Counter[str] = Counter()
        self._weights: dict[str, float] = {}

    def updated(
        self, added: Iterable[tuple[int, str, str, Sequence[str]]], numbers: Container[int], links: Mapping[str, int]
    ) -> PageNames:
        """Return the names with added pages, and only of pages in `numbers`.

        An added page has a number, a path, a folded path, and what `title_and_path_words` returns.
        `links` are the link counts by folded path.
        """
        new = PageNames()
        new._links, new._counts, new.last_number = links, self._counts.copy(), self.last_number
        new._pages = {path: names for path, names in self._pages.items() if names.number in numbers}
        if len(new._pages) < len(self._pages):
            for path in self._pages.keys() - new._pages.keys():
                new._counts.subtract(self._pages[path].title_and_name)
        found = {
            path: _Names(number, path if key == path else key, *(tuple(map(intern, words.split())) for words in of_page))
            for number, path, key, of_page in added
        }
        new._pages |= found
        new._counts.update(chain.from_iterable(names.title_and_name for names in found.values()))
        new.last_number = max((names.number for names in found.values()), default=self.last_number)
        return new

    def incoming_links(self, path: str) -> int:
        """Return the number of pages that link to a page."""
        return self._links.get(self._pages.get(path, _NO_NAMES).key, 0)

    def has_any(self, path: str, words: frozenset[str]) -> bool:
        """Whether a page's title or path has any of these words."""
        page = self._pages.get(path, _NO_NAMES)
        return not (words.isdisjoint(page.path) and words.isdisjoint(page.title))

    def path_words(self, path: str) -> Words:
        """Return the words of a page's path."""
        return self._pages.get(path, _NO_NAMES).path

    def title_words(self, path: str) -> frozenset[str]:
        """Return the words of a page's title and of the last part of its path."""
        return self._pages.get(path, _NO_NAMES).title_and_name

    def share(self, path: str, words: frozenset[str]) -> float:
        """Return the share of a page's title or of its name, whichever is larger, that these words cover (0 to 1).

        Words are weighted by their inverse frequency among titles.
        """
        page = self._pages.get(path, _NO_NAMES)
        return max(self._share(page.title, words), self._share(page.name, words))

    def _share(self, name: Words, words: frozenset[str]) -> float:
        if words.isdisjoint(name):
            return 0.0
        return sum(self._weight(word) for word in name if word in words) / sum(map(self._weight, name))

    def _weight(self, word: str) -> float:
        weight = self._weights.get(word)
        if weight is None:
            count = self._counts[word]
            weight = self._weights[word] = math.log(1 + (len(self._pages) - count + 0.5) / (count + 0.5))
        return weight
