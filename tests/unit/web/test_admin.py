from __future__ import annotations

import pytest

from otterwiki_semantic.core.records import QualityRecord, SearchHour
from otterwiki_semantic.web.pages.admin import HEIGHT, WIDTH, latency_chart, quality_chart


def test_a_chart_keeps_to_the_proportions_of_time_and_latency() -> None:
    assert latency_chart([]) is None
    hours = [SearchHour(f"2026-01-0{day}T00:00:00+00:00", 3, 0, 20 * day, 30 * day) for day in (1, 2, 4)]
    chart = latency_chart(hours)
    assert chart
    assert chart.top_ms == 200
    first, second, last = chart.bars
    assert (first.x, round(last.x + last.width, 1)) == (0, WIDTH)
    assert (last.x - second.x) == pytest.approx(2 * (second.x - first.x), abs=0.1)
    assert first.p50_y == pytest.approx(HEIGHT * 0.9)
    assert last.p95_y == pytest.approx(HEIGHT * 0.4)


def test_a_chart_of_quality_has_1_at_its_top() -> None:
    assert quality_chart([]) is None
    chart = quality_chart([evaluation(1.0, 0.5), evaluation(0.0, 0.25)])
    assert chart
    assert [(bar.recall_y, bar.mrr_y) for bar in chart.bars] == [(0, HEIGHT * 0.5), (HEIGHT, HEIGHT * 0.75)]
    many = quality_chart([evaluation(1.0, 1.0)] * 400)
    assert many
    assert many.bars[-1].x + many.bars[-1].width == pytest.approx(WIDTH, abs=1)


def evaluation(recall: float, mrr: float) -> QualityRecord:
    return QualityRecord(
        finished="2026-01-01T00:00:00+00:00",
        seconds=1.0,
        commit="c",
        model="m",
        generation="g",
        recipe="r",
        queries=2,
        unanswerable=0,
        recall_at_10=recall,
        precision_at_10=0.1,
        mrr=mrr,
        zero_result_rate=0.0,
    )
