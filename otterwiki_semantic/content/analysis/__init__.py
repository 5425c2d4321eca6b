"""Text analysis: words and stems for the keyword index, trigrams for misspelled names, MinHash for near-duplicates.

`minhash` is imported by its own name: it needs NumPy, which a wiki worker does without.
"""

from otterwiki_semantic.content.analysis.tokenizer import (
    ANALYSIS_VERSION,
    UNSPACED,
    Word,
    WordMatcher,
    fold,
    indexed_text,
    name_key,
    stem,
    words,
)

__all__ = ["ANALYSIS_VERSION", "UNSPACED", "Word", "WordMatcher", "fold", "indexed_text", "name_key", "stem", "words"]
