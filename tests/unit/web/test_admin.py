"""The charts of the administrators' page."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import structs

from otterwiki_semantic.core.records import QualityRecord, SearchHour
from otterwiki_semantic.web.pages.admin import latency_chart, quality_notes


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
        "top_unanswered": 2,
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


def test_a_lower_recall_and_missing_pages_are_told() -> None:
    before = QualityRecord(
        finished="2026-01-01T00:00:00+00:00",
        seconds=1,
        commit=None,
        model="m",
        generation="g",
        recipe="r",
        queries=4,
        unanswerable=0,
        recall_at_10=0.8,
        precision_at_10=0.1,
        mrr=0.5,
        zero_result_rate=0,
    )
    worse, hardly = (structs.replace(before, recall_at_10=recall) for recall in (0.7, 0.78))
    assert quality_notes([worse, before]) == [
        "Judged queries find 70% of the expected pages, after 80% in the evaluation before."
    ]
    assert quality_notes([hardly, before]) == quality_notes([before]) == quality_notes([]) == []
    assert quality_notes([structs.replace(worse, queries=5), before]) == []
    missing = structs.replace(before, unanswerable=1)
    assert quality_notes([missing]) == ["The pages for 1 of the 4 judged queries are not in the index."]
