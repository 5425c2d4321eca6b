"""What the names of a page and of its sections say about a query, and links about the page, in points of its score.

Two things count: how much of the query a name has (recall), and how much of the name the query has (precision); words weigh by
their rarity. The weights were fitted on judged wikis, and measured on a wiki left out; docs/quality.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from otterwiki_semantic.storage import HeadingWords, PageNames

WEIGHTS = (5.5, 2.0, 1.2, 4.0, 4.0)
"""Points for each of the `Features` at 1."""
EXACT_POINTS = 8.0
"""Points for a heading that is the whole query, and for a rare identifier as it is typed."""
LINK_POINTS = 1.2
"""Points for the logarithm of 1 and the number of pages that link to the page: what many refer to is often what is meant."""
_WEIGHT_ELSEWHERE = 6.0
"""The weight of a heading's word that the query does not have."""


class Features(NamedTuple):
    """How well names fit a query, each from 0 to 1; a match is the harmonic mean of recall and precision."""

    title_share: float
    title_match: float
    path_recall: float
    heading_share: float
    heading_match: float

    @property
    def points(self) -> float:
        """What they add to a score."""
        title_share, title_match, path_recall, heading_share, heading_match = WEIGHTS
        return (
            title_share * self.title_share
            + title_match * self.title_match
            + path_recall * self.path_recall
            + heading_share * self.heading_share
            + heading_match * self.heading_match
        )


NO_FEATURES = Features(0.0, 0.0, 0.0, 0.0, 0.0)
_NONE_OF_PAGE = NO_FEATURES[:3]
NO_HEADINGS = HeadingWords((), ())


class NameEvidence:
    """Compares one query with names."""

    def __init__(self, weights: Mapping[str, float], names: PageNames) -> None:
        self._weights = weights
        self._words = frozenset(weights)
        self._whole = sum(weights.values())
        self._names = names
        self._of_pages: dict[str, tuple[float, float, float]] = {}

    def points(self, path: str, headings: HeadingWords) -> float:
        """Return what the names of a page, and of the headings of one of its chunks, add to the chunk's score."""
        return self.features(path, headings).points

    def features(self, path: str, headings: HeadingWords) -> Features:
        """Return the features of a chunk of a page."""
        of_page = self._of_pages.get(path)
        if of_page is None:
            of_page = self._of_pages[path] = self._of_page(path)
        has_none = self._words.isdisjoint
        if all(map(has_none, headings.in_chunk)) and all(map(has_none, headings.others)):
            return NO_FEATURES if of_page is _NONE_OF_PAGE else Features(*of_page, 0.0, 0.0)
        share = max(map(self._share, headings.in_chunk), default=0.0)
        recall = self._recall(frozenset[str]().union(*headings.others))
        return Features(*of_page, share, _harmonic(recall, share))

    def _of_page(self, path: str) -> tuple[float, float, float]:
        if not self._names.has_any(path, self._words):
            return _NONE_OF_PAGE
        recall = self._recall(self._names.title_words(path))
        share = self._names.share(path, self._words)
        return share, _harmonic(recall, share), self._recall(self._names.path_words(path))

    def _recall(self, words: frozenset[str]) -> float:
        return sum(self._weights[word] for word in self._words & words) / self._whole if self._whole else 0.0

    def _share(self, words: frozenset[str]) -> float:
        whole = sum(self._weights.get(word, _WEIGHT_ELSEWHERE) for word in words)
        return sum(self._weights[word] for word in self._words & words) / whole if whole else 0.0


def _harmonic(recall: float, precision: float) -> float:
    total = recall + precision
    return 2 * recall * precision / total if total else 0.0
