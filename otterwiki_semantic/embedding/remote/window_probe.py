"""Finds the context window of a model whose server does not report it, with texts that differ only near their end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice

import numpy as np

from otterwiki_semantic.embedding.base import Matrix

_SIZES = (2048, 1024, 512, 256)
"""Words of the texts that are tried, each of which is one token for most tokenizers."""
_COMMON = 0.75
"""The share of a text's words that both texts begin with."""
_SAME = 0.9999
"""The cosine from which on the model read the same of both texts: it cut off the end in which they differ."""
_BEGINNING = ("river", "stone", "garden", "winter", "letter", "bridge", "market", "candle", "forest", "window", "harbour")
_ENDS = (("engine", "voltage", "switch", "cable", "motor", "sensor"), ("apple", "bread", "honey", "butter", "onion", "pepper"))


def find_window(embed: Callable[[Sequence[str]], Matrix | None]) -> int:
    """Return how many tokens the model reads at least; `embed` returns None for texts that are refused as too long."""
    for words in _SIZES:
        vectors = embed(_pair(words))
        if vectors is not None and float(np.dot(*vectors)) <= _SAME:
            return int(words * _COMMON)
    return int(_SIZES[-1] * _COMMON / 2)


def _pair(words: int) -> list[str]:
    common = int(words * _COMMON)
    return [" ".join([*islice(cycle(_BEGINNING), common), *islice(cycle(end), words - common)]) for end in _ENDS]
