"""The charts of the administrators' page, and times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import structs

from otterwiki_semantic.core.records import QualityRecord, SearchHour
from otterwiki_semantic.web.pages.admin import date, latency_chart, quality_warnings


def test_a_chart_keeps_to_the_proportions_of_time_and_latency() -> None:
    now = datetime(2026, 1, 4, 5, 30, tzinfo=UTC).timestamp()
    assert latency_chart([], now) is None
    hours = [SearchHour(f"2026-01-0{day}T00:00:00+00:00", 3, 0, p50, 100) for day, p50 in ((1, 10), (2, 1), (4, 0.1))]
    chart = latency_chart(hours, now)
    names = ["Thu", "Fri", "Sat", ""]  # the last day has just begun
    assert chart == {
        "bars": list(zip((0, 24, 72), hours, (0, 0, 0), (1, 2, 2), strict=True)),
        "marks": list(zip(range(0, 78, 24), names, strict=True)),
        "width": 78,
        "decades": 2,
        "top": 4,
    }
    early = [SearchHour(f"2025-12-28T0{hour}:00:00+00:00", 1, 0, 1, 1) for hour in (5, 6)]
    week, half_day = (latency_chart(each, now) or {} for each in (early + hours, hours[2:]))
    assert (len(week["bars"]), week["bars"][0][0], half_day["marks"][1:]) == (4, 0, [(6, "6 h ago"), (0, "12 h ago")])


def test_a_lower_recall_and_missing_pages_are_told() -> None:
    facts: dict[str, Any] = {"seconds": 1, "commit": None, "model": "m", "generation": "g", "recipe": "r", "unanswerable": 0}
    figures: dict[str, Any] = {"recall_at_10": 0.8, "precision_at_10": 0.1, "mrr": 0.5, "zero_result_rate": 0}
    before = QualityRecord(finished="2026-01-01T00:00:00+00:00", queries=10, **facts, **figures)
    worse, hardly = (structs.replace(before, recall_at_10=recall) for recall in (0.7, 0.73))
    assert quality_warnings([worse, before]) == [
        "Search got worse: it finds 70% of the expected pages, and found 80% in the check before."
    ]
    assert quality_warnings([hardly, before]) == quality_warnings([before]) == quality_warnings([]) == []
    assert quality_warnings([structs.replace(worse, queries=11), before]) == []
    assert quality_warnings([structs.replace(each, queries=9) for each in (worse, before)]) == [], "too few to tell"
    (later,) = quality_warnings([structs.replace(before, mrr=0.4), before])
    assert later == "Search got worse: MRR of judged queries is 0.400, and was 0.500."
    (missing,) = quality_warnings([structs.replace(before, unanswerable=1, missing=("a/b",))], Path("/srv/judged.json"))
    assert missing == "1 of 10 test questions names a page that does not exist: “a/b”. Correct the names in /srv/judged.json."
    (several,) = quality_warnings([structs.replace(before, unanswerable=2, missing=("a/b",))])
    assert several.startswith("2 of 10 test questions name pages that do not exist, such as “a/b”. Correct")


def test_a_time_of_the_last_days_is_an_age_and_another_a_date() -> None:
    now = datetime.now(UTC)
    shown = [date((now - timedelta(days=days, hours=1)).isoformat()).striptags() for days in (0, 6, -1)]
    assert shown[:2] == ["1 hour ago", "6 days ago"]
    assert shown[2].endswith(str((now + timedelta(hours=23)).year)), "a time to come"
    old = date("2026-01-31T12:00:00+00:00")
    assert old == '<time datetime="2026-01-31" title="31 Jan 2026, 12:00 UTC">31 Jan 2026</time>'
