"""The page of the map of the wiki: a canvas that its script fills, and the same pages as a table, a hundred at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

from flask import render_template, request
from flask.typing import ResponseReturnValue

from otterwiki_semantic.core.errors import ParameterError, SemanticError
from otterwiki_semantic.core.parameters import Integer
from otterwiki_semantic.core.records import MapPoint, MapState, WikiMap
from otterwiki_semantic.core.remedies import problem
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.web.auth import has_permission
from otterwiki_semantic.web.pages.layout import page_url, render_page, status_of

_ROWS = 100
_NEIGHBOURS = 3
_MOST_PAGES = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """A page of the table, and the pages nearest to it on the map, nearest first."""

    page: MapPoint
    near: tuple[MapPoint, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A part of the table: its rows, the number of the part (from 1), how many parts and how many pages there are."""

    rows: tuple[Row, ...]
    number: int
    parts: int
    total: int


class MapView:
    """The view of the map's page."""

    def __init__(self, service: IndexService) -> None:
        self._service = service

    def page(self) -> ResponseReturnValue:
        """The map's page, or the part of it that its script asks for once a map was made."""
        values, status = self._values()
        if "part" in request.args:
            return render_template("semantic_search/map_table.html", **values), status
        return render_page("semantic_search/map.html", title="Map of the wiki", **values), status

    def _values(self) -> tuple[dict[str, Any], int]:
        values = {"query": request.args.get("q", "").strip(), "map": None, "table": None, "page_url": page_url, "message": None}
        try:
            number = Integer(1, _MOST_PAGES).parse(request.args.get("page", "1"), "page")
            found = self._service.map()
        except SemanticError as error:
            return {**values, "message": str(error), "hint": _hint(error)}, status_of(error)
        return {**values, "map": found, "table": table(found, number)}, 200


def _hint(error: SemanticError) -> str | None:
    """Give what to do about an error to those who can do it."""
    is_asked_wrongly = isinstance(error, ParameterError)
    return None if is_asked_wrongly or not has_permission("ADMIN") else problem(error).hint


def table(found: WikiMap, number: int) -> Table | None:
    """Give a part of the table, the last one for a number beyond it; None where there is no map."""
    if found.state is not MapState.READY:
        return None
    parts = max(1, -(-len(found.points) // _ROWS))
    number = min(number, parts)
    return Table(_rows(found.points, (number - 1) * _ROWS), number, parts, len(found.points))


def _rows(points: Sequence[MapPoint], first: int) -> tuple[Row, ...]:
    grid = Grid([(point.x, point.y) for point in points])
    shown = range(first, min(first + _ROWS, len(points)))
    return tuple(Row(points[at], tuple(points[near] for near in grid.nearest(at, _NEIGHBOURS))) for at in shown)


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
