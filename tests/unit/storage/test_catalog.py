"""The catalog: what replacing a page changes, and what readers see meanwhile."""

from __future__ import annotations

import itertools
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from otterwiki_semantic.core.errors import CatalogCorruptError, CatalogError
from otterwiki_semantic.core.records import Chunk, ChunkSection, FileKind, Indexed, LastChange, Page, Unit, UnitKind
from otterwiki_semantic.embedding.vectors import vector_id, words_only_id
from otterwiki_semantic.storage.catalog import Catalog, Counts
from otterwiki_semantic.storage.vector_store import StoredVector
from tests.support.catalog_reading import hits_of

TEXTS = {vector_id(text): text for text in ("one", "two", "three", "four", "shared", "own")}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "catalog.sqlite3")


def page(path: str, *texts: str) -> Page:
    chunks = tuple(Chunk(text, 0, 0, "S", ("A", "S"), ("S",), "s", i, i + 1) for i, text in enumerate(texts, 1))
    return Page(path, f"blob of {path}", path.title(), "category", ("tag", "täg"), 10, chunks)


def vector(name: str) -> StoredVector:
    return StoredVector(name, np.full(4, 0.5, dtype=np.float32))


def put(catalog: Catalog, entry: Page) -> None:
    ids = [vector_id(chunk.text) for chunk in entry.chunks]
    catalog.vectors.add([vector(missing) for missing in catalog.vectors.missing(ids)])
    catalog.put_pages([(entry, ids)])


def settle(catalog: Catalog) -> tuple[set[str], set[str]]:
    """Collect garbage, empty the outbox, and return the texts that it had to upsert and to delete."""
    catalog.vectors.collect_garbage()
    stored, dropped = catalog.outbox.upserts(100), catalog.outbox.deletes(100)
    catalog.outbox.mark_upserted(stored)
    catalog.outbox.mark_deleted(dropped)
    return {TEXTS[entry.id] for entry in stored}, {TEXTS[gone] for gone in dropped}


def test_a_hit_says_where_it_stands(catalog: Catalog) -> None:
    put(catalog, page("dir/a", "one", "two"))
    (hit,) = hits_of(catalog, map(vector_id, ["two"]))
    assert (hit.name, hit.path, hit.title, hit.category, hit.tags) == ("a", "dir/a", "Dir/A", "category", ("tag", "täg"))
    assert (hit.text, hit.chunk_index, hit.total_chunks) == ("two", 1, 2)
    assert (hit.section, hit.section_path, hit.headings, hit.anchor) == ("S", ("A", "S"), ("S",), "s")
    assert (hit.start_line, hit.end_line, hit.page_word_count) == (2, 3, 10)


def test_a_hit_knows_its_units(catalog: Catalog) -> None:
    sections = (ChunkSection(("A",), "a"), ChunkSection(("A", "S"), "s"))
    units = (Unit(0, 3, 0, 1, 1, UnitKind.SENTENCE), Unit(4, 7, 1, 3, 4, UnitKind.ROW))
    chunk = replace(page("a", "one two").chunks[0], sections=sections, units=units)
    put(catalog, replace(page("a"), chunks=(chunk,)))
    (hit,) = hits_of(catalog, [vector_id("one two")])
    assert (hit.sections, hit.units) == (sections, units)
    assert [section.heading for section in hit.sections] == ["A", "S"]
    with catalog.write() as connection:
        connection.execute("UPDATE chunks SET places = x'00'")
    (hit,) = hits_of(catalog, [vector_id("one two")])
    with pytest.raises(CatalogCorruptError, match="units of a passage"):
        assert hit.units


