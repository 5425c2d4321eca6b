"""Vectors of chunks: their identity and computation, and the check and pooling of a model's answers.

The vector of a chunk is the vector of its text, moved slightly towards the vector of its heading path. A model of this size
reads a passage of 150 words as a blend of everything in it, and a query is often as short as a heading. The weighted sum of the
two vectors, normalised again, needs only one vector and one cosine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from otterwiki_semantic.content.chunking import Profile, profile_named
from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.records import Chunk, StoredChunk
from otterwiki_semantic.embedding.base import Embedder, Matrix

WORDS_ONLY = "-"
"""The first character of the ids of chunks that are never embedded. No vector's id begins with it."""
RECIPE = 1
"""Increased when chunk vectors are computed from the model's vectors in a different way."""


def embed_long_texts(texts: Sequence[str], fits: Callable[[str], bool], embed: Callable[[Sequence[str]], Matrix]) -> Matrix:
    """Return the unit vectors of texts; a text that does not fit gets the mean vector of its parts."""
    split = [_split_to_fit(text, fits) for text in texts]
    ends = np.cumsum([0, *map(len, split)])
    vectors = embed([part for parts in split for part in parts])
    if len(vectors) == len(texts):
        return vectors
    return np.concatenate([mean_vector(parts, vectors[i:j]) for parts, (i, j) in zip(split, pairwise(ends), strict=True)])


def _split_to_fit(text: str, fits: Callable[[str], bool]) -> list[str]:
    if fits(text):
        return [text]
    first, second = split_in_half(text)
    return [*_split_to_fit(first, fits), *_split_to_fit(second, fits)]


def split_in_half(text: str) -> tuple[str, str]:
    """Split a text in half, between words if there is a space near its middle. Errors: `ModelError`."""
    middle = len(text) // 2
    if not text[:middle].strip() or not text[middle:].strip():
        raise ModelError(
            f"the model refuses a text of only {len(text)} characters as too long: choose a model with a larger context window"
        )
    for distance in range(middle // 2):
        for place in (middle - distance, middle + distance):
            if text[place].isspace():
                return text[:place], text[place:]
    return text[:middle], text[middle:]


def mean_vector(parts: Sequence[str], vectors: Matrix) -> Matrix:
    """Return one unit vector (1 x dimension) for the parts of a text: their mean, weighted by length."""
    if len(vectors) == 1:
        return vectors
    weights = np.array([len(part) for part in parts], dtype=np.float64)
    mean = weights @ vectors / weights.sum()
    length = np.linalg.norm(mean)
    unit: Matrix = (mean / length if length else vectors[0]).astype(np.float32)[np.newaxis]
    return unit


def unit_vectors(answer: Any, count: int, model: str) -> Matrix:
    """Convert a model's answer to unit vectors (count x dimension). Errors: `ModelError` if the answer is anything else."""
    try:
        found = np.asarray(answer)
    except ValueError:
        raise ModelError(f"{model} answered vectors of different length, or something else than lists of numbers") from None
    if found.ndim != 2 or found.dtype.kind not in "fiu" or not found.size:  # refuse text that looks like numbers
        raise ModelError(f"{model} answered no list of vectors, each of which is a list of numbers")
    if len(found) != count:
        raise ModelError(f"{model} answered {len(found)} vectors for {count} texts")
    matrix = found.astype(np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise ModelError(f"{model} answered a vector with invalid numbers (NaN or infinite)")
    if not lengths.all():
        raise ModelError(f"{model} answered a vector of zeros only")
    unit: Matrix = (matrix / lengths).astype(np.float32)
    return unit


def vector_fingerprint(embedder: Embedder, heading_weight: float) -> str:
    """Return the identity of chunk vectors: under one fingerprint the same chunk always gets the same vector."""
    return f"{embedder.fingerprint}/{RECIPE}/{heading_weight}"


def profile_for(embedder: Embedder, chunks: str) -> Profile:
    """Return the chunk profile with this name, for the part of the context window that is left for a chunk's text."""
    return profile_named(chunks, embedder.window - embedder.overhead)


def vector_id(text: str) -> str:
    """Return the id of a text's vector: a hash of everything that is embedded, so that equal texts share a vector."""
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=16).hexdigest()


def words_only_id(text: str) -> str:
    """Return the id for a chunk that is never embedded. No vector has this id."""
    return f"{WORDS_ONLY}{vector_id(text)}"


def is_words_only(vector: str) -> bool:
    """Whether an id is that of a chunk that is never embedded."""
    return vector.startswith(WORDS_ONLY)


def heading_path(chunk: Chunk | StoredChunk) -> str:
    """Return a chunk's heading path as it is embedded alongside the chunk's text; empty if it has none."""
    return chunk.text[: chunk.prefix_length].strip(" []")


def embed_passages(embedder: Embedder, chunks: Sequence[Chunk | StoredChunk], heading_weight: float) -> Matrix:
    """Return the unit vectors of chunks (len(chunks) x dimension); embeds a shared heading path once."""
    paths = [heading_path(chunk) for chunk in chunks]
    distinct = [path for path in dict.fromkeys(paths) if path]
    vectors = embedder.embed([*(chunk.text for chunk in chunks), *distinct])
    texts, by_path = vectors[: len(chunks)], dict(zip(distinct, vectors[len(chunks) :], strict=True))
    headings = np.stack([by_path.get(path, text) for path, text in zip(paths, texts, strict=True)])
    mixed = (1 - heading_weight) * texts + heading_weight * headings
    unit: Matrix = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return unit
