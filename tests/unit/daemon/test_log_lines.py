"""Lines of the log for programs: facts in logfmt, no words of a question, and not too many."""

from __future__ import annotations

import logging

import pytest

from otterwiki_semantic.core.records import NO_CONTEXT, Answer, Freshness, Mode, SearchContext, SearchOptions, TotalHits
from otterwiki_semantic.core.telemetry import SearchEvent, logfmt
from otterwiki_semantic.daemon.reports.search_log import LINES_A_MINUTE, SlowSearches

ANSWER = Answer(
    query="where are the bees",
    total=0,
    total_hits=TotalHits(0, "eq"),
    confident=False,
    degraded="no model for: where are the bees",
    index=Freshness("c", "c", 0),
    results=(),
)


def facts(line: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in line.rsplit("; ", maxsplit=1)[-1].split(" "))


def test_odd_values_stand_in_quotes() -> None:
    assert logfmt("x", a=1, b=0.12349, c=True, d='two "words"', e="", f=2.0) == (
        'event=x a=1 b=0.123 c=true d="two \\"words\\"" e="" f=2'
    )


def test_a_slow_search_is_logged_with_the_id_of_its_request(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "otterwiki_semantic")
    SlowSearches().record(SearchEvent([ANSWER], SearchOptions(), SearchContext(request_id="trace-1"), 1.25))
    (line,) = [record.getMessage() for record in caplog.records]
    assert facts(line)["request_id"] == "trace-1"


def test_a_slow_search_is_logged_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "otterwiki_semantic")
    slow = SlowSearches()
    slow.record(SearchEvent([ANSWER], SearchOptions(mode=Mode.SEMANTIC), NO_CONTEXT, 0.999))
    slow.record(SearchEvent([ANSWER, ANSWER], SearchOptions(), NO_CONTEXT, 1.5))
    assert caplog.records == []
    slow.record(SearchEvent([ANSWER], SearchOptions(7, mode=Mode.SEMANTIC, draft=True), NO_CONTEXT, 1.25))
    (line,) = [record.getMessage() for record in caplog.records]
    assert "bees" not in line
    assert facts(line) == {
        "event": "slow_search",
        "milliseconds": "1250",
        "mode": "semantic",
        "n": "7",
        "questions": "1",
        "results": "0",
        "degraded": "true",
        "draft": "true",
        "left_out": "0",
    }


def test_many_slow_searches_do_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "otterwiki_semantic")
    now = [0.0]
    slow = SlowSearches(lambda: now[0])
    for _ in range(LINES_A_MINUTE + 5):
        slow.record(SearchEvent([ANSWER], SearchOptions(), NO_CONTEXT, 1))
    assert len(caplog.records) == LINES_A_MINUTE
    now[0] = 60.0
    slow.record(SearchEvent([ANSWER], SearchOptions(), NO_CONTEXT, 1))
    assert facts(caplog.records[-1].getMessage())["left_out"] == "5"
