"""Comparing rows of vectors, with float32 and int8."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.storage import vector_rows
from otterwiki_semantic.storage.vector_rows import Block, VectorRows, largest


def units(count: int, dimension: int = 384, seed: int = 1) -> Matrix:
    numbers = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    matrix: Matrix = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    return matrix


@given(count=st.integers(1, 300), values=st.lists(st.integers(-50, 50), min_size=1, max_size=2_000))
def test_the_largest_values_are_found(count: int, values: list[int]) -> None:
    array = np.array(values, dtype=np.float32)
    assert sorted(array[largest(array, count)].tolist()) == sorted(values)[-count:]


@pytest.mark.parametrize("dimension", [3, 64, 384, 1024])
def test_products_of_integers_are_exact(dimension: int) -> None:
    rows, query = (Block.of(units(count, dimension, seed), np.int8) for count, seed in ((1_000, 1), (1, 2)))
    exact = (rows.codes.astype(np.int64) @ query.codes[0].astype(np.int64)) * rows.scales * query.scales[0]
    assert rows.compare(query) == pytest.approx(exact, rel=1e-6)


def test_int8_is_near_to_the_cosine() -> None:
    matrix, query = units(5_000), units(1, seed=2)
    rows = VectorRows(np.int8).append(matrix, np.ones(5_000, dtype=np.bool_))
    assert rows.compare(query[0], np.arange(5_000)) == pytest.approx(matrix @ query[0], abs=0.004)
    assert rows.vectors(np.array([4_999, 0])) == pytest.approx(matrix[[4_999, 0]], abs=0.001)


@pytest.mark.parametrize(("dtype", "sizes"), [("float32", [64] * 15 + [40]), ("int8", [256] * 3 + [232])])
def test_any_rows_can_be_compared(dtype: str, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_rows, "BLOCK", 64)
    matrix, query = units(1_000, 16), units(1, 16, seed=2)
    rows = VectorRows(dtype)
    for start in range(0, 1_000, 150):
        part = matrix[start : start + 150]
        rows = rows.append(part, np.ones(len(part), dtype=np.bool_))
    assert [len(block.codes) for block in rows.blocks] == sizes
    everything = rows.compare(query[0], np.arange(1_000))
    for chosen in (np.arange(3), np.array([64]), np.array([0, 999]), np.arange(63, 300), np.arange(0, 1_000, 3), np.arange(0)):
        assert rows.compare(query[0], chosen) == pytest.approx(everything[chosen], abs=1e-6)
        assert rows.take(chosen).compare(query[0], np.arange(len(chosen))) == pytest.approx(everything[chosen], abs=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_vectors_of_another_dimension_are_damage(dtype: str) -> None:
    rows = VectorRows(dtype).append(units(3, 8), np.array([True, False, True, True]))
    with pytest.raises(CatalogCorruptError, match="odd sizes"):
        rows.append(units(1, 9), np.array([True]))
    with pytest.raises(CatalogCorruptError, match="odd sizes"):
        rows.fill(np.array([1]), units(1, 9))
