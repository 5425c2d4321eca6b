"""Near-duplicates: texts with nearly the same words, compared exactly, or in bulk by MinHash signatures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from random import Random
from zlib import crc32

import numpy as np
import numpy.typing as npt

_SHINGLE = 3
_NEAR_DUPLICATE = 0.9
_MIN_WORDS = 30
"""Number of words from which a chunk is compared without its headings."""
SIGNATURE_SIZE = 8
MIN_SHARED = 4
"""Equal numbers in the signatures of near-duplicates: with 4 of 8, one pair in 2,000 is missed."""
_RANDOM = Random(1997)
_POSITION_FACTORS = np.array([_RANDOM.getrandbits(64) | 1 for _ in range(_SHINGLE)], dtype=np.uint64)
_PERMUTATION_FACTORS = np.array([_RANDOM.getrandbits(64) | 1 for _ in range(SIGNATURE_SIZE)], dtype=np.uint64)
_HIGH_BITS = np.uint64(32)

Signatures = npt.NDArray[np.uint32]
"""Signatures as rows: number of texts x 8."""


def minhash_signature(text: str) -> bytes:
    """Return the MinHash signature of stored words: their smallest shingle in each of 8 permutations (Broder, 1997)."""
    hashes = np.array([crc32(word.encode()) for word in text.split()] or [0], dtype=np.uint64)
    if len(hashes) < _SHINGLE:
        hashes = np.pad(hashes, (0, _SHINGLE - len(hashes)))
    count = len(hashes) - _SHINGLE + 1
    shingles = sum((hashes[start : start + count] * factor for start, factor in enumerate(_POSITION_FACTORS)), np.uint64(0))
    shingles ^= shingles >> _HIGH_BITS
    least: Signatures = ((shingles * _PERMUTATION_FACTORS[:, np.newaxis]) >> _HIGH_BITS).min(axis=1).astype(np.uint32)
    return least.tobytes()


def read_signatures(stored: Sequence[bytes]) -> Signatures:
    """Return stored signatures as an array. Errors: `ValueError` if one has another size."""
    return np.frombuffer(b"".join(stored), dtype=np.uint32).reshape(len(stored), SIGNATURE_SIZE)


def comparison_text(headings: str, body: str) -> str:
    """Return the stored words to compare a chunk by. A short text includes its headings, which can change its meaning."""
    return body if body.count(" ") >= _MIN_WORDS else f"{headings} {body}"


class ShingledText:
    """A text of stored words, for comparison with other texts."""

    def __init__(self, text: str) -> None:
        self._words = text.split()
        self._vocabulary = frozenset(self._words)

    def is_near_duplicate_of(self, other: ShingledText) -> bool:
        """Whether nine tenths of all shingles of the two texts are in both (Jaccard similarity; Broder, 1997)."""
        own, others = len(self._vocabulary), len(other._vocabulary)
        if own < _NEAR_DUPLICATE * others or others < _NEAR_DUPLICATE * own:
            return False
        if len(self._vocabulary & other._vocabulary) < _NEAR_DUPLICATE * max(own, others):
            return False  # fast, and correct for ordinary text: different words have different shingles
        common = len(self._shingles & other._shingles)
        return common >= _NEAR_DUPLICATE * (len(self._shingles) + len(other._shingles) - common)

    @cached_property
    def _shingles(self) -> frozenset[tuple[str, ...]]:
        if len(self._words) <= _SHINGLE:
            return frozenset([tuple(self._words)])
        return frozenset(zip(*(self._words[start:] for start in range(_SHINGLE)), strict=False))
