from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from otterwiki_semantic.catalog import Catalog, Counts, StoredVector
from otterwiki_semantic.errors import CatalogDamagedError, CatalogError
from otterwiki_semantic.records import Chunk, Page
from tests.catalog_reading import hits_of


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "catalog.sqlite3")


def page(path: str, *texts: str) -> Page:
    chunks = tuple(Chunk(text, 0, 0, "S", ("A", "S"), ("S",), "s", i, i + 1) for i, text in enumerate(texts, 1))
    return Page(path, f"blob of {path}", path.title(), "category", ("tag", "täg"), 10, chunks)


def vector(name: str, path: str) -> StoredVector:
    return StoredVector(name, np.full(4, 0.5, dtype=np.float32), path)


def put(catalog: Catalog, entry: Page) -> None:
    texts = [chunk.text for chunk in entry.chunks]
    catalog.add_vectors([vector(text, entry.path) for text in catalog.missing_vectors(texts)])
    catalog.put_pages([(entry, texts)])


def settle(catalog: Catalog) -> tuple[set[str], set[str]]:
    """Collect, tell an obedient store everything, and give what it had to store and to drop."""
    catalog.settle_vectors()
    stored, dropped = catalog.vectors_to_store(100), catalog.vectors_to_drop(100)
    catalog.mark_stored(stored)
    catalog.mark_dropped(dropped)
    return {entry.id for entry in stored}, set(dropped)


def test_a_hit_says_where_it_stands(catalog: Catalog) -> None:
    put(catalog, page("dir/a", "one", "two"))
    (hit,) = hits_of(catalog, ["two"])
    assert (hit.name, hit.path, hit.title, hit.category, hit.tags) == ("a", "dir/a", "Dir/A", "category", ("tag", "täg"))
    assert (hit.snippet, hit.chunk_index, hit.total_chunks) == ("two", 1, 2)
    assert (hit.section, hit.section_path, hit.headings, hit.anchor) == ("S", ("A", "S"), ("S",), "s")
    assert (hit.start_line, hit.end_line, hit.page_word_count) == (2, 3, 10)


def test_chunks_with_the_same_vector_are_all_found(catalog: Catalog) -> None:
    put(catalog, page("a", "one", "two"))
    put(catalog, page("b", "one", "three"))
    hits = hits_of(catalog, ["one", "two", "gone"])
    assert [(hit.path, hit.snippet) for hit in hits] == [("a", "one"), ("a", "two"), ("b", "one")]


def test_a_changed_page_replaces_what_stood_there(catalog: Catalog) -> None:
    put(catalog, page("a", "one", "two", "three"))
    put(catalog, page("a", "two", "four"))
    assert catalog.counts() == Counts(pages=1, chunks=2, vectors=4)
    assert settle(catalog) == ({"two", "four"}, {"one", "three"})
    assert catalog.counts() == Counts(pages=1, chunks=2, vectors=2)


def test_a_vector_that_another_page_needs_stays(catalog: Catalog) -> None:
    put(catalog, page("a", "shared", "own"))
    put(catalog, page("b", "shared"))
    settle(catalog)
    catalog.remove_pages(["a"])
    assert settle(catalog) == ({"shared"}, {"own"})
    left = catalog.any_vector()
    assert left is not None
    assert (left.id, left.path) == ("shared", "b")
    assert catalog.counts() == Counts(pages=1, chunks=1, vectors=1)


def test_a_renamed_page_keeps_its_vectors(catalog: Catalog) -> None:
    put(catalog, page("old", "one"))
    settle(catalog)
    catalog.remove_pages(["old"])
    assert catalog.missing_vectors(["one"]) == []
    put(catalog, page("new", "one"))
    assert settle(catalog) == ({"one"}, set())


def test_a_dropped_vector_that_comes_back_is_not_forgotten(catalog: Catalog) -> None:
    put(catalog, page("a", "one"))
    settle(catalog)
    catalog.remove_pages(["a"])
    catalog.settle_vectors()
    put(catalog, page("a", "one"))
    assert catalog.vectors_to_drop(10) == []
    assert [entry.id for entry in catalog.vectors_to_store(10)] == ["one"]


def test_the_count_of_what_the_store_holds_is_kept(catalog: Catalog) -> None:
    put(catalog, page("a", "one", "two"))
    assert catalog.stored_range() == (0, 2)
    settle(catalog)
    assert catalog.stored_range() == (2, 2)
    put(catalog, page("a", "two"))
    catalog.settle_vectors()
    assert catalog.stored_range() == (1, 2)
    catalog.mark_dropped(catalog.vectors_to_drop(10))
    assert catalog.stored_range() == (1, 1)
    catalog.store_all_again()
    assert catalog.stored_range() == (0, 1)


