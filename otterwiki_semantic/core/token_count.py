"""An estimate of a text's tokens, for an unknown language model."""

from __future__ import annotations

import math

_ASCII_PER_TOKEN, _OTHER_BYTES_PER_TOKEN = 4, 3


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text: one per 4 ASCII characters, one per 3 UTF-8 bytes of anything else. Models differ."""
    plain = len(text.encode("ascii", "ignore"))
    other = len(text.encode("utf-8", "surrogatepass")) - plain
    return math.ceil(plain / _ASCII_PER_TOKEN + other / _OTHER_BYTES_PER_TOKEN)
