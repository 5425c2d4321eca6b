"""Passages that say the same thing: found, and on request kept apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from otterwiki_semantic.embedding import Matrix

_SHINGLE = 3
_NEARLY_THE_SAME = 0.9


class Passage:
    """A text of stored words, to be compared with others."""

    def __init__(self, text: str) -> None:
        self._words = text.split()
        self._vocabulary = frozenset(self._words)
        self._runs: frozenset[tuple[str, ...]] | None = None

    def nearly_repeats(self, other: Passage) -> bool:
        """Tell whether two texts share nine tenths of all their runs of three words (resemblance: Broder, 1997)."""
        own, others = len(self._vocabulary), len(other._vocabulary)
        if own < _NEARLY_THE_SAME * others or others < _NEARLY_THE_SAME * own:
            return False
        if len(self._vocabulary & other._vocabulary) < _NEARLY_THE_SAME * max(own, others):
            return False  # quick, and right for passages of ordinary text: other words make other runs
        one, two = self._shingles(), other._shingles()
        common = len(one & two)
        return common >= _NEARLY_THE_SAME * (len(one) + len(two) - common)

    def _shingles(self) -> frozenset[tuple[str, ...]]:
        if self._runs is None:
            found = self._words
            starts = range(max(1, len(found) - _SHINGLE + 1))
            self._runs = frozenset(tuple(found[start : start + _SHINGLE]) for start in starts)
        return self._runs


class Repeats:
    """The passages kept so far, and which of them another one nearly repeats; by the ids of chunks."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._texts = texts
        self._copies: dict[str, list[int]] = {}
        for chunk, text in texts.items():
            self._copies.setdefault(text, []).append(chunk)
        self._passages: dict[int, Passage] = {}
        self._kept: dict[int, Passage] = {}
        self._original_of_text: dict[str, int] = {}

    def original(self, chunk: int) -> int | None:
        """Give the kept passage that this one nearly repeats; None if it is a new one."""
        same = self._original_of_text.get(self._texts[chunk])
        if same is not None:
            return same
        passage = self._passage(chunk)
        return next((other for other, known in self._kept.items() if passage.nearly_repeats(known)), None)

    def copies(self, chunk: int) -> list[int]:
        """Give the others with the very same text."""
        return [other for other in self._copies[self._texts[chunk]] if other != chunk]

    def keep(self, chunk: int) -> None:
        """Keep a passage."""
        self._kept[chunk] = self._passage(chunk)
        self._original_of_text.setdefault(self._texts[chunk], chunk)

    def _passage(self, chunk: int) -> Passage:
        if chunk not in self._passages:
            self._passages[chunk] = Passage(self._texts[chunk])
        return self._passages[chunk]


def diverse_order(
    ranked: Sequence[int],
    scores: Mapping[int, float],
    vectors: Mapping[int, Matrix],
    pages: Mapping[int, str],
    diversity: float,
    n: int,
    most_of_a_page: int,
) -> list[int]:
    """Choose `n` of the ranked chunks by maximal marginal relevance (Carbonell and Goldstein, 1998), the first one first.

    Each next one has the most of ``(1 - diversity) * score - diversity * similarity``, with the scores brought to the range 0
    to 1 and the similarity that to the nearest one chosen before.
    """
    rest = list(ranked)
    if not rest:
        return []
    values = np.array([scores[chunk] for chunk in rest])
    values = (values - values.min()) / max(float(np.ptp(values)), 1e-9)
    matrix = np.stack([vectors[chunk] for chunk in rest])
    nearest = np.full(len(rest), -1.0)
    taken: Counter[str] = Counter()
    is_open = np.ones(len(rest), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < n and is_open.any():
        gain = (1 - diversity) * values - diversity * nearest
        place = int(np.argmax(np.where(is_open, gain, -np.inf))) if chosen else 0
        chunk = rest[place]
        chosen.append(chunk)
        taken[pages[chunk]] += 1
        is_open[place] = False
        if taken[pages[chunk]] >= most_of_a_page:
            is_open &= np.array([pages[other] != pages[chunk] for other in rest])
        nearest = np.maximum(nearest, matrix @ matrix[place])
    return chosen
