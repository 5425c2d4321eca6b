"""The labels of pages and sections in the catalog, which follow its pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.core.records import Chunk, Page, SuggestRequest
from otterwiki_semantic.embedding import vector_id
from otterwiki_semantic.search import suggest
from otterwiki_semantic.storage import Catalog
from otterwiki_semantic.storage.labels import LabelId


def put(catalog: Catalog, path: str, title: str, *headings: str, aliases: tuple[str, ...] = ()) -> None:
    chunk = Chunk(f"[{title}] text", len(title) + 3, 0, "", (title,), headings, "", 1, 2)
    page = Page(path, "blob", title, None, (), 1, (chunk,), aliases=aliases)
    catalog.put_pages([(page, [vector_id(chunk.text)])])


def stored(catalog: Catalog) -> tuple[list[tuple[str, ...]], list[tuple[str, int]]]:
    """The words of all labels, without their ids, and the vocabulary."""
    labels = catalog.select("SELECT key, path_key, words, page_words FROM labels")
    words = catalog.select("SELECT word, pages FROM label_words ORDER BY word")
    return sorted(tuple(" ".join(sorted(text.split())) for text in row) for row in labels), [tuple(row) for row in words]


def suggested(catalog: Catalog, query: str) -> list[str]:
    return [f"{each.path}#{each.section}" for each in suggest(catalog, SuggestRequest(query))]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "catalog.sqlite3")


@given(st.booleans(), *(st.integers(0, (1 << bits) - 1) for bits in (8, 30, 16, 8)))
def test_an_id_says_what_it_is_made_of(is_section: bool, length: int, page: int, chunk: int, place: int) -> None:
    label = LabelId(is_section, length, page, chunk, place)
    assert LabelId.decode(label.encode()) == label
    assert 0 <= label.encode() < 1 << 63


def test_ids_are_in_the_order_of_lengths() -> None:
    labels = [LabelId(False, 2, 9, 0, 0), LabelId(False, 3, 1, 0, 0), LabelId(True, 1, 5, 7, 1), LabelId(True, 300, 1, 0, 0)]
    assert labels == sorted(labels, key=LabelId.encode)


def test_labels_follow_their_pages(catalog: Catalog, tmp_path: Path) -> None:
    put(catalog, "a", "Old title", "Part", "Other part", aliases=("Nickname",))
    put(catalog, "b", "Gone", "Part")
    put(catalog, "c", "Moved", "Part")
    put(catalog, "a", "New title", "Part")
    catalog.remove_pages(["b", "c", "not there"])
    put(catalog, "moved/c", "Moved", "Part")
    fresh = Catalog(tmp_path / "fresh.sqlite3")
    put(fresh, "a", "New title", "Part")
    put(fresh, "moved/c", "Moved", "Part")
    assert stored(catalog) == stored(fresh)
    assert dict(stored(catalog)[1]) == {"a": 1, "c": 1, "moved": 1, "new": 1, "part": 2, "title": 1}


def test_names_beyond_what_an_id_holds_are_found(catalog: Catalog) -> None:
    put(catalog, "a", "x" * 500, *(f"Heading {number}" for number in range(300)))
    put(catalog, "b", "x" * 400)
    assert suggested(catalog, "x" * 300) == ["a#", "b#"]
    assert suggested(catalog, "heading 255") == ["a#Heading 255"]
    assert suggested(catalog, "heading 256") == []
