"""Charts of the administrators' page, as places in a drawing that a template makes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from otterwiki_semantic.insight_records import HourOfSearches

WIDTH, HEIGHT = 600, 140
_SECONDS_OF_AN_HOUR = 3600
_LEAST_HOURS = 24


@dataclass(frozen=True, slots=True)
class Bar:
    """An hour: where it stands in the drawings, and how high its lines reach (units of the drawing, from its top)."""

    x: float
    width: float
    p50_y: float
    p95_y: float
    unanswered_y: float
    hour: HourOfSearches


@dataclass(frozen=True, slots=True)
class LatencyChart:
    """The hours that had searches, and what the tops of the drawings stand for, in milliseconds and in questions."""

    bars: tuple[Bar, ...]
    top_ms: int
    top_unanswered: int
    width: int = WIDTH
    height: int = HEIGHT


def latency_chart(hours: Sequence[HourOfSearches]) -> LatencyChart | None:
    """Give how long searches took, hour by hour, in proportion of time; None if there were none."""
    if not hours:
        return None
    starts = [datetime.fromisoformat(hour.hour).timestamp() / _SECONDS_OF_AN_HOUR for hour in hours]
    width = WIDTH / max(_LEAST_HOURS, starts[-1] - starts[0] + 1)
    top, most = _round_top(max(hour.p95_ms for hour in hours)), _round_top(max(hour.unanswered for hour in hours))

    def bar(start: float, hour: HourOfSearches) -> Bar:
        left = round((start - starts[0]) * width, 2)
        return Bar(
            left, round(width, 2), _place(hour.p50_ms, top), _place(hour.p95_ms, top), _place(hour.unanswered, most), hour
        )

    return LatencyChart(tuple(map(bar, starts, hours)), top, most)


def _round_top(most: float) -> int:
    """Give the next of 10, 20, 50, 100, 200 and so on."""
    power = 10 ** math.floor(math.log10(max(most, 1)))
    return int(max(10, next(power * step for step in (1, 2, 5, 10) if most <= power * step)))


def _place(value: float, top: int) -> float:
    return round(HEIGHT * (1 - value / top), 2)
