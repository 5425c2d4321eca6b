"""Charts of the administrators' page, as places in a drawing that a template makes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from otterwiki_semantic.insight_records import HourOfSearches

WIDTH, HEIGHT = 600, 140
_SECONDS_OF_AN_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Bar:
    """An hour: where it stands in the drawing, and how high its lines reach (units of the drawing, from its top)."""

    x: float
    width: float
    p50_y: float
    p95_y: float
    hour: HourOfSearches


@dataclass(frozen=True, slots=True)
class LatencyChart:
    """The hours that had searches, and what the top of the drawing stands for, in milliseconds."""

    bars: tuple[Bar, ...]
    top_ms: int
    width: int = WIDTH
    height: int = HEIGHT


def latency_chart(hours: Sequence[HourOfSearches]) -> LatencyChart | None:
    """Give how long searches took, hour by hour, in proportion of time; None if there were none."""
    if not hours:
        return None
    starts = [datetime.fromisoformat(hour.hour).timestamp() / _SECONDS_OF_AN_HOUR for hour in hours]
    width = WIDTH / (starts[-1] - starts[0] + 1)
    top = _round_top(max(hour.p95_ms for hour in hours))
    return LatencyChart(
        tuple(
            Bar(
                round((start - starts[0]) * width, 2), round(width, 2), _place(hour.p50_ms, top), _place(hour.p95_ms, top), hour
            )
            for start, hour in zip(starts, hours, strict=True)
        ),
        top,
    )


def _round_top(milliseconds: float) -> int:
    """Give the next of 10, 20, 50, 100, 200 and so on."""
    power = 10 ** math.floor(math.log10(max(milliseconds, 1)))
    return int(max(10, next(power * step for step in (1, 2, 5, 10) if milliseconds <= power * step)))


def _place(milliseconds: float, top: int) -> float:
    return round(HEIGHT * (1 - milliseconds / top), 2)
