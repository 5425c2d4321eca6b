"""The length of a text: in tokens of the embedding model, in words, or in characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from otterwiki_semantic.core.chunk_profiles import SizeUnit
from otterwiki_semantic.core.records import Section

_WORD_CHARACTER = re.compile(r"\w")


class TokenCounter(Protocol):
    """Counts tokens as the embedding model does."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without the special tokens that a model adds at both ends."""


class ByteCounter:
    """Counts one token per UTF-8 byte: an upper bound for every tokenizer, used where a tokenizer fails."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.encode("utf-8", errors="surrogatepass")) for text in texts]


def count_words(text: str) -> int:
    """Return the number of words: runs of non-space characters with at least one letter or digit."""
    return len([None for word in text.split() if word[0].isalpha() or _WORD_CHARACTER.search(word)])


def text_size(text: str, unit: SizeUnit) -> int:
    """Return the size of a text."""
    return count_words(text) if unit is SizeUnit.WORDS else len(text)


def section_size(section: Section, unit: SizeUnit) -> int:
    """Return the size of the text below a section's heading."""
    return sum(text_size(line.text, unit) for block in section.blocks for line in block.lines)
