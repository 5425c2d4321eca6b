from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from otterwiki_semantic.catalog import StoredVector
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.errors import VectorStoreError
from otterwiki_semantic.vectors import ChromaVectors


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[ChromaVectors]:
    store = ChromaVectors(tmp_path / "chroma", "otterwiki-test")
    yield store
    store.close()


def unit_rows(count: int) -> Matrix:
    rows = np.random.default_rng(7).normal(size=(count, 384)).astype(np.float32)
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def test_the_nearest_vectors_come_first_with_their_cosine_distance(vectors: ChromaVectors) -> None:
    rows = unit_rows(300)
    vectors.upsert([StoredVector(f"v{i}", row, "page") for i, row in enumerate(rows)])
    found = vectors.query(rows[5], 10)
    exact = 1 - rows @ rows[5]
    assert list(found) == [f"v{i}" for i in np.argsort(exact)[:10]]
    assert np.allclose(list(found.values()), np.sort(exact)[:10], atol=1e-5)


def test_fewer_vectors_than_asked_for_are_all_there_is(vectors: ChromaVectors) -> None:
    assert vectors.query(unit_rows(1)[0], 10) == {}
    vectors.upsert([StoredVector("only", unit_rows(1)[0], "page")])
    assert list(vectors.query(unit_rows(1)[0], 10)) == ["only"]


def test_an_upsert_replaces_and_a_delete_removes(vectors: ChromaVectors) -> None:
    rows = unit_rows(3)
    vectors.upsert([StoredVector(name, row, "page") for name, row in zip("abc", rows, strict=True)])
    vectors.upsert([StoredVector("a", rows[1], "other")])
    vectors.delete(["c", "never there"])
    assert vectors.count() == 2
    found = vectors.query(rows[1], 2)
    assert sorted(found) == ["a", "b"]
    assert max(found.values()) < 1e-5


def test_vectors_outlive_the_process_that_wrote_them(vectors: ChromaVectors) -> None:
    row = unit_rows(1)[0]
    vectors.upsert([StoredVector("a", row, "page")])
    vectors.close()
    again = ChromaVectors(vectors.directory, vectors.name)
    assert list(again.query(row, 1)) == ["a"]
    again.close()


def test_a_damaged_database_is_an_error_of_ours(vectors: ChromaVectors) -> None:
    vectors.directory.mkdir()
    (vectors.directory / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
    with pytest.raises(VectorStoreError, match="ChromaDB could not"):
        vectors.count()


def test_a_destroyed_store_leaves_nothing(vectors: ChromaVectors) -> None:
    vectors.upsert([StoredVector("a", unit_rows(1)[0], "page")])
    vectors.destroy()
    assert not vectors.directory.exists()
