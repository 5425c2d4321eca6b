"""What text costs an agent, and text cut to a size."""

from __future__ import annotations

import math

DEFAULT_MAX_TOKENS = 1_500
LEAST_MAX_TOKENS, MOST_MAX_TOKENS = 100, 100_000
_ASCII_PER_TOKEN, _OTHER_BYTES_PER_TOKEN = 4, 3


def tokens(text: str) -> int:
    """Give about how many tokens a text is: one for 4 ASCII characters, one for 3 bytes (of UTF-8) of anything else.

    So an umlaut costs two thirds of a token, a Chinese character one, an emoji one and a third. Models divide differently;
    what counts is that longer is never cheaper, and that two texts together never cost more than each by itself.
    """
    plain = len(text) if text.isascii() else sum(character < "\x80" for character in text)
    other = 0 if plain == len(text) else len(text.encode("utf-8", "surrogatepass")) - plain
    return math.ceil(plain / _ASCII_PER_TOKEN + other / _OTHER_BYTES_PER_TOKEN)


def cut(text: str, size: int) -> str:
    """Give the beginning of a text, at most `size` characters, up to the end of a line, else of a word, else as it comes.

    A line's or word's end counts if it leaves at least half of what there is room for.
    """
    if len(text) <= size:
        return text
    room = text[: max(size, 0) + 1]
    for mark in ("\n", " "):
        end = room.rfind(mark)
        if end >= max(size, 1) / 2:
            return text[:end]
    return text[: max(size, 0)]
