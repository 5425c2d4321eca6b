"""Whether a passage is about the question at all: a floor below which it is not.

What is compared with the floor is the cosine similarity, plus a part for the share of the question's words that the passage
has, weighted by their rarity, minus what chance is expected to give: among more passages the nearest one is nearer, whatever
the question. `tools/fit_relevance.py` fits the floor on the judged questions that come with the tests; docs/quality.md has the
error rates.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

from otterwiki_semantic.search.similarity_scale import Scale

FLOOR = 0.18
"""Fitted by `tools/fit_relevance.py` for the bundled model; the similarities of other models are brought to its scale."""
_COVERAGE_WEIGHT = 0.2
"""The similarity that all words of the question are worth."""
_SPREAD = 0.06
"""Standard deviation of the similarity of passages unrelated to a question.

By chance, the nearest of N of them has that times the square root of 2 ln N.
"""
_KEYWORD_FLOOR = 0.5
"""The least coverage of a relevant passage if there is no similarity."""


def word_weights(words: Sequence[str], frequencies: Mapping[str, int], total: int) -> dict[str, float]:
    """Return the weight of each word of a question: its inverse document frequency.

    Words in more than half of all passages have none, unless all are.
    """
    telling = [word for word in words if frequencies[word] <= total / 2] or list(words)
    return {word: inverse_frequency(frequencies[word], total) for word in telling}


def inverse_frequency(count: int, total: int) -> float:
    """Return the weight of a word that `count` of `total` texts have (Robertson and Spärck Jones, 1976), never below 0."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def coverage(weights: Mapping[str, float], present: Container[str]) -> float:
    """Return the share of a question's words that a passage has, weighted; 0 for a question without words."""
    whole = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in present) / whole if whole else 0.0


def relevance(similarity: float | None, covered: float, passages: int, scale: Scale) -> float:
    """Return how far a passage is above the floor: from 0 on it is relevant. `passages` is the number in the index."""
    if similarity is None:
        return covered - _KEYWORD_FLOOR
    chance = _SPREAD * math.sqrt(2 * math.log(max(passages, 1)))
    return scale.to_bundled(similarity) + _COVERAGE_WEIGHT * covered - chance - FLOOR