def test_a_hit_of_an_earlier_version_has_its_sentences_as_units(catalog: Catalog) -> None:
    put(catalog, page("a", "[A] One. Two."))
    with catalog.write() as connection:
        connection.execute("ALTER TABLE chunks DROP COLUMN places")
        connection.execute("UPDATE chunks SET prefix_length = 4")
        connection.execute("UPDATE meta SET value = '9' WHERE name = 'schema'")
    (hit,) = hits_of(Catalog(catalog.path), [vector_id("[A] One. Two.")])
    assert hit.sections == (ChunkSection(("A", "S"), "s"),)
    assert [hit.text[unit.start : unit.end] for unit in hit.units] == ["One.", "Two."]
    assert {unit[2:] for unit in hit.units} == {(0, 1, 2, UnitKind.SENTENCE)}


def test_of_an_excluded_page_only_its_blob_is_kept(catalog: Catalog) -> None:
    put(catalog, page("a", "one"))
    assert settle(catalog) == ({"one"}, set())
    excluded = replace(page("a"), indexed=Indexed.NOT)
    put(catalog, excluded)
    assert (catalog.pages.blobs(), catalog.pages.excluded_blobs()) == ({}, {"a": "blob of a"})
    assert settle(catalog) == (set(), {"one"})
    assert hits_of(catalog, [vector_id("one")]) == []
    put(catalog, page("a", "one"))
    assert (catalog.pages.blobs(), catalog.pages.excluded_blobs()) == ({"a": "blob of a"}, {})
    put(catalog, excluded)
    catalog.remove_pages(["a"])
    assert (catalog.pages.blobs(), catalog.pages.excluded_blobs()) == ({}, {})


def test_a_chunk_that_is_never_embedded_lacks_nothing(catalog: Catalog) -> None:
    put(catalog, page("a", "one"))
    assert settle(catalog) == ({"one"}, set())
    catalog.put_pages([(page("a", "one"), [words_only_id("one")])])
    assert settle(catalog) == (set(), {"one"})
    put(catalog, page("b", "one"))
    assert settle(catalog) == ({"one"}, set())
    catalog.check_copy()
    assert [found.path for found, _ in catalog.reader.exact_index().nearest(vector("one").embedding, 5)] == ["b"]
    assert catalog.reader.sample_texts(5) == ["one"]
    assert catalog.reader.page_vectors(["a"]) == {}
    catalog.remove_pages(["a"])
    assert settle(catalog) == (set(), set())


def test_chunks_with_the_same_vector_are_all_found(catalog: Catalog) -> None:
    put(catalog, page("a", "one", "two"))
    put(catalog, page("b", "one", "three"))
    hits = hits_of(catalog, map(vector_id, ["one", "two", "gone"]))
    assert [(hit.path, hit.text) for hit in hits] == [("a", "one"), ("a", "two"), ("b", "one")]


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
    assert settle(catalog) == (set(), {"own"})
    (left,) = catalog.outbox.sample_sent(5)
    assert TEXTS[left.id] == "shared"
    assert catalog.counts() == Counts(pages=1, chunks=1, vectors=1)


def test_a_renamed_page_keeps_its_vectors(catalog: Catalog) -> None:
    put(catalog, page("old", "one"))
    settle(catalog)
    catalog.remove_pages(["old"])
    assert catalog.vectors.missing([vector_id("one")]) == []
    put(catalog, page("new", "one"))
    assert settle(catalog) == (set(), set())


def test_a_dropped_vector_that_comes_back_is_not_forgotten(catalog: Catalog) -> None:
    put(catalog, page("a", "one"))
    settle(catalog)
    catalog.remove_pages(["a"])
    catalog.vectors.collect_garbage()
    put(catalog, page("a", "one"))
    assert catalog.outbox.deletes(10) == []
    assert [TEXTS[entry.id] for entry in catalog.outbox.upserts(10)] == ["one"]


