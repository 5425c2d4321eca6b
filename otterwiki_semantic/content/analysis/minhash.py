"""Whether two texts say nearly the same, and sketches that tell it of many at once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from zlib import crc32

import numpy as np
import numpy.typing as npt

_SHINGLE = 3
_NEARLY_THE_SAME = 0.9
_LONG_ENOUGH = 30
"""Words of a passage from which on its heading does not make it another one."""
SIGNATURE_SIZE = 8
MIN_SHARED = 4
"""Numbers of two sketches that agree where one text nearly repeats the other: with 4 of 8, one in 2,000 is missed."""
_NUMBERS = Random(1997)
_PLACES = np.array([_NUMBERS.getrandbits(64) | 1 for _ in range(_SHINGLE)], dtype=np.uint64)
_ORDERS = np.array([_NUMBERS.getrandbits(64) | 1 for _ in range(SIGNATURE_SIZE)], dtype=np.uint64)
_HIGH = np.uint64(32)

Signatures = npt.NDArray[np.uint32]
"""Sketches, one a row: number of texts x 8."""


def minhash_signature(text: str) -> bytes:
    """Give the sketch of a text of stored words: for each of 8 orders of all runs of three words, the first one (Broder, 1997).

    Two texts agree in as large a share of the numbers, on average, as they share of their runs.
    """
    found = np.array([crc32(word.encode()) for word in text.split()] or [0], dtype=np.uint64)
    found = np.pad(found, (0, max(0, _SHINGLE - len(found))))
    runs = sum(
        (found[place : len(found) - _SHINGLE + 1 + place] * factor for place, factor in enumerate(_PLACES)), np.uint64(0)
    )
    runs ^= runs >> _HIGH
    first: Signatures = ((runs * _ORDERS[:, np.newaxis]) >> _HIGH).min(axis=1).astype(np.uint32)
    return first.tobytes()


def comparison_text(headings: str, body: str) -> str:
    """Give the words by which passages are told apart: a few words say one thing here and another thing there."""
    return body if body.count(" ") >= _LONG_ENOUGH else f"{headings} {body}"


def read_signatures(stored: Sequence[bytes]) -> Signatures:
    """Give stored sketches; `ValueError` if one is none."""
    return np.frombuffer(b"".join(stored), dtype=np.uint32).reshape(len(stored), SIGNATURE_SIZE)


class ShingledText:
    """A text of stored words, to be compared with others."""

    def __init__(self, text: str) -> None:
        self._words = text.split()
        self._vocabulary = frozenset(self._words)
        self._runs: frozenset[tuple[str, ...]] | None = None

    def is_near_duplicate_of(self, other: ShingledText) -> bool:
        """Tell whether two texts share nine tenths of all their runs of three words (resemblance: Broder, 1997)."""
        own, others = len(self._vocabulary), len(other._vocabulary)
        if own < _NEARLY_THE_SAME * others or others < _NEARLY_THE_SAME * own:
            return False
        if len(self._vocabulary & other._vocabulary) < _NEARLY_THE_SAME * max(own, others):
            return False  # quick, and right for passages of ordinary text: other words make other runs
        one, two = self._shingles(), other._shingles()
        common = len(one & two)
        return common >= _NEARLY_THE_SAME * (len(one) + len(two) - common)

    def _shingles(self) -> frozenset[tuple[str, ...]]:
        if self._runs is None:
            found = self._words
            starts = range(max(1, len(found) - _SHINGLE + 1))
            self._runs = frozenset(tuple(found[start : start + _SHINGLE]) for start in starts)
        return self._runs
