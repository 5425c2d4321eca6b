"""Maximal marginal relevance: results that differ from each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from otterwiki_semantic.embedding import Matrix


def mmr_order(
    scores: Sequence[float], vectors: Matrix, pages: Sequence[str], diversity: float, n: int, max_per_page: int
) -> list[int]:
    """Return the positions of up to `n` of the ranked chunks, by maximal marginal relevance; the first one stays first.

    Each next one has the most of ``(1 - diversity) * score - diversity * similarity``, with the scores scaled to the range
    0 to 1 and the similarity that to the nearest one chosen before (Carbonell and Goldstein, 1998). The rows of `vectors`
    belong to the chunks.
    """
    if not scores:
        return []
    values = np.array(scores)
    values = (values - values.min()) / max(float(np.ptp(values)), 1e-9)
    nearest = np.full(len(values), -1.0)
    taken: Counter[str] = Counter()
    is_open = np.ones(len(values), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < n and is_open.any():
        gain = (1 - diversity) * values - diversity * nearest
        best = int(np.argmax(np.where(is_open, gain, -np.inf))) if chosen else 0
        chosen.append(best)
        taken[pages[best]] += 1
        is_open[best] = False
        if taken[pages[best]] >= max_per_page:
            is_open &= np.array([page != pages[best] for page in pages])
        nearest = np.maximum(nearest, vectors @ vectors[best])
    return chosen
