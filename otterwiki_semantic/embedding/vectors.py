"""The vector of a text that is longer than a model reads: the mean of its parts', so that no word of it is cut off silently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.embedding.base import Matrix


def halves(text: str) -> tuple[str, str]:
    """Give a text's two halves, parted between words where there is a space near its middle. Errors: `ModelError`."""
    middle = len(text) // 2
    if not text[:middle].strip() or not text[middle:].strip():
        raise ModelError(
            f"the model refuses a text of only {len(text)} characters as too long: choose a model with a larger window"
        )
    for distance in range(middle // 2):
        for place in (middle - distance, middle + distance):
            if text[place].isspace():
                return text[:place], text[place:]
    return text[:middle], text[middle:]


def parts(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Give a text in as many halves of halves as it takes for each to fit."""
    if fits(text):
        return [text]
    first, second = halves(text)
    return [*parts(first, fits), *parts(second, fits)]


def joined(texts: Sequence[str], vectors: Matrix) -> Matrix:
    """Give one unit vector (1 x dimension) for all the parts of a text: their mean, weighted by their length."""
    if len(vectors) == 1:
        return vectors
    weights = np.array([len(text) for text in texts], dtype=np.float64)
    mean = weights @ vectors / weights.sum()
    length = np.linalg.norm(mean)
    unit: Matrix = (mean / length if length else vectors[0]).astype(np.float32)[np.newaxis]
    return unit


def embed_whole(texts: Sequence[str], fits: Callable[[str], bool], embed: Callable[[Sequence[str]], Matrix]) -> Matrix:
    """Give the unit vectors of texts (len(texts) x dimension), of which those that do not fit are embedded in parts."""
    divided = [parts(text, fits) for text in texts]
    ends = np.cumsum([0, *map(len, divided)])
    vectors = embed([part for pieces in divided for part in pieces])
    if len(vectors) == len(texts):
        return vectors
    return np.concatenate([joined(pieces, vectors[i:j]) for pieces, (i, j) in zip(divided, pairwise(ends), strict=True)])


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