def test_what_the_store_really_holds_is_noted(catalog: Catalog) -> None:
    put(catalog, page("a", "one", "two", "three"))
    settle(catalog)
    assert catalog.outbox.reconcile({vector_id(text) for text in ("one", "two", "three")}) == 0
    assert catalog.outbox.reconcile({vector_id(text) for text in ("one", "old")} | {vector_id("two")}) == 2
    assert [entry.id for entry in catalog.outbox.upserts(10)] == [vector_id("three")]
    assert catalog.outbox.deletes(10) == [vector_id("old")]


def test_a_vector_is_either_to_upsert_or_to_update(catalog: Catalog) -> None:
    put(catalog, page("a", "one", "two"))
    assert catalog.outbox.count() == (2, 0)
    settle(catalog)
    put(catalog, page("b", "two", "three"))
    assert catalog.outbox.count() == (1, 1), "the metadata of the shared vector names both pages"
    catalog.put_pages([(page("c", "four"), [vector_id("four")])])
    catalog.remove_pages(["c"])
    assert catalog.outbox.count() == (1, 1), "a chunk without a vector has no metadata in the store"
    catalog.outbox.reconcile(map(vector_id, ("one", "two", "three")))
    assert catalog.outbox.count() == (0, 2), "its metadata may have changed since it was sent"
    catalog.outbox.refill()
    assert catalog.outbox.count() == (3, 0)


def test_counts_are_saved_for_the_next_start(catalog: Catalog) -> None:
    put(catalog, page("a", "one", "two"))
    catalog.compact()
    with catalog.write() as connection:
        connection.execute("DELETE FROM chunks")  # without a new revision, nobody counts again
    again = Catalog(catalog.path)
    assert again.counts() == Counts(pages=1, chunks=2, vectors=2)
    put(again, page("b", "three"))
    assert again.counts() == Counts(pages=2, chunks=1, vectors=3)


def test_what_may_pass_is_no_damage(catalog: Catalog) -> None:
    other = sqlite3.connect(catalog.path)
    other.execute("BEGIN EXCLUSIVE")
    catalog._writer.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(CatalogError) as caught:
        catalog.set_meta("x", "y")
    assert not isinstance(caught.value, CatalogCorruptError)
    other.close()
    catalog.set_meta("x", "y")
    assert catalog.meta("x") == "y"


def test_a_failing_transaction_changes_nothing(catalog: Catalog) -> None:
    put(catalog, page("a", "one"))
    with pytest.raises(ValueError, match="shorter"):
        catalog.put_pages([(page("a", "two"), [vector_id("two")]), (page("b", "three", "four"), [vector_id("three")])])
    assert catalog.counts() == Counts(pages=1, chunks=1, vectors=1)
    assert [hit.text for hit in hits_of(catalog, map(vector_id, ["one", "two"]))] == ["one"]


def test_readers_and_a_writer_do_not_disturb_each_other(catalog: Catalog) -> None:
    put(catalog, page("a", *(f"text {i}" for i in range(50))))
    wrong: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            hits = hits_of(catalog, map(vector_id, [f"text {i}" for i in range(100)]))
            if len(hits) != 50:
                wrong.append(len(hits))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for round_ in range(8):
        put(catalog, page("a", *(f"text {i}" for i in range(50 * (round_ % 2), 50 * (round_ % 2) + 50))))
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "catalog.sqlite3"
    path.write_bytes(content)
    with pytest.raises(CatalogCorruptError, match=r"catalog\.sqlite3"):
        Catalog(path)


def test_a_file_that_was_removed_or_replaced_is_noticed(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "catalog.sqlite3")
    put(catalog, page("a", "one"))
    assert catalog.is_in_place
    catalog.path.rename(tmp_path / "elsewhere")
    assert not catalog.is_in_place
    catalog.path.touch()
    assert not catalog.is_in_place


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE chunks SET text = 'something else'",
        "UPDATE chunks SET text = CAST(x'ff' AS TEXT)",
        "UPDATE vectors SET embedding = zeroblob(16)",
        "UPDATE vectors SET embedding = x'ffffffffffffffffffffffffffffffff'",
        "UPDATE vectors SET embedding = x'00'",
        "DROP TABLE chunks",
    ],
)
def test_damage_that_sqlite_does_not_see_is_noticed(catalog: Catalog, damage: str) -> None:
    put(catalog, page("a", "one", "two"))
    catalog.check()
    other = sqlite3.connect(catalog.path)
    other.execute(damage)
    other.commit()
    other.close()
    with pytest.raises(CatalogCorruptError):
        catalog.check()
    with pytest.raises(CatalogCorruptError):
        _ = hits_of(catalog, [vector_id("one")]), catalog.vectors.get([vector_id("one")])


