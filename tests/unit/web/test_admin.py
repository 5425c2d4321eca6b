"""The charts of the administrators' page."""

from __future__ import annotations

from datetime import UTC, datetime

from otterwiki_semantic.core.records import SearchHour
from otterwiki_semantic.web.pages.admin import latency_chart


def test_a_chart_keeps_to_the_proportions_of_time_and_latency() -> None:
    now = datetime(2026, 1, 4, 5, 30, tzinfo=UTC).timestamp()
    assert latency_chart([], now) is None
    hours = [SearchHour(f"2026-01-0{day}T00:00:00+00:00", 3, 0, p50, 100) for day, p50 in ((1, 10), (2, 1), (4, 0.1))]
    chart = latency_chart(hours, now)
    assert chart == {
        "bars": list(zip((18, 42, 90), hours, (0, 0, 0), (1, 2, 2), strict=True)),
        "times": ["−4 d", "−3 d", "−2 d", "−1 d", "now"],
        "width": 96,
        "decades": 2,
        "top_unanswered": 10,
    }
    early = latency_chart([SearchHour("2025-12-28T05:00:00+00:00", 1, 0, 1, 1), *hours], now)
    assert early
    assert (early["times"][0], early["bars"][0][0]) == ("−7 d", 0)
    single = latency_chart(hours[-1:], now)
    assert single
    assert (single["width"], single["bars"]) == (24, [(18, hours[-1], 0, 2)])
    assert single["times"] == ["−24 h", "−18 h", "−12 h", "−6 h", "now"]
    longer = latency_chart([SearchHour("2026-01-03T04:00:00+00:00", 1, 0, 1, 1)], now)
    assert longer
    assert (longer["width"], longer["times"][0]) == (30, "−30 h")
