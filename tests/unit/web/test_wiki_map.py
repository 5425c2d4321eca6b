from __future__ import annotations

from otterwiki_semantic.core.records import Freshness, MapPoint, MapState, WikiMap
from otterwiki_semantic.web.pages.wiki_map import table


def test_a_long_table_comes_in_parts() -> None:
    points = tuple(MapPoint(f"p{at:03}", f"Page {at}", f"p{at:03}", at / 250, 0.5, "", None, False) for at in range(250))
    found = WikiMap(points, 250, MapState.READY, "2026-01-01T00:00:00+00:00", Freshness("a", "a", 0))
    for number, expected in ((1, points[:100]), (3, points[200:]), (9, points[200:])):
        part = table(found, number)
        assert part
        assert tuple(row.page for row in part.rows) == expected
        assert (part.number, part.parts, part.total) == (min(number, 3), 3, 250)
        for row in part.rows[1:-1]:
            at = points.index(row.page)
            assert points[at - 1] in row.near
            assert points[at + 1] in row.near
