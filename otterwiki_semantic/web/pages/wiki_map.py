"""The map of the wiki: a picture with a link for each page, and the same pages as a table, a hundred at a time."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import median
from typing import Annotated, Any

from flask import request
from flask.typing import ResponseReturnValue
from msgspec import Meta

from otterwiki_semantic.core.errors import ParameterError, SemanticError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.parameter_parsing import Request, parse_parameters
from otterwiki_semantic.core.records import MapPoint, MapState
from otterwiki_semantic.web.auth import has_permission
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.layout import guarded, message_of, page_urls, pages, render_page, status_of

_ROWS = 100
_NEIGHBOURS = 3
_COLOURS = 8
_ONE_SIDED = 0.6
"""Pages are coloured by meaning if more than this share of them is in one folder, or in none."""
_CIRCLE, _SQUARE, _DIAMOND = "h0", "m-.01-.01h.02v.02h-.02z", "m0-.01l.01 .01l-.01 .01l-.01-.01z"
_TRIANGLE, _INVERTED = "m0-.01l.009 .015h-.018z", "m0 .01l.009-.015h-.018z"
"""Shapes of points: tiny outlines that a wide stroke with pointed corners enlarges, so that no zoom changes their size."""
_SHAPES = (_CIRCLE, _SQUARE, _TRIANGLE, _DIAMOND, _CIRCLE, _SQUARE, _INVERTED, _DIAMOND)
"""By colour; from the fifth on, a shape that was there before has a hole."""
_RINGS = (5, 6, 8, "others", "none")
"""Colours whose points have a hole."""
_SIDE, _MARGIN = 1000, 60
"""Units of the picture for positions from 0 to 1, and its margin."""
COLOUR_BY = {"folder": "Folder", "category": "Category", "cluster": "Meaning"}
_FEWEST = 3
"""Groups by meaning that are worth colours."""
_COMPACT = 0.6
"""A group by meaning has its name on the map if its spread is at most this share of the whole map's."""
_NAMELESS = {"folder": "no folder", "category": "no category", "cluster": "no group"}


class _PartRequest(Request, frozen=True):
    """Which part of the table of pages to show."""

    page: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    """Number of the part, from 1."""


@dataclass(frozen=True, slots=True)
class Group:
    """Pages of one colour: numbered from 1, or grey."""

    name: str
    colour: int | str
    points: Sequence[MapPoint]
    is_compact: bool = False
    """Whether its name stands on the map."""

    @property
    def number(self) -> int:
        """The number of its colour in the stylesheet, 0 for grey."""
        return self.colour if isinstance(self.colour, int) else 0

    @property
    def classes(self) -> str:
        """The classes of its colour and shape in the stylesheet."""
        return f"semantic-map-{self.colour}" + ("" if self.shape == _CIRCLE else " semantic-map-corners")

    @property
    def is_ring(self) -> bool:
        """Whether its points have a hole."""
        return self.colour in _RINGS

    @property
    def shape(self) -> str:
        """The outline of its points, as SVG path data relative to their centre."""
        return {"others": _TRIANGLE, "none": _INVERTED}.get(str(self.colour)) or _SHAPES[self.number - 1]

    def place(self, point: MapPoint) -> str:
        """Return the path of a point."""
        return f"M{_SIDE * point.x:.1f} {_SIDE * point.y:.1f}{self.shape}"


