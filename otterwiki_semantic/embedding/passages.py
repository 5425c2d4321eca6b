"""The vector of a chunk: that of its text, moved a little towards that of its heading path.

A model of this size reads a passage of 150 words as a blend of everything in it, and a query is often as short as a heading.
The weighted sum of the two vectors, normalised again, keeps both in one vector and one cosine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from otterwiki_semantic.content.chunking import Profile, profile_named
from otterwiki_semantic.core.records import Chunk, StoredChunk
from otterwiki_semantic.embedding.base import Embedder, Matrix

WORDS_ONLY = "-"
"""What the ids of chunks that are never embedded begin with, and no vector's does."""
RECIPE = 1
"""Raised whenever chunks' vectors are computed differently from the model's."""


def vector_fingerprint(embedder: Embedder, heading_weight: float) -> str:
    """Return what identifies vectors of chunks: under one fingerprint the same chunk always gets the same vector."""
    return f"{embedder.fingerprint}/{RECIPE}/{heading_weight}"


def profile_for(embedder: Embedder, chunks: str) -> Profile:
    """Return the chunk profile of this name, for the part of the context window that is left for a chunk's text."""
    return profile_named(chunks, embedder.window - embedder.overhead)


def vector_id(text: str) -> str:
    """Return the id of a text's vector: a hash of all that is embedded, so that equal texts share one vector."""
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=16).hexdigest()


def words_only_id(text: str) -> str:
    """Return what a chunk has in place of a vector's id if it is never embedded: no vector has this id."""
    return f"{WORDS_ONLY}{vector_id(text)}"


def heading_path(chunk: Chunk | StoredChunk) -> str:
    """Return a chunk's heading path as it is embedded beside the chunk's text; empty if it has none."""
    return chunk.text[: chunk.prefix_length].strip(" []")


def embed_passages(embedder: Embedder, chunks: Sequence[Chunk | StoredChunk], heading_weight: float) -> Matrix:
    """Return the unit vectors of chunks (len(chunks) x dimension); a heading path that several share is embedded once."""
    paths = [heading_path(chunk) for chunk in chunks]
    distinct = [path for path in dict.fromkeys(paths) if path]
    vectors = embedder.embed([*(chunk.text for chunk in chunks), *distinct])
    texts, by_path = vectors[: len(chunks)], dict(zip(distinct, vectors[len(chunks) :], strict=True))
    headings = np.stack([by_path.get(path, text) for path, text in zip(paths, texts, strict=True)])
    mixed = (1 - heading_weight) * texts + heading_weight * headings
    unit: Matrix = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return unit
