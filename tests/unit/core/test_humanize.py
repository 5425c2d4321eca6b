"""Durations as people read them."""

from __future__ import annotations

import pytest

from otterwiki_semantic.core.humanize import duration


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
