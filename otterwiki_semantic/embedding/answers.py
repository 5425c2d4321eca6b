"""What a model answers, checked before it is used: as many vectors as texts, of numbers, made unit length."""

from __future__ import annotations

from typing import Any

import numpy as np

from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.errors import ModelError


def unit_vectors(answer: Any, count: int, model: str) -> Matrix:
    """Give an answer's vectors (count x dimension), of unit length. Errors: `ModelError`: it is not what was asked for."""
    if not isinstance(answer, list | tuple | np.ndarray):
        raise ModelError(f"{model} answered no list of vectors, but {_kind(answer)}")
    if len(answer) != count:
        raise ModelError(f"{model} answered {len(answer)} vectors for {count} texts")
    rows = [_numbers(row, number, model) for number, row in enumerate(answer)]
    sizes = sorted({len(row) for row in rows})
    if len(sizes) > 1:
        raise ModelError(f"{model} answered vectors of different length, {sizes[0]} to {sizes[-1]} numbers")
    matrix = np.array(rows, dtype=np.float64).reshape(count, sizes[0] if sizes else 0)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise ModelError(f"{model} answered a vector with numbers that are none (NaN or infinite)")
    if not lengths.all():
        raise ModelError(f"{model} answered a vector of zeros only")
    unit: Matrix = (matrix / lengths).astype(np.float32)
    return unit


def _numbers(row: Any, number: int, model: str) -> Any:
    """Give a row as an array of numbers; text that looks like numbers is none."""
    try:
        values = np.asarray(row)
    except ValueError:
        values = np.empty(0)
    if values.ndim != 1 or not values.size or values.dtype.kind not in "fiu":
        what = _kind(row) if not isinstance(row, list | np.ndarray) else "a list of something else"
        raise ModelError(f"{model} answered as vector {number + 1} no list of numbers, but {what}")
    return values


def _kind(value: Any) -> str:
    return {"str": "text", "dict": "an object", "NoneType": "nothing"}.get(type(value).__name__, type(value).__name__)