@pages.get("/map", endpoint="map")
@guarded("READ")
def map_page() -> ResponseReturnValue:
    """Return the page of the map."""
    values: dict[str, Any] = {"query": request.args.get("q", "").strip()}
    status = 200
    try:
        number = parse_parameters(_PartRequest, {"page": request.args.get("page")}).page
        found = extension().index.map(page_urls())
        values["map"] = found
        if found.state is MapState.READY:
            has_clusters = len({point.cluster for point in found.points} - {None}) >= _FEWEST
            choices = {by: name for by, name in COLOUR_BY.items() if by != "cluster" or has_clusters}
            by = request.args.get("by", "")
            if by not in choices:
                largest = max(Counter(point.folder for point in found.points).values(), default=0)
                by = "cluster" if has_clusters and largest > _ONE_SIDED * len(found.points) else "folder"
            values |= {"by": by, "choices": choices, **table(found.points, number), **picture_of(found.points, by)}
    except SemanticError as error:
        hint = None if isinstance(error, ParameterError) or not has_permission("ADMIN") else problem(error).hint
        values |= {"message": message_of(error), "hint": hint}
        status = status_of(error)
    return render_page("map.html", title="Map of the wiki", **values), status


def picture_of(points: Sequence[MapPoint], by: str) -> dict[str, Any]:
    """Return the values of the picture's template."""
    axes = [point.x for point in points], [point.y for point in points]
    first = [_SIDE * min(axis) - _MARGIN for axis in axes]
    sizes = [_SIDE * (max(axis) - min(axis)) + 2 * _MARGIN for axis in axes]
    box = " ".join(f"{length:.1f}" for length in (*first, *sizes))
    return {"groups": grouped(points, by), "box": box, "total": len(points), "folder_of": _folder_of(points)}


def grouped(points: Sequence[MapPoint], by: str) -> list[Group]:
    """Return the groups, largest first. Groups beyond the colours, and pages without a group, are grey and come last.

    The page of a folder belongs to the folder's group.
    """
    members: defaultdict[str, list[MapPoint]] = defaultdict(list)
    name_of = _folder_of(points) if by == "folder" else attrgetter(by)
    for point in points:
        members[name_of(point) or ""].append(point)
    nameless = members.pop("", [])
    named = sorted(members.items(), key=lambda each: (-len(each[1]), each[0]))
    widest = _COMPACT * _spread(points) if by == "cluster" and points else -1
    groups = [Group(name, number, found, _spread(found) <= widest) for number, (name, found) in enumerate(named[:_COLOURS], 1)]
    others = [point for _, found in named[_COLOURS:] for point in found]
    grey = [Group(f"others ({len(named) - _COLOURS})", "others", others), Group(_NAMELESS[by], "none", nameless)]
    return groups + [group for group in grey if group.points]


def _folder_of(points: Sequence[MapPoint]) -> Callable[[MapPoint], str]:
    folders = {point.folder for point in points}
    return lambda point: point.folder or (point.path if point.path in folders else "")


def _spread(points: Sequence[MapPoint]) -> float:
    """Return the median distance of points from their middle."""
    x, y = (median(axis) for axis in zip(*((point.x, point.y) for point in points), strict=True))
    return median(math.dist((point.x, point.y), (x, y)) for point in points)


def table(points: Sequence[MapPoint], number: int) -> dict[str, Any]:
    """Return a part of the table, or the last one if `number` is too large: pages, each with its nearest pages on the map."""
    parts = max(1, -(-len(points) // _ROWS))
    number = min(number, parts)
    across = sorted(points, key=lambda point: point.x)
    shown = points[(number - 1) * _ROWS : number * _ROWS]
    return {"rows": [(point, nearest(point, across)) for point in shown], "part_number": number, "parts": parts}


def nearest(point: MapPoint, across: Sequence[MapPoint]) -> list[MapPoint]:
    """Return the three points nearest to one of `across`, which is sorted by `x`; ties are sorted by path."""
    at = bisect_left(across, point.x, key=lambda other: other.x)
    found: list[tuple[float, str, MapPoint]] = []
    for other in heapq.merge(across[at:], reversed(across[:at]), key=lambda other: abs(other.x - point.x)):
        if len(found) == _NEIGHBOURS and abs(other.x - point.x) > found[-1][0]:
            break
        if other.path != point.path:
            away = math.dist((point.x, point.y), (other.x, other.y))
            found = heapq.nsmallest(_NEIGHBOURS, [*found, (away, other.path, other)])
    return [other for _, _, other in found]
