"""The map of the wiki: a canvas that a script fills, and the same pages as a table, a hundred at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Annotated, Any

from flask import render_template, request
from flask.typing import ResponseReturnValue
from msgspec import Meta

from otterwiki_semantic.core.errors import ParameterError, SemanticError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.parameters import Request, parse_parameters
from otterwiki_semantic.core.records import MapPoint, MapState, WikiMap
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.web.auth import has_permission
from otterwiki_semantic.web.pages.layout import page_url, render_page, status_of

_ROWS = 100
_NEIGHBOURS = 3


class _PartRequest(Request, frozen=True):
    """Which part of the table of pages to show."""

    page: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    """Number of the part, from 1."""


@dataclass(frozen=True, slots=True)
class Row:
    """A page of the table, and the pages nearest to it on the map, nearest first."""

    page: MapPoint
    near: tuple[MapPoint, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A part of the table."""

    rows: tuple[Row, ...]
    number: int
    """Number of the part, from 1."""
    parts: int
    total: int
    """Number of pages in all parts."""


def map_view(service: IndexService) -> ResponseReturnValue:
    """Return the page of the map, or the part of it that its script loads once there is a map."""
    values, status = _values(service)
    if "part" in request.args:
        return render_template("semantic_search/map_table.html", **values), status
    return render_page("semantic_search/map.html", title="Map of the wiki", **values), status


def _values(service: IndexService) -> tuple[dict[str, Any], int]:
    values = {"query": request.args.get("q", "").strip(), "map": None, "table": None, "page_url": page_url, "message": None}
    try:
        number = parse_parameters(_PartRequest, {"page": request.args.get("page")}).page
        found = service.map()
    except SemanticError as error:
        return {**values, "message": str(error), "hint": _hint(error)}, status_of(error)
    return {**values, "map": found, "table": table(found, number)}, 200


def _hint(error: SemanticError) -> str | None:
    """Return what to do about an error, for administrators."""
    return None if isinstance(error, ParameterError) or not has_permission("ADMIN") else problem(error).hint


def table(found: WikiMap, number: int) -> Table | None:
    """Return a part of the table, the last one if `number` is too large; None without a map."""
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

_POINTS_PER_CELL = 2


class Grid:
    """A spatial grid of points with coordinates from 0 to 1."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self._cells_per_side = max(1, math.isqrt(len(points) // _POINTS_PER_CELL))
        self._cells: dict[tuple[int, int], list[int]] = {}
        for number, point in enumerate(points):
            self._cells.setdefault(self._cell(point), []).append(number)

    def nearest(self, number: int, n: int) -> list[int]:
        """Return the `n` points nearest to another, by number; ties in the order of the points."""
        place, near = self._points[number], list[tuple[float, int]]()
        for ring in range(self._cells_per_side):
            # Points in this ring and beyond are at least this far away.
            if len(near) == n and near[-1][0] < (ring - 1) / self._cells_per_side:
                break
            found = ((math.dist(place, self._points[other]), other) for other in self._ring(place, ring) if other != number)
            near = nsmallest(n, (*near, *found))
        return [other for _, other in near]

    def _cell(self, point: Point) -> tuple[int, int]:
        column, row = (min(int(part * self._cells_per_side), self._cells_per_side - 1) for part in point)
        return column, row

    def _ring(self, place: Point, ring: int) -> Iterator[int]:
        """Yield the points of the cells that are `ring` cells away."""
        column, row = self._cell(place)
        for x in range(column - ring, column + ring + 1):
            is_edge = abs(x - column) == ring
            for y in range(row - ring, row + ring + 1) if is_edge else {row - ring, row + ring}:
                yield from self._cells.get((x, y), ())
