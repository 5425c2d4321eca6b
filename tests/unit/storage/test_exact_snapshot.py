"""The file of vectors from which a start reads, and when it is not used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from otterwiki_semantic.embedding.vectors import vector_id
from otterwiki_semantic.storage import exact_index_cache
from otterwiki_semantic.storage.catalog import Catalog
from otterwiki_semantic.storage.vector_store import StoredVector
from tests.unit.storage.test_exact_index import put, unit

FILE = "exact_index.bin"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return the directory of a catalog with a snapshot."""
    return with_snapshot(tmp_path)


def with_snapshot(tmp_path: Path, vectors: str = "int8") -> Path:
    catalog = opened(tmp_path, vectors)
    fill(catalog)
    catalog.reader.exact_indexes.save()
    catalog.close()
    return tmp_path


def opened(place: Path, vectors: str = "int8") -> Catalog:
    return Catalog(place / "catalog.sqlite3", vectors)


def fill(catalog: Catalog) -> None:
    for page in range(8):
        put(catalog, f"page-{page}", [f"{page} {number}" for number in range(5)], embed=page != 5)


def answer(catalog: Catalog, question: str = "q", count: int = 12) -> list[tuple[int, str, str, int, float]]:
    with catalog.snapshot():
        found = catalog.reader.exact_index().nearest(unit(question), count)
    return [(*chunk, round(cosine, 5)) for chunk, cosine in found]


def without_snapshot(place: Path) -> list[tuple[int, str, str, int, float]]:
    """Return what a catalog answers that has no snapshot."""
    copy = place / "copy"
    copy.mkdir()
    catalog = opened(place)
    catalog.copy_to(copy / "catalog.sqlite3")
    catalog.close()
    with closing(opened(copy)) as other:
        return answer(other)


def reads_vectors(monkeypatch: pytest.MonkeyPatch, catalog: Catalog) -> int:
    """Return how many chunks are read from the catalog for an answer."""
    read, numbers = exact_index_cache._read_after, []

    def counted(*arguments: object) -> object:
        for columns, matrix in read(*arguments):  # type: ignore[arg-type]
            numbers.append(len(columns.ids))
            yield columns, matrix

    monkeypatch.setattr(exact_index_cache, "_read_after", counted)
    answer(catalog)
    return sum(numbers)


def test_a_start_reads_nothing_but_the_snapshot(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = without_snapshot(place)
    assert (reads_vectors(monkeypatch, catalog := opened(place)), answer(catalog)) == (0, expected)


def test_a_start_reads_what_changed_since(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = opened(place)
    put(catalog, "page-1", ["another text"])
    catalog.remove_pages(["page-2"])
    catalog.vectors.add([StoredVector(vector_id("5 3"), unit("5 3"))])
    catalog.close()
    expected = without_snapshot(place)
    catalog = opened(place)
    assert reads_vectors(monkeypatch, catalog) == 1
    assert answer(catalog) == expected
    assert {path for _, _, path, _, _ in answer(catalog, count=99)} == {f"page-{page}" for page in (0, 1, 3, 4, 5, 6, 7)}


@pytest.mark.parametrize(
    ("before", "after", "chunks_read"),
    [("disk", "disk", 0), ("int8", "disk", 0), ("disk", "int8", 40), ("int8", "float32", 40)],
)
def test_another_format_reads_what_the_file_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, chunks_read: int
) -> None:
    with_snapshot(tmp_path, before)
    expected = without_snapshot(tmp_path)
    catalog = opened(tmp_path, after)
    assert reads_vectors(monkeypatch, catalog) == chunks_read
    assert answer(catalog) == expected


def test_what_is_filled_in_stays_in_memory(place: Path) -> None:
    before = (place / FILE).read_bytes()
    catalog = opened(place)
    answer(catalog)
    catalog.vectors.add([StoredVector(vector_id("5 3"), unit("5 3"))])
    assert answer(catalog, "5 3")[0][2:4] == ("page-5", 3)
    assert (place / FILE).read_bytes() == before


def flip_a_bit(file: Path, after: bytes, offset: int) -> None:
    content = bytearray(file.read_bytes())
    content[content.index(after) + offset] ^= 4
    file.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "cut off": lambda file: os.truncate(file, file.stat().st_size - 100),
    "empty": lambda file: file.write_bytes(b""),
    "a bit of the ids": lambda file: flip_a_bit(file, b"ids.npy", 200),
    "a bit of the codes": lambda file: flip_a_bit(file, b"codes 0.npy", 300),
    "other": lambda file: file.write_bytes(b"something else"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_not_used(place: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = without_snapshot(place)
    DAMAGE[damage](place / FILE)
    catalog = opened(place)
    assert reads_vectors(monkeypatch, catalog) == 40
    assert answer(catalog) == expected


def test_a_file_of_another_catalog_is_not_used(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    catalog = opened(other)
    for page in range(8):
        put(catalog, f"other-{page}", [f"other {page} {number}" for number in range(5)])
    catalog.reader.exact_indexes.save()
    catalog.close()
    expected = without_snapshot(other)
    shutil.copy(place / FILE, other / FILE)
    assert answer(opened(other)) == expected


def test_a_file_from_after_a_restored_backup_is_not_used(place: Path) -> None:
    """The catalog then goes on to the same revision with other pages."""
    catalog = opened(place)
    catalog.copy_to(place / "backup")
    for page in range(8):
        put(catalog, f"lost-{page}", [f"lost {page} {number}" for number in range(5)])
    answer(catalog)
    catalog.reader.exact_indexes.save()
    catalog.close()
    (place / "backup").replace(place / "catalog.sqlite3")
    catalog = opened(place)
    for page in range(8):
        put(catalog, f"new-{page}", [f"new {page} {number}" for number in range(5)])
    catalog.close()
    expected = without_snapshot(place)
    assert answer(opened(place)) == expected
    assert not any(path.startswith("lost") for _, _, path, _, _ in expected)


def test_it_is_written_again_when_much_is_new(place: Path) -> None:
    catalog = opened(place)
    first = (place / FILE).stat().st_ino
    answer(catalog)
    put(catalog, "page-8", ["a new text"])
    catalog.reader.exact_indexes.save()
    assert (place / FILE).stat().st_ino == first, "one of 41 chunks is new"
    put(catalog, "page-9", ["a second text", "a third"])
    catalog.reader.exact_indexes.save()
    assert (place / FILE).stat().st_ino != first
    assert not (place / "exact_index.new").exists()


def test_chunks_without_vectors_can_be_saved(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    put(catalog, "a", ["one", "two"], embed=False)
    catalog.reader.exact_indexes.save()
    catalog.close()
    catalog = opened(tmp_path)
    assert (answer(catalog), len(catalog.reader.exact_index())) == ([], 2)
    catalog.vectors.add([StoredVector(vector_id("two"), unit("two"))])
    assert [found[2:4] for found in answer(catalog)] == [("a", 1)]


def test_float32_has_no_file(tmp_path: Path) -> None:
    for vectors in ("float32", "auto"):
        catalog = Catalog(tmp_path / f"{vectors}.sqlite3", vectors)
        fill(catalog)
        catalog.reader.exact_indexes.save()
    assert not (tmp_path / FILE).exists()


def test_a_full_disk_is_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = opened(tmp_path)
    fill(catalog)
    expected = answer(catalog)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    catalog.reader.exact_indexes.save()
    assert {path.name for path in tmp_path.iterdir()} == {"catalog.sqlite3", "catalog.sqlite3-wal", "catalog.sqlite3-shm"}
    assert answer(catalog) == expected
