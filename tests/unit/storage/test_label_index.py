"""The labels of pages in memory, which follow the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from otterwiki_semantic.core.records import Chunk, Page
from otterwiki_semantic.embedding import vector_id
from otterwiki_semantic.storage import Catalog


def put(catalog: Catalog, *paths: str) -> None:
    for path in paths:
        chunk = Chunk(f"[{path}] text", len(path) + 3, 0, "Part", (path, "Part"), ("Part",), "part", 1, 2)
        catalog.put_pages([(Page(path, "blob", path, None, (), 1, (chunk,)), [vector_id(chunk.text)])])


def sizes(catalog: Catalog) -> list[int]:
    return [len(segment.paths) for segment in catalog.labels.get().segments]


def live_paths(catalog: Catalog) -> list[str]:
    index = catalog.labels.get()
    parts = zip(index.segments, index.live, strict=True)
    return sorted(path for segment, live in parts for path, is_live in zip(segment.paths, live, strict=True) if is_live)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "catalog.sqlite3")


def test_an_edit_of_a_large_wiki_reads_one_page(catalog: Catalog) -> None:
    put(catalog, *(f"p{number}" for number in range(100)))
    assert sizes(catalog) == [100]
    base = catalog.labels.get().segments[0]
    for changed in ("p1", "p2", "p1"):
        put(catalog, changed)
        index = catalog.labels.get()
        assert index.segments[0] is base
        assert sum(sizes(catalog)) <= 103
        assert live_paths(catalog) == sorted(f"p{number}" for number in range(100))


def test_segments_stay_few_whoever_reads_first(catalog: Catalog) -> None:
    put(catalog, *(f"p{number}" for number in range(200)))
    catalog.labels.refresh()
    for number in range(90):
        put(catalog, f"q{number}")
        assert sum(sizes(catalog)) == 201 + number
    assert sizes(catalog)[0] == 200
    assert len(sizes(catalog)) < 8
    catalog.labels.refresh()
    assert sizes(catalog) == [200, 90]
    assert len(live_paths(catalog)) == 290


def test_a_refresh_drops_what_is_gone(catalog: Catalog) -> None:
    put(catalog, *(f"p{number}" for number in range(100)))
    catalog.labels.refresh()
    catalog.remove_pages([f"p{number}" for number in range(90)])
    assert len(live_paths(catalog)) == 10
    put(catalog, *(f"q{number}" for number in range(5)))
    catalog.labels.refresh()
    assert sizes(catalog) == [15]
    catalog.remove_pages(live_paths(catalog))
    assert live_paths(catalog) == []


def test_nothing_is_read_again_without_a_change_of_pages(catalog: Catalog) -> None:
    put(catalog, "a", "b")
    before = catalog.labels.get()
    assert catalog.labels.get() is before
    catalog.remove_pages([])
    assert catalog.labels.get().segments == before.segments
