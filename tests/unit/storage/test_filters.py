"""Filters select the pages and chunks that their conditions describe."""

from __future__ import annotations

import sqlite3

import pytest

from otterwiki_semantic.core.records import Filters, LastChange, Page
from otterwiki_semantic.storage.filters import Filter, page_filter
from otterwiki_semantic.storage.schema import ADDED_TABLES, TABLES, WordChanges, insert_page

PAGES = (
    Page("a", "blob", "A", "Home", ("Red", "blue"), 1, (), last_change=LastChange(10, "commit")),
    Page("House/b", "blob", "B", None, ("red",), 1, (), last_change=LastChange(20, "commit")),
    Page("house/c", "blob", "C", "home", (), 1, ()),
)


def test_an_empty_filter_matches_everything() -> None:
    assert not Filter()
    assert not page_filter(Filters())
    assert (Filter().sql, Filter().values) == ("TRUE", ())


def test_conditions_on_pages_and_chunks_all_have_to_hold() -> None:
    both = Filter((("pages.category_key = ?", ("home",)),), (("chunks.id > ?", (3,)), ("chunks.id < ?", (9,))))
    assert both
    assert both.sql == "(pages.category_key = ?) AND (chunks.id > ?) AND (chunks.id < ?)"
    assert both.values == ("home", 3, 9)
    assert Filter(both.pages).values == ("home",)


def test_equal_filters_share_a_cached_mask() -> None:
    assert hash(page_filter(Filters(tags=("a",)))) == hash(page_filter(Filters(tags=("A",))))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), ["a", "House/b", "house/c"]),
        (Filters(path="/HOUSE/"), ["House/b", "house/c"]),
        (Filters(path="house/c"), ["house/c"]),
        (Filters(category="Home"), ["a", "house/c"]),
        (Filters(tags=("Red",)), ["a", "House/b"]),
        (Filters(tags=("red", "blue")), ["a"]),
        (Filters(updated_since=20), ["House/b"]),
        (Filters(updated_before=20), ["a"]),
        (Filters(updated_since=10, updated_before=20), ["a"]),
        (Filters(category="home", tags=("red",)), ["a"]),
        (Filters(filter="tag:RED"), ["a", "House/b"]),
        (Filters(filter="NOT tag:blue"), ["House/b", "house/c"]),
        (Filters(filter="NOT category:home"), ["House/b"]),
        (Filters(filter="NOT updated_since:1970-01-01T00:00:15Z"), ["a", "house/c"]),
        (Filters(filter="NOT (category:home OR updated_before:1970-01-02)"), []),
        (Filters(filter="NOT NOT category:home"), ["a", "house/c"]),
        (Filters(filter="path:house/ AND tag:red OR tag:blue"), ["a", "House/b"]),
        (Filters(filter="path:house/ AND (tag:red OR tag:blue)"), ["House/b"]),
        (Filters(filter="path:house/ and not path:/HOUSE/b"), ["house/c"]),
        (Filters(filter="tag:red OR tag:blue", category="home"), ["a"]),
        (Filters(filter="""tag:"x' OR 1=1 --" """), []),
    ],
)
def test_pages_are_filtered_whatever_the_case(filters: Filters, expected: list[str]) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(";".join((TABLES, *ADDED_TABLES.values())))
    for page in PAGES:
        insert_page(connection, page, (), WordChanges())
    where = page_filter(filters)
    found = connection.execute(f"SELECT path FROM pages WHERE {where.sql} ORDER BY path_key", where.values)
    assert [path for (path,) in found] == expected
    connection.close()
