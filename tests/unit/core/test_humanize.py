"""Durations and ages as people read them."""

from __future__ import annotations

import pytest

from otterwiki_semantic.core.humanize import ago, duration


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.04, "0.0 s"),
        (9.9, "9.9 s"),
        (9.97, "10 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3_900, "1 h 5 min"),
        (90_000, "25 h 0 min"),
    ],
)
def test_a_span_of_time_is_told_as_people_read_it(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_an_age_is_told_in_its_largest_unit() -> None:
    ages = (0, 59, 60, 7_199, 7_200, 86_399, 86_400, 200_000)
    assert [ago(age) for age in ages] == [
        *("just now", "just now", "1 minute ago", "1 hour ago", "2 hours ago", "23 hours ago", "1 day ago", "2 days ago")
    ]
