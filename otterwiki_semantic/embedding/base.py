"""What the index requires of an embedding model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
"""Unit vectors as rows: float32, number of texts x dimension. A single vector is one row."""


# ONNX Runtime 1.29 and later would report this machine and the model to its maker; it reads this variable when it loads.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


class Embedder(Protocol):
    """A model that embeds texts as unit vectors; safe to call from several threads.

    Creating one contacts no server. Methods that use the model raise `ModelUnreachableError` if a later call may succeed, and
    `ModelError` if somebody has to fix something first.
    """

    name: str
    is_calibrated: bool
    """Whether the relevance thresholds were fitted for this model; if not, its similarities are rescaled for each wiki."""
    asks_server: bool
    """Whether a server computes the vectors, which takes time but no CPU of this machine."""

    @property
    def device(self) -> str:
        """The device in use: `cpu`, `cuda` or another PyTorch device; empty for a server or an unopened model."""

    @property
    def fingerprint(self) -> str:
        """The identity of the model: under one fingerprint the same text always gets the same vector."""

    @property
    def dimension(self) -> int:
        """The length of a vector; 0 while it is unknown."""

    @property
    def window(self) -> int:
        """The context window: tokens of the longest text, including special ones."""

    @property
    def overhead(self) -> int:
        """Tokens of the context window that every passage uses in addition to its text: special ones and the prompt."""

    def prepare(self) -> None:
        """Check that the model is available, and find out what is unknown about it; may contact its server."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of passages for the index; runs at low priority."""

    def embed_queries(self, texts: Sequence[str], *, interactive: bool = True) -> Matrix:
        """Return the vectors of queries. `interactive=False` uses the longer timeouts of the index."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special ones; contacts no server."""

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each passage as input, with special ones and prompt; contacts no server."""
