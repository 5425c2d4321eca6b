"""Text analysis: words and stems for the keyword index, MinHash for near-duplicates.

Import `minhash` by its own name: it needs NumPy, which a wiki worker does not load.
"""

from otterwiki_semantic.content.analysis.languages import detect_language, function_words, language_code
from otterwiki_semantic.content.analysis.tokenizer import (
    ANALYSIS_VERSION,
    UNSPACED,
    NamePart,
    Word,
    WordMatcher,
    fold,
    indexed_text,
    name_key,
    name_parts,
    name_words,
    spelled_words,
    stem,
    stem_beginnings,
    words,
)
from otterwiki_semantic.content.sentences import ANNOUNCING, QUESTION_MARKS, UNFINISHED, ends_sentence, sentence_ranges
