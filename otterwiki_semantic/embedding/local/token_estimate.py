"""How many word pieces a text has for a model whose tokenizer is elsewhere: at least about as many as it will count."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from otterwiki_semantic.embedding.local.bundled import BUNDLED_MODEL, TOKENIZER

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = 2
_BYTES_PER_TOKEN = 4


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """Give the word pieces that the bundled tokenizer makes of each text, or a quarter of its bytes where that is more."""
    encodings = _tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)
    return [max(len(encoding.ids), _by_size(text)) for text, encoding in zip(texts, encodings, strict=True)]


def _by_size(text: str) -> int:
    return -(-len(text.encode("utf-8", errors="replace")) // _BYTES_PER_TOKEN)


@cache
def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(BUNDLED_MODEL / TOKENIZER))
