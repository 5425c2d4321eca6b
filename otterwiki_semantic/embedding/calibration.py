"""From which similarity on a chunk is relevant, on a scale that all models share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Scale(NamedTuple):
    """Maps a model's similarities to the bundled model's scale: `shift + stretch * similarity`."""

    shift: float
    stretch: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The relevance thresholds of one model, all on the bundled model's scale."""

    floor: float
    """What similarity, coverage and chance of a relevant chunk add up to at least: see `search.relevance`."""
    coverage: float = 0.2
    """What it is worth, as similarity, that a chunk has all words of the query."""
    spread: float = 0.06
    """Standard deviation of the similarity of chunks unrelated to a query.

    By chance, the nearest of N of them has that times the square root of 2 ln N.
    """
    keyword_floor: float = 0.5
    """The least coverage of a relevant chunk if there is no similarity."""
    related: float = 0.35
    """The least similarity of two pages that are shown as related: see `search.related`."""
    scale: Scale | None = None
    """Maps the model's similarities to the bundled model's scale; None if they are on it."""

    def on_scale(self, similarity: float) -> float:
        """Convert a similarity of the model to the bundled model's scale."""
        return similarity if self.scale is None else self.scale.shift + self.scale.stretch * similarity

    def of_model(self, similarity: float) -> float:
        """Convert a similarity on the bundled model's scale to one of the model."""
        return similarity if self.scale is None else (similarity - self.scale.shift) / self.scale.stretch


BUNDLED_CALIBRATION = Calibration(floor=0.18)
"""The bundled model's, fitted by ``tools/fit_relevance.py``; other models are brought to its scale."""
