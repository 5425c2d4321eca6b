"""Convert a model's similarities to the bundled model's scale, to which weights and thresholds are fitted.

One model gives unrelated texts a similarity of 0.1, another 0.75. Both are therefore given the same task: to compare some of
the wiki's headings with passages of other pages. The scales are aligned by the mean and the standard deviation of the
results.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.embedding import BundledModel, Embedder, Matrix, embed_passages
from otterwiki_semantic.storage import Generation

_QUESTIONS, _PASSAGES = 48, 256
_LEAST_PAIRS = 500
"""With fewer pairs, similarities are used unchanged."""
_NOTE = "similarity scale"

log = logging.getLogger(__name__)


class Scale(NamedTuple):
    """Map a model's similarities to the bundled model's scale; by default the identity."""

    shift: float = 0.0
    stretch: float = 1.0

    def to_bundled(self, similarity: float) -> float:
        """Convert a model's similarity to the bundled model's scale."""
        return self.shift + self.stretch * similarity

    def from_bundled(self, similarity: float) -> float:
        """Convert a similarity on the bundled model's scale to the model's own."""
        return (similarity - self.shift) / self.stretch


def noted_scale(generation: Generation) -> Scale | None:
    """Return the scale recorded for a generation, if there is one."""
    noted = _noted(generation)
    return Scale(*noted[:2]) if noted else None


def note_scale(generation: Generation, embedder: Embedder, heading_weight: float) -> None:
    """Compute and record a generation's scale, unless that was done with at least half as many passages.

    If a model fails, the failure is logged and similarities are used unchanged. Raises errors of the catalog.
    """
    noted = _noted(generation)
    passages = generation.catalog.counts().vectors
    if noted and noted[-1] * 2 >= passages:
        return
    try:
        scale = find_scale(generation, embedder, heading_weight)
    except ModelError as error:
        log.warning("similarities of %s are not brought to scale: %s", embedder.name, error)
        return
    if scale is not None:
        log.info("similarities of %s are brought to scale: %.3f + %.3f times each", embedder.name, *scale)
        generation.catalog.set_meta(_NOTE, f"{scale.shift} {scale.stretch} {passages}")


def _noted(generation: Generation) -> list[float]:
    """Return shift, stretch and the number of passages they were computed from; empty if unknown."""
    return [float(number) for number in (generation.catalog.meta(_NOTE) or "").split()]


def find_scale(generation: Generation, embedder: Embedder, heading_weight: float) -> Scale | None:
    """Compare headings with passages of other pages, evenly spread over the wiki; None if there are too few.

    For `heading_weight` see `embedding.vectors`. Raises errors of the models and of the catalog.
    """
    with generation.catalog.snapshot():
        reader = generation.catalog.reader
        exact = reader.exact_index()
        ids = exact.columns.ids[exact.live & exact.embedded].tolist()  # a model may see nothing else
        asked = reader.chunks([ids[place] for place in spread_evenly(len(ids), _QUESTIONS)]).values()
        headings = sorted({(chunk.path, chunk.section or chunk.title) for chunk in asked})
        matrix, known = exact.vectors([ids[place] for place in spread_evenly(len(ids), _PASSAGES)])
        shown = reader.chunks(known)
    elsewhere = np.array([[shown[chunk].path != path for chunk in known] for path, _heading in headings])
    if np.count_nonzero(elsewhere) < _LEAST_PAIRS:
        return None
    questions = [heading for _path, heading in headings]
    bundled = BundledModel()
    mean, spread = _moments(embedder.embed_queries(questions, interactive=False), matrix, elsewhere)
    passages = embed_passages(bundled, [shown[chunk] for chunk in known], heading_weight)
    wanted_mean, wanted_spread = _moments(bundled.embed_queries(questions), passages, elsewhere)
    stretch = wanted_spread / max(spread, 1e-6)
    return Scale(round(wanted_mean - stretch * mean, 6), round(stretch, 6))


def _moments(questions: Matrix, passages: Matrix, which: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return the mean and the standard deviation of the cosines of pairs."""
    found = (questions @ passages.T)[which]
    return float(found.mean()), float(found.std())


def spread_evenly(count: int, most: int) -> list[int]:
    """Return at most `most` of the numbers below `count`, evenly spread, in order."""
    numbers: list[int] = np.unique(np.linspace(0, count - 1, min(most, count)).astype(int)).tolist()
    return numbers
