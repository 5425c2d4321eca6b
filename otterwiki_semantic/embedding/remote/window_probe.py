"""How much of a text a model reads that does not tell: found by trying, with texts that differ only near their end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice

import numpy as np

from otterwiki_semantic.embedding.base import Matrix

_SIZES = (2048, 1024, 512, 256)
_READ = 0.75
_CUT = 0.9999
"""The cosine above which two vectors are taken to be of the same text."""
# Each of these words is one word piece for most tokenizers.
_BEGINNING = ("river", "stone", "garden", "winter", "letter", "bridge", "market", "candle", "forest", "window", "harbour")
_ENDS = (("engine", "voltage", "switch", "cable", "motor", "sensor"), ("apple", "bread", "honey", "butter", "onion", "pepper"))


def find_window(embed: Callable[[Sequence[str]], Matrix | None]) -> int:
    """Give the most word pieces that a model is known to read; `embed` gives None for texts that are refused as too long."""
    for words in _SIZES:
        vectors = embed(_pair(words))
        if vectors is not None and float(np.dot(*vectors)) <= _CUT:
            return int(words * _READ)
    return int(_SIZES[-1] * _READ / 2)


def _pair(words: int) -> list[str]:
    """Give two texts of as many words that agree for their first three quarters."""
    common = int(words * _READ)
    return [" ".join([*islice(cycle(_BEGINNING), common), *islice(cycle(end), words - common)]) for end in _ENDS]
