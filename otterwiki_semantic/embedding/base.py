"""What the index asks of an embedding model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.embedding.calibration import Calibration

Matrix = npt.NDArray[np.float32]
"""Vectors, one a row: float32, number of texts x dimension, each of unit length. A single vector is one row of it."""


# ONNX Runtime, from 1.29 on, would tell its maker of this machine and the model; it reads this when it is loaded.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


class Embedder(Protocol):
    """A model that turns texts into unit vectors; safe to call from several threads.

    Making one asks nobody anything. What is known of a model on a server only once it was asked (dimension, window) is
    remembered in the data directory, so that an index can be opened while the server is down. Errors of every method that asks
    the model: `ModelUnreachableError` when it may succeed later, any other `ModelError` when it will not by itself.
    """

    @property
    def name(self) -> str:
        """The model's name as shown to people."""
        ...

    @property
    def fingerprint(self) -> str:
        """Tells models apart: texts embedded under one fingerprint always get the same vectors.

        It changes when the model is found to be another one than it was taken for; the index is then built again.
        """
        ...

    @property
    def calibration(self) -> Calibration:
        """Tells from how near a passage is whether it is about the question."""
        ...

    @property
    def is_calibrated(self) -> bool:
        """Whether that was fitted for this model; if not, its similarities are brought to a known scale with each wiki."""
        ...

    @property
    def asks_server(self) -> bool:
        """Whether vectors come from a server, and so take time but no processor of this machine."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 while it is not known."""
        ...

    @property
    def window(self) -> int:
        """The most word pieces that the model takes of one text, special ones included."""
        ...

    @property
    def overhead(self) -> int:
        """The word pieces of the window that every passage takes besides its text: special ones, and the prompt."""
        ...

    def prepare(self) -> None:
        """See that the model is there and what it is, as far as that is not known; may ask its server."""
        ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Give the vectors of texts, for the index; at low priority."""
        ...

    def embed_queries(self, texts: Sequence[str], *, at_leisure: bool = False) -> Matrix:
        """Give the vectors of queries, for a person who waits; with the patience for passages if none does (`at_leisure`)."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Give the number of word pieces of each text, without the special ones; asks no server."""
        ...

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        """Give the number of word pieces that the model is given for each text, special ones included; asks no server."""
        ...