def test_the_exact_search_finds_what_is_nearest(catalog: Catalog) -> None:
    rows = np.eye(4, dtype=np.float32)
    catalog.add_vectors([StoredVector(name, row, "a") for name, row in zip("abcd", rows, strict=True)])
    query = np.array([0.6, 0.8, 0, 0], dtype=np.float32)
    found = catalog.lookup.nearest(query, 2)
    assert list(found) == ["b", "a"]
    assert np.allclose(list(found.values()), [0.2, 0.4], atol=1e-6)


def test_a_catalog_in_change_equals_no_commit(catalog: Catalog) -> None:
    catalog.begin_change("new")
    assert catalog.meta("changing") == "new"
    catalog.end_change("new")
    assert (catalog.meta("commit"), catalog.meta("changing")) == ("new", None)
    catalog.end_change(None)
    assert catalog.meta("commit") is None


def test_what_may_pass_is_no_damage(catalog: Catalog) -> None:
    other = sqlite3.connect(catalog.path)
    other.execute("BEGIN EXCLUSIVE")
    catalog._database._writer.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(CatalogError) as caught:
        catalog.set_meta("x", "y")
    assert not isinstance(caught.value, CatalogDamagedError)
    other.close()
    catalog.set_meta("x", "y")
    assert catalog.meta("x") == "y"


def test_a_failing_transaction_changes_nothing(catalog: Catalog) -> None:
    put(catalog, page("a", "one"))
    with pytest.raises(ValueError, match="shorter"):
        catalog.put_pages([(page("a", "two"), ["two"]), (page("b", "three", "four"), ["three"])])
    assert catalog.counts() == Counts(pages=1, chunks=1, vectors=1)
    assert [hit.snippet for hit in hits_of(catalog, ["one", "two"])] == ["one"]


def test_readers_and_a_writer_do_not_disturb_each_other(catalog: Catalog) -> None:
    put(catalog, page("a", *(f"text {i}" for i in range(50))))
    wrong: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            hits = hits_of(catalog, [f"text {i}" for i in range(100)])
            if len(hits) != 50:
                wrong.append(len(hits))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for round_ in range(20):
        put(catalog, page("a", *(f"text {i}" for i in range(50 * (round_ % 2), 50 * (round_ % 2) + 50))))
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "catalog.sqlite3"
    path.write_bytes(content)
    with pytest.raises(CatalogDamagedError, match=r"catalog\.sqlite3"):
        Catalog(path)


def test_another_schema_is_refused(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "catalog.sqlite3")
    catalog.set_meta("schema", "99")
    catalog.close()
    with pytest.raises(CatalogDamagedError, match="has schema 99"):
        Catalog(tmp_path / "catalog.sqlite3")


def rows(catalog: Catalog) -> dict[str, list[tuple[object, ...]]]:
    """All that is stored beside the chunks, without their ids."""
    statements = {
        "keywords": "SELECT path, ordinal, title, k.headings, body FROM keywords AS k JOIN chunks ON chunks.id = k.rowid",
        "names": "SELECT key, path, ordinal FROM names",
        "tags": "SELECT tag_key, path FROM page_tags",
        "links": "SELECT path, target FROM links",
    }
    with sqlite3.connect(catalog.path) as connection:
        found = {name: sorted(connection.execute(statement)) for name, statement in statements.items()}
        found["orphans"] = connection.execute(
            "SELECT rowid FROM keywords WHERE rowid NOT IN (SELECT id FROM chunks)"
        ).fetchall()
    connection.close()
    return found


def test_words_names_tags_and_links_follow_their_page(catalog: Catalog, tmp_path: Path) -> None:
    put(catalog, page("a", "one", "two", "three"))
    put(catalog, replace(page("b", "four"), tags=("Täg", "täg", "other"), links_to=("a", "c")))
    put(catalog, replace(page("a", "five"), title="New", links_to=("b",)))
    put(catalog, page("c", "six"))
    catalog.remove_pages(["c", "not there"])
    fresh = Catalog(tmp_path / "fresh.sqlite3")
    put(fresh, replace(page("b", "four"), tags=("Täg", "täg", "other"), links_to=("a", "c")))
    put(fresh, replace(page("a", "five"), title="New", links_to=("b",)))
    assert rows(catalog) == rows(fresh)
    assert rows(catalog)["orphans"] == []
    assert rows(catalog)["tags"] == [("other", "b"), ("tag", "a"), ("tag", "b")]
    fresh.close()


def test_a_page_without_a_known_time_has_none(catalog: Catalog) -> None:
    put(catalog, page("a", "one"))
    put(catalog, page("b", "two"))
    catalog.set_updated({"a": 0, "gone": 5})
    assert [hit.updated for hit in hits_of(catalog, ["one", "two"])] == ["1970-01-01T00:00:00+00:00", None]