def rows(catalog: Catalog) -> dict[str, list[tuple[object, ...]]]:
    """All that is stored beside the chunks, without their ids."""
    statements = {
        "keywords": "SELECT path, ordinal, title, k.headings, body FROM keywords AS k JOIN chunks ON chunks.id = k.rowid",
        "names": "SELECT key, path, ordinal FROM names",
        "tags": "SELECT tag_key, path FROM page_tags",
        "links": "SELECT path, target FROM links",
        "words": "SELECT path, title_words, name_words, path_words FROM page_names LEFT JOIN pages ON number = page",
        "orphans": "SELECT rowid FROM keywords WHERE rowid NOT IN (SELECT id FROM chunks)",
    }
    with closing(sqlite3.connect(catalog.path)) as connection:
        return {name: sorted(connection.execute(statement)) for name, statement in statements.items()}


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


def test_names_and_headings_have_the_words_of_their_pages_language(catalog: Catalog) -> None:
    chunk = replace(page("a", "one").chunks[0], headings=("Gärten",))
    for language in ("de", "en"):
        put(catalog, replace(page(language), title="Häuser", chunks=(chunk,), language=language))
    headings = catalog.reader.heading_words([1, 2])
    assert [headings[number][0] for number in (1, 2)] == [(("gart",),), (("garten",),)]
    for statement in ("SELECT 1", "DELETE FROM page_names"):  # which an earlier version did not write
        catalog.select(statement)
        names = Catalog(catalog.path).reader.page_names()
        assert [names.title_words(language) for language in ("de", "en")] == [{"de", "haus"}, {"en", "hauser"}]


