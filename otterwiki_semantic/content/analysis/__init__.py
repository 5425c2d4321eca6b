"""Text analysis: words and stems for the keyword index, MinHash for near-duplicates.

Import `minhash` by its own name: it needs NumPy, which a wiki worker does not load.
"""

from otterwiki_semantic.content.analysis.languages import detect_language as detect_language
from otterwiki_semantic.content.analysis.languages import function_words as function_words
from otterwiki_semantic.content.analysis.languages import language_code as language_code
from otterwiki_semantic.content.analysis.sentences import ends_sentence as ends_sentence
from otterwiki_semantic.content.analysis.sentences import sentence_ranges as sentence_ranges
from otterwiki_semantic.content.analysis.tokenizer import ANALYSIS_VERSION as ANALYSIS_VERSION
from otterwiki_semantic.content.analysis.tokenizer import UNSPACED as UNSPACED
from otterwiki_semantic.content.analysis.tokenizer import NamePart as NamePart
from otterwiki_semantic.content.analysis.tokenizer import Word as Word
from otterwiki_semantic.content.analysis.tokenizer import WordMatcher as WordMatcher
from otterwiki_semantic.content.analysis.tokenizer import fold as fold
from otterwiki_semantic.content.analysis.tokenizer import indexed_text as indexed_text
from otterwiki_semantic.content.analysis.tokenizer import name_key as name_key
from otterwiki_semantic.content.analysis.tokenizer import name_parts as name_parts
from otterwiki_semantic.content.analysis.tokenizer import spelled_words as spelled_words
from otterwiki_semantic.content.analysis.tokenizer import stem as stem
from otterwiki_semantic.content.analysis.tokenizer import stem_beginnings as stem_beginnings
from otterwiki_semantic.content.analysis.tokenizer import words as words
