"""Whether a passage is about the question at all: a floor below which it is not.

What is compared with the floor is the cosine similarity, plus a part for the share of the question's words that the passage
has, weighted by their rarity, minus what chance is expected to give: among more passages the nearest one is nearer, whatever
the question. `tools/fit_relevance.py` fits the floor on the judged questions that come with the tests; docs/quality.md has the
error rates.
"""

from __future__ import annotations

import math

from otterwiki_semantic.search.similarity_scale import Scale

FLOOR = 0.263
"""Fitted by `tools/fit_relevance.py` for the bundled model; the similarities of other models are brought to its scale."""
_COVERAGE_WEIGHT = 0.2
"""The similarity that all words of the question are worth."""
_SPREAD = 0.04
"""How much nearer the nearest of N unrelated passages is by chance: this times the square root of 2 ln N.

That is the largest of N draws from a normal distribution; 0.04 fits wikis of 50 and of 3,000 passages alike.
"""
_KEYWORD_FLOOR = 0.5
"""The least coverage of a relevant passage if there is no similarity."""


def inverse_frequency(count: int, total: int) -> float:
    """Return the weight of a word that `count` of `total` texts have (Robertson and Spärck Jones, 1976), never below 0."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def relevance(similarity: float | None, covered: float, passages: int, scale: Scale) -> float:
    """Return how far a passage is above the relevance threshold: from 0 on it is relevant.

    `covered` is the share of the question's words that it has; `passages` is the number of passages in the index.
    """
    if similarity is None:
        return covered - _KEYWORD_FLOOR
    chance = _SPREAD * math.sqrt(2 * math.log(max(passages, 1)))
    return scale.to_bundled(similarity) + _COVERAGE_WEIGHT * covered - chance - FLOOR
