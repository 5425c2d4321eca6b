"""The points of a plane that are nearest to a place, without NumPy: the wiki's own processes do without it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import nsmallest

Point = tuple[float, float]

_POINTS_A_CELL = 2


class Grid:
    """Points with `x` and `y` from 0 to 1, kept by square cells, so that few of them are looked at for a place."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self._cells_a_side = max(1, math.isqrt(len(points) // _POINTS_A_CELL))
        self._cells: dict[tuple[int, int], list[int]] = {}
        for number, point in enumerate(points):
            self._cells.setdefault(self._cell(point), []).append(number)

    def nearest(self, number: int, n: int) -> list[int]:
        """Give the numbers of the `n` points nearest to one of them, itself not among them; of equals the first come first."""
        place, near = self._points[number], list[tuple[float, int]]()
        for ring in range(self._cells_a_side):
            # Whatever lies in this ring or beyond is at least so far away.
            if len(near) == n and near[-1][0] < (ring - 1) / self._cells_a_side:
                break
            found = ((math.dist(place, self._points[other]), other) for other in self._ring(place, ring) if other != number)
            near = nsmallest(n, (*near, *found))
        return [other for _, other in near]

    def _cell(self, point: Point) -> tuple[int, int]:
        column, row = (min(int(part * self._cells_a_side), self._cells_a_side - 1) for part in point)
        return column, row

    def _ring(self, place: Point, ring: int) -> Iterator[int]:
        """Give the points of the cells that are so many cells away."""
        column, row = self._cell(place)
        for x in range(column - ring, column + ring + 1):
            is_edge = abs(x - column) == ring
            for y in range(row - ring, row + ring + 1) if is_edge else {row - ring, row + ring}:
                yield from self._cells.get((x, y), ())
