"""Bring a model's similarities to one scale, and hold the relevance thresholds fitted for it."""

from __future__ import annotations

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


BUNDLED_CALIBRATION = Calibration(floor=0.18)
"""The bundled model's, fitted by ``tools/fit_relevance.py``; other models are brought to its scale."""
