"""The vector of a passage: its text's, drawn a little towards its heading path's.

A model of this size reads a passage of 150 words as a blend of all it says, and a question is often as short as a heading. The
weighted sum of the two vectors, made unit length again, keeps both in one vector and one cosine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from otterwiki_semantic.content.chunking import Profile, profile_named
from otterwiki_semantic.core.records import Chunk
from otterwiki_semantic.embedding.base import Embedder, Matrix

RECIPE = 1
"""Raised with every change of how a passage's vector is made of the model's."""


def vector_fingerprint(embedder: Embedder, heading_weight: float) -> str:
    """Tells vectors of passages apart: under one fingerprint the same passage always gets the same vector."""
    return f"{embedder.fingerprint}/{RECIPE}/{heading_weight}"


def profile_for(embedder: Embedder, chunks: str) -> Profile:
    """Give the chunk profile of this name that leaves room for what the model wants beside a passage's text."""
    return profile_named(chunks, embedder.window - embedder.overhead)


def vector_id(text: str) -> str:
    """Give the id of the vector of a text: a hash of all that is embedded, so that the same text is embedded once."""
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=16).hexdigest()


def embed_passages(embedder: Embedder, chunks: Sequence[Chunk], heading_weight: float) -> Matrix:
    """Give the unit vectors of chunks (len(chunks) x dimension); a heading path that several share is embedded once."""
    trails = [_trail(chunk) for chunk in chunks]
    distinct = [trail for trail in dict.fromkeys(trails) if trail]
    vectors = embedder.embed([*(chunk.text for chunk in chunks), *distinct])
    texts, by_trail = vectors[: len(chunks)], dict(zip(distinct, vectors[len(chunks) :], strict=True))
    headings = np.stack([by_trail.get(trail, text) for trail, text in zip(trails, texts, strict=True)])
    mixed = (1 - heading_weight) * texts + heading_weight * headings
    unit: Matrix = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return unit


def _trail(chunk: Chunk) -> str:
    """Give the heading path without the brackets of the chunk's prefix."""
    return chunk.text[: chunk.prefix_length].strip(" []")
