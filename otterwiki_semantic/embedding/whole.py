"""The vector of a text that is longer than a model reads: the mean of its parts', so that no word of it is cut off silently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.errors import ModelError


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
