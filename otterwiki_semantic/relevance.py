"""Whether a passage is about the question at all: a floor, fitted for each model, below which it is not.

What is compared with the floor is the cosine similarity, plus a part for the share of the question's words that the passage
has, weighted by their rarity, minus what chance is expected to give: among more passages the nearest one is nearer, whatever
the question. `tools/fit_relevance.py` fits the floor on the judged questions that come with the tests; docs/quality.md has the
error rates.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Scale(NamedTuple):
    """Brings similarities of another model to the bundled model's scale: `shift` and `stretch` times each."""

    shift: float
    stretch: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The floor of one model, and what counts beside the similarity.

    `coverage` is what all the question's words are worth. `spread` is the standard deviation of the similarity of passages that
    have nothing to do with a question: chance gives the nearest of N of them that times the square root of 2 ln N.
    `keyword_floor` is the least coverage that counts as relevant when there is no similarity. `related` is the least
    similarity of two pages (see the module of that name) of which one is offered to readers of the other. All are on the
    bundled model's scale, to which `scale` brings another model's similarities (None: they are on it).
    """

    floor: float
    coverage: float = 0.2
    spread: float = 0.06
    keyword_floor: float = 0.5
    related: float = 0.35
    scale: Scale | None = None

    def on_scale(self, similarity: float) -> float:
        """Give a similarity of the model on the bundled model's scale."""
        return similarity if self.scale is None else self.scale.shift + self.scale.stretch * similarity

    def of_model(self, similarity: float) -> float:
        """Give a similarity on the bundled model's scale as the model gives it."""
        return similarity if self.scale is None else (similarity - self.scale.shift) / self.scale.stretch


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
