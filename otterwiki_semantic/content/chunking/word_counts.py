"""Count the tokens of a text word by word, for BERT tokenizers, whose tokens never span spaces or line ends."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from otterwiki_semantic.content.word_cache import WordCache

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_ALPHANUMERIC = re.compile(r"[A-Za-z0-9]+")
_SPECIAL = re.compile(r"\[[A-Z]+\]")
"""``[SEP]`` and the like are single tokens."""


@dataclass(frozen=True, slots=True)
class WordTokenCounter:
    """A `TokenCounter` that can be pickled. A process reads the file on first use, and caches the counts of words."""

    tokenizer: Path
    bytes_per_token: int | None = None
    """Count at least one token per this many UTF-8 bytes, for models with a tokenizer elsewhere."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        counts = _words(self.tokenizer).counts
        found = [sum(map(counts.__getitem__, text.replace("\n", " ").split(" "))) for text in texts]
        if self.bytes_per_token is None:
            return found
        sizes = [len(text.encode("utf-8", errors="replace")) for text in texts]
        return [max(tokens, -(-size // self.bytes_per_token)) for tokens, size in zip(found, sizes, strict=True)]

    def has_token(self, word: str) -> bool:
        """Whether a word in lower case is a token by itself."""
        return _words(self.tokenizer).tokenizer.token_to_id(word) is not None


def word_counter_of(tokenizer: Path) -> WordTokenCounter | None:
    """Return the counter for a tokenizer file, or None unless it divides texts as BERT's tokenizer does."""
    try:
        content = json.loads(tokenizer.read_text(encoding="utf-8"))
        kinds = tuple((content[part] or {}).get("type") for part in ("normalizer", "pre_tokenizer", "model"))
        added = [token["content"] for token in content["added_tokens"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    is_of_bert = kinds == ("BertNormalizer", "BertPreTokenizer", "WordPiece") and all(map(_SPECIAL.fullmatch, added))
    return WordTokenCounter(tokenizer) if is_of_bert else None


class _Words:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._is_uncased = bool(tokenizer.normalizer and getattr(tokenizer.normalizer, "lowercase", False))
        self.counts = WordCache(self._count)

    def _count(self, word: str) -> int:
        if word.isascii() and word.isprintable() and not _SPECIAL.search(word):
            runs = _ALPHANUMERIC.findall(word)
            if runs != [word]:
                return sum(map(self.counts.__getitem__, runs)) + len(word) - sum(map(len, runs))  # each sign is a token
            if self.tokenizer.token_to_id(word.lower() if self._is_uncased else word) is not None:
                return 1
        return len(self.tokenizer.encode(word, add_special_tokens=False).ids)


@cache
def _words(path: Path) -> _Words:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    return _Words(tokenizer)