def test_names_are_current_however_busy_the_machine_is(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", itertools.count().__next__)
    for title in ("One", "Two"):
        put(catalog, replace(page("a", "one"), title=title))
        assert catalog.reader.page_names().title_words("a") == {"a", title.lower()}


def test_a_page_without_a_known_time_has_none(catalog: Catalog) -> None:
    put(catalog, page("a", "one"))
    put(catalog, page("b", "two"))
    catalog.set_last_changes({"a": LastChange(0, "first"), "gone": LastChange(5, "second")})
    assert [hit.updated for hit in hits_of(catalog, map(vector_id, ["one", "two"]))] == ["1970-01-01T00:00:00+00:00", None]


# The room it takes

PAGES = 30


def numbered(number: int, state: int) -> Page:
    texts = [f"Passage {place} of page {number} in its state {state}, which is like no other." for place in range(5)]
    return page(f"p{number}", *texts)


def long_vectors(entry: Page) -> list[StoredVector]:
    return [StoredVector(vector_id(chunk.text), np.full(384, 384**-0.5, dtype=np.float32)) for chunk in entry.chunks]


def settle_all(catalog: Catalog) -> None:
    catalog.vectors.collect_garbage()
    catalog.outbox.mark_upserted(catalog.outbox.upserts(1000))
    catalog.outbox.mark_deleted(catalog.outbox.deletes(1000))


def rewrite(catalog: Catalog, state: int, pages: range = range(PAGES)) -> None:
    """Put pages in another state, one by one, as edits do."""
    for number in pages:
        entry = numbered(number, state)
        vectors = long_vectors(entry)
        catalog.vectors.add(vectors)
        catalog.put_pages([(entry, [vector.id for vector in vectors])])
        settle_all(catalog)
        catalog.compact()


def asked(catalog: Catalog, statement: str) -> int:
    with sqlite3.connect(catalog.path) as connection:
        found = connection.execute(statement).fetchone()[0]
    connection.close()
    return int(found)


def test_rewritten_pages_take_no_more_room(catalog: Catalog) -> None:
    rewrite(catalog, 0)
    words = "SELECT SUM(LENGTH(block)) FROM keywords_data"
    before = asked(catalog, words)
    for state in range(1, 4):
        rewrite(catalog, state)
    assert asked(catalog, "SELECT MAX(place) FROM vectors") <= 5 * (PAGES + 1), "places of vectors that have gone are taken"
    assert asked(catalog, words) < 1.3 * before, "the words of what has gone are merged away"
    assert asked(catalog, "PRAGMA freelist_count") < 200
    assert catalog.path.with_name("catalog.sqlite3-wal").stat().st_size < 1_000_000
    assert catalog.counts() == Counts(PAGES, 5 * PAGES, 5 * PAGES)
    catalog.check_copy()


def test_room_that_is_not_needed_is_given_back(catalog: Catalog) -> None:
    rewrite(catalog, 0, range(4 * PAGES))
    before = asked(catalog, "PRAGMA page_count")
    catalog.remove_pages([f"p{number}" for number in range(1, 4 * PAGES)])
    while catalog.counts().vectors > 5:
        settle_all(catalog)
    for _ in range(10):
        catalog.compact()
    assert asked(catalog, "PRAGMA page_count") < before / 2
    catalog.check_copy()
    catalog.close()
    assert catalog.path.stat().st_size < before / 2 * 8192


def test_whoever_reads_does_not_hold_up_the_tidying(catalog: Catalog) -> None:
    rewrite(catalog, 0, range(3))
    begun, done = threading.Event(), threading.Event()

    def read() -> None:
        with catalog.snapshot():
            catalog.counts()
            begun.set()
            done.wait(30)

    reader = threading.Thread(target=read)
    reader.start()
    begun.wait()
    for state in range(1, 4):
        rewrite(catalog, state)
    done.set()
    reader.join()
    catalog.compact()
    assert catalog.path.with_name("catalog.sqlite3-wal").stat().st_size <= 1 << 18


def test_a_copy_is_made_while_others_read_and_write(catalog: Catalog, tmp_path: Path) -> None:
    rewrite(catalog, 0)
    with catalog.snapshot():
        before = catalog.counts()
        catalog.put_pages([(page("more", "one"), [vector_id("one")])])
        assert catalog.counts() == before
    catalog.remove_pages(["more"])
    catalog.copy_to(tmp_path / "copy.sqlite3")
    catalog.remove_pages(["p1"])
    copy = Catalog(tmp_path / "copy.sqlite3")
    assert copy.counts() == before
    copy.check_copy()
    rewrite(copy, 1)
    copy.check_copy()


def test_a_file_is_counted_by_itself_and_described_to_chromadb(catalog: Catalog) -> None:
    put(catalog, page("house", "one"))
    chunk = Chunk("two", 0, 0, "S", ("S",), ("S",), "page=4", 1, 2)
    put(catalog, replace(page("house/Lease.pdf"), chunks=(chunk,), kind=FileKind.PDF))
    assert (catalog.counts().pages, catalog.counts().files) == (1, 1)
    described = {TEXTS[entry.id]: entry.metadata or {} for entry in catalog.outbox.upserts(10)}
    assert [described["two"][name] for name in ("kind", "attachment", "page_number")] == ["pdf", "Lease.pdf", 4]
    assert described["two"]["url"] == "/house/Lease.pdf#page=4"
    assert "kind" not in described["one"]
    catalog.remove_pages(["house/Lease.pdf"])
    assert catalog.counts().files == 0
