"""Vectors, and a store for them without ChromaDB."""

from __future__ import annotations

import numpy as np

from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore
from otterwiki_semantic.storage.vector_store import StoredVector
from tests.support.light_parts import open_in_memory


class MemoryStore(EmbeddedChromaStore):
    """A store that compares all vectors with each other."""

    _open = open_in_memory


def unit_rows(count: int) -> Matrix:
    rows = np.random.default_rng(7).normal(size=(count, 384)).astype(np.float32)
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def stored(rows: Matrix) -> list[StoredVector]:
    return [StoredVector(f"v{i}", row) for i, row in enumerate(rows)]
