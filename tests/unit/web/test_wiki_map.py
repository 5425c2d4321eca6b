"""The page of the map: its groups, its picture, and the table with the points nearest to each."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from otterwiki_semantic.core.records import MapPoint
from otterwiki_semantic.web.pages.wiki_map import Group, grouped, nearest, table

PARTS = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1)


def point(number: int, x: float = 0.5, y: float = 0.5, folder: str = "", category: str | None = None) -> MapPoint:
    return MapPoint(f"p{number:03}", f"Page {number}", f"p{number:03}", x, y, folder, category, False)


@given(st.lists(st.tuples(PARTS, PARTS), min_size=1, max_size=60))
@example([(0.5, 0.5)] * 40)
@example([(0.0, 0.0)] * 20 + [(1.0, 1.0)])
def test_the_nearest_points_are_those_that_looking_at_all_finds(places: list[tuple[float, float]]) -> None:
    points = [point(number, *place) for number, place in enumerate(places)]
    across = sorted(points, key=lambda each: each.x)
    for here in points:
        others = sorted((math.dist((here.x, here.y), (other.x, other.y)), other.path) for other in points if other is not here)
        assert [found.path for found in nearest(here, across)] == [path for _, path in others[:3]]


def test_a_long_table_comes_in_parts() -> None:
    points = tuple(point(at, at / 250) for at in range(250))
    for number, expected in ((1, points[:100]), (3, points[200:]), (9, points[200:])):
        part = table(points, number)
        assert tuple(page for page, _ in part["rows"]) == expected
        assert (part["part_number"], part["parts"]) == (min(number, 3), 3)


def test_the_largest_groups_have_colours_and_the_small_ones_are_together() -> None:
    points = [point(folder, folder=f"f{folder:02}") for folder in range(12) for _ in range(12 - folder)]
    points += [point(99), point(98, category="x")]
    assert [(group.name, group.colour, len(group.points)) for group in grouped(points, "folder")] == [
        *((f"f{number:02}", number + 1, 12 - number) for number in range(8)),
        ("others (4)", "others", 4 + 3 + 2 + 1),
        ("no folder", "none", 2),
    ]
    assert grouped(points[-1:], "category") == [Group("x", 1, [points[-1]])]


def test_no_two_groups_have_points_of_one_form() -> None:
    groups = grouped([point(folder, folder=f"f{folder:02}") for folder in range(9)] + [point(99)], "folder")
    assert len({(group.shape, group.is_ring) for group in groups}) == len(groups) == 10


def test_the_page_of_a_folder_is_in_its_group() -> None:
    points = [point(1), point(2, folder="p001"), point(3)]
    assert [(group.name, len(group.points)) for group in grouped(points, "folder")] == [("p001", 2), ("no folder", 1)]


def test_only_a_compact_group_near_in_meaning_has_its_name_on_the_map() -> None:
    places = {"apart": (0.0, 0.4, 0.6, 1.0), "together": (0.1, 0.1, 0.2, 0.9)}
    points = [structs.replace(point(0, x), cluster=name) for name, each in places.items() for x in each]
    assert {group.name: group.is_compact for group in grouped(points, "cluster")} == {"apart": False, "together": True}
    assert not any(group.is_compact for group in grouped(points, "folder"))
