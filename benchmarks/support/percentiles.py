"""Percentiles of times, and how sure the difference of two of them is."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_RESAMPLES = 1_000

Percentile = Callable[[Sequence[float]], float]


def p50(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile, interpolated; of fewer than 20 values it is near their greatest one."""
    return statistics.quantiles(values, n=20, method="inclusive")[18]


@dataclass(frozen=True, slots=True)
class Difference:
    """A percentile of one series less that of another, and the interval that holds it in 95 of 100 resamples."""

    value: float
    least: float
    most: float


def difference(percentile: Percentile, these: Sequence[float], those: Sequence[float]) -> Difference:
    """Compare series that were taken in turns: the pairs are drawn again and again (bootstrap; Efron, 1979)."""
    chance = random.Random(1)
    pairs = range(min(len(these), len(those)))
    found = []
    for _ in range(_RESAMPLES):
        drawn = chance.choices(pairs, k=len(pairs))
        found.append(percentile([these[pair] for pair in drawn]) - percentile([those[pair] for pair in drawn]))
    cuts = statistics.quantiles(found, n=40, method="inclusive")
    return Difference(percentile(these) - percentile(those), cuts[0], cuts[-1])
