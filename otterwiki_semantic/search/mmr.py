"""Maximal marginal relevance: results that differ from each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from otterwiki_semantic.embedding import Matrix

_BLOCK, _POOL_PER_RESULT = 5, 4
"""Results of a block, which are chosen among four times as many candidates as there are results up to its end."""


def mmr_order(
    scores: Sequence[float],
    vectors: Matrix,
    pages: Sequence[str],
    diversity: float,
    n: int,
    max_per_page: int,
    pinned: int = 0,
) -> list[int]:
    """Return the positions of up to `n` of the ranked chunks, by maximal marginal relevance.

    The first one, or the `pinned` ones, stay first; the order does not depend on `n`. Each next one has the most of
    ``(1 - diversity) * score - diversity * similarity``, with the scores scaled to the range 0 to 1 and the similarity that to
    the nearest one chosen before (Carbonell and Goldstein, 1998). The rows of `vectors` belong to the chunks.
    """
    if not scores:
        return []
    nearest = np.full(len(scores), -1.0)
    taken: Counter[str] = Counter()
    is_open = np.ones(len(scores), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < n and is_open.any():
        pool = _POOL_PER_RESULT * _BLOCK * (len(chosen) // _BLOCK + 1)
        while not is_open[:pool].any():
            pool += _BLOCK
        values = np.array(scores[:pool])
        values = (values - values.min()) / max(float(np.ptp(values)), 1e-9)
        gain = (1 - diversity) * values - diversity * nearest[:pool]
        best = int(np.argmax(np.where(is_open[:pool], gain, -np.inf))) if len(chosen) >= max(pinned, 1) else len(chosen)
        chosen.append(best)
        taken[pages[best]] += 1
        is_open[best] = False
        if taken[pages[best]] >= max_per_page:
            is_open &= np.array([page != pages[best] for page in pages])
        nearest = np.maximum(nearest, vectors @ vectors[best])
    return chosen
