"""The tokens of a text for a language model, estimated: which model reads it is not known."""

from __future__ import annotations

import math

_ASCII_PER_TOKEN, _OTHER_BYTES_PER_TOKEN = 4, 3


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text: one per 4 ASCII characters, one per 3 UTF-8 bytes of anything else.

    An umlaut costs two thirds of a token, a Chinese character one. Models differ; what matters is that longer text never costs
    less, and that two texts together never cost more than both separately.
    """
    plain = len(text) if text.isascii() else sum(character < "\x80" for character in text)
    other = 0 if plain == len(text) else len(text.encode("utf-8", "surrogatepass")) - plain
    return math.ceil(plain / _ASCII_PER_TOKEN + other / _OTHER_BYTES_PER_TOKEN)
