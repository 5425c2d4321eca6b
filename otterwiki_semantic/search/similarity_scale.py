"""What a model's similarities are on the bundled model's scale, to which weights and floors are fitted.

One model gives 0.1 to texts that have nothing to do with each other, another 0.75. So both are asked the same: how near are
some of the wiki's own headings to passages of other pages? The same mean and the same standard deviation of the answers make
one scale of two.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.embedding import BundledModel, Embedder, Matrix, embed_passages
from otterwiki_semantic.storage import Generation

_QUESTIONS, _PASSAGES = 48, 256
_LEAST_PAIRS = 500
"""With fewer pairs similarities are taken unchanged."""
_NOTE = "similarity scale"

log = logging.getLogger(__name__)


class Scale(NamedTuple):
    """Maps a model's similarities to the bundled model's, whose own this leaves unchanged by default."""

    shift: float = 0.0
    stretch: float = 1.0

    def to_bundled(self, similarity: float) -> float:
        """Convert a similarity of the model to the bundled model's scale."""
        return self.shift + self.stretch * similarity

    def from_bundled(self, similarity: float) -> float:
        """Convert a similarity on the bundled model's scale to one of the model."""
        return (similarity - self.shift) / self.stretch


def noted_scale(generation: Generation) -> Scale | None:
    """Return the scale recorded for a generation, if there is one."""
    noted = _noted(generation)
    return Scale(*noted[:2]) if noted else None


def note_scale(generation: Generation, embedder: Embedder, heading_weight: float) -> None:
    """Find the scale of a generation and record it, unless that was done with at least half as many passages.

    If a model fails, that is logged, and similarities are taken unchanged. Errors: the catalog's.
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
    """Return shift, stretch, and the number of passages they were found with; nothing if they are unknown."""
    return [float(number) for number in (generation.catalog.meta(_NOTE) or "").split()]


def find_scale(generation: Generation, embedder: Embedder, heading_weight: float) -> Scale | None:
    """Compare headings and passages of other pages, evenly spread over the wiki; None if there are too few of them.

    For `heading_weight` see `embedding.vectors`. Errors: the models', the catalog's.
    """
    with generation.catalog.snapshot():
        reader = generation.catalog.reader
        exact = reader.exact_index()
        ids = exact.ids(exact.live & exact.embedded)  # nothing else may be shown to a model
        asked = reader.chunks(_spread(ids, _QUESTIONS)).values()
        headings = sorted({(chunk.path, chunk.section or chunk.title) for chunk in asked})
        matrix, known = exact.vectors(_spread(ids, _PASSAGES))
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
    """Return mean and standard deviation of the cosines of pairs."""
    found = (questions @ passages.T)[which]
    return float(found.mean()), float(found.std())


def _spread(ids: Sequence[int], most: int) -> list[int]:
    """Return at most `most` ids, evenly spread, in order."""
    places: list[int] = np.unique(np.linspace(0, len(ids) - 1, min(most, len(ids))).astype(int)).tolist() if ids else []
    return [ids[place] for place in places]
