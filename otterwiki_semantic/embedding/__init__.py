"""What the index asks of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.relevance import Calibration

Matrix = npt.NDArray[np.float32]
"""Vectors, one a row: float32, number of texts x dimension, each of unit length. A single vector is one row of it."""


class Embedder(Protocol):
    """A model that turns texts into unit vectors; safe to call from several threads."""

    @property
    def name(self) -> str:
        """The model's name as shown to people."""
        ...

    @property
    def fingerprint(self) -> str:
        """Tells models apart: texts embedded under one fingerprint always get the same vectors."""
        ...

    @property
    def calibration(self) -> Calibration:
        """Tells from how near a passage is whether it is about the question."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Give the vectors of texts, for the index; at low priority."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Give the vectors of queries, for a person who waits."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Give the number of word pieces of each text, without the special ones."""
        ...
