"""Whether a passage is about the question at all: a floor, fitted for each model, below which it is not.

What is compared with the floor is the cosine similarity, plus a part for the share of the question's words that the passage
has, weighted by their rarity, minus what chance is expected to give: among more passages the nearest one is nearer, whatever
the question. `tools/fit_relevance.py` fits the floor on the judged questions that come with the tests; docs/quality.md has the
error rates.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

from otterwiki_semantic.embedding import Calibration


def word_weights(words: Sequence[str], frequencies: Mapping[str, int], total: int) -> dict[str, float]:
    """Give what each word of a question tells: its inverse document frequency (Robertson and Spärck Jones, 1976).

    Words that stand in more than half of all passages tell nothing, unless all do.
    """
    telling = [word for word in words if frequencies[word] <= total / 2] or list(words)
    return {word: math.log(1 + (total - frequencies[word] + 0.5) / (frequencies[word] + 0.5)) for word in telling}


def coverage(weights: Mapping[str, float], present: Container[str]) -> float:
    """Give the share of a question's words that a passage has, weighted; 0 for a question without words."""
    whole = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in present) / whole if whole else 0.0


def relevance(similarity: float | None, covered: float, passages: int, calibration: Calibration) -> float:
    """Give how far a passage is above the floor: from 0 on it counts as relevant. `passages` is the number in the index."""
    if similarity is None:
        return covered - calibration.keyword_floor
    chance = calibration.spread * math.sqrt(2 * math.log(max(passages, 1)))
    return calibration.on_scale(similarity) + calibration.coverage * covered - chance - calibration.floor
