"""The points nearest to a place."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from otterwiki_semantic.web.pages.wiki_map import Grid

PARTS = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1)
POINTS = st.lists(st.tuples(PARTS, PARTS), min_size=1, max_size=80)


@given(POINTS, st.integers(1, 5))
@example([(0.5, 0.5)] * 40, 3)
@example([(0.0, 0.0)] * 20 + [(1.0, 1.0)], 3)
def test_the_nearest_points_are_those_that_looking_at_all_finds(points: list[tuple[float, float]], n: int) -> None:
    grid = Grid(points)
    for number, place in enumerate(points):
        others = sorted((math.dist(place, other), at) for at, other in enumerate(points) if at != number)
        assert grid.nearest(number, n) == [at for _, at in others[:n]]


def test_the_nearest_of_ten_thousand_are_beside_it() -> None:
    points = [(column / 100, row / 100) for column in range(100) for row in range(100)]
    assert sorted(points[at] for at in Grid(points).nearest(5050, 4)) == [(0.49, 0.5), (0.5, 0.49), (0.5, 0.51), (0.51, 0.5)]
