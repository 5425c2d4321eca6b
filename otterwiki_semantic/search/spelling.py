"""Spelling correction: replace a query word that is not in the wiki with the nearest one that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from otterwiki_semantic.content.analysis import words
from otterwiki_semantic.core.records import Correction
from otterwiki_semantic.embedding import is_common_word
from otterwiki_semantic.search.query import free_text
from otterwiki_semantic.storage import KeywordIndex, Vocabulary

_ONE_ERROR, _TWO_ERRORS = 5, 9
"""The least letters of a word that may have one error, and two."""
_MAX_NEAREST = 50
_MAX_LETTERS = 64
_MAX_CORRECTED = 8
"""Unknown words of a query that are compared with the wiki's; text in another language has many."""


def corrected(
    text: str, keywords: KeywordIndex, languages: Sequence[str], *, is_draft: bool = False
) -> tuple[str, tuple[Correction, ...]]:
    """Return a query with its misspelled words corrected, and the corrections, in order.

    A word that is not in the wiki is replaced with the nearest one that is. An error is a missing, additional, wrong or
    transposed letter (Damerau, 1964). A word of at least five letters may have one error, of at least nine letters two. A wrong
    first letter, which is rare, counts as two. Common English words, phrases, exclusions, identifiers and the word that is
    still being typed are unchanged.
    """
    typed = list(_plain_words(text, is_draft=is_draft))
    stems = [
        [stem for language in languages for each in words(text[start : start + len(spelled)], language) for stem in each.parts]
        for start, spelled, _ in typed
    ]
    counts = keywords.frequencies([each for of_word in stems for each in of_word])
    corrections = []
    unknown = [
        each
        for each, of_word in zip(typed, stems, strict=True)
        if not (any(counts[stem] for stem in of_word) or is_common_word(each[2]))
    ]
    for start, spelled, key in reversed(unknown[:_MAX_CORRECTED]):
        if nearest := _nearest(key, keywords.vocabulary):
            text = text[:start] + nearest + text[start + len(spelled) :]
            corrections.append(Correction(key, nearest))
    return text, tuple(dict.fromkeys(reversed(corrections)))


def _plain_words(text: str, *, is_draft: bool) -> Iterator[tuple[int, str, str]]:
    """Yield the words that may be corrected: position, as typed, and folded."""
    for start, part in free_text(text):
        for word in words(part):
            spelled = part[word.start : word.end]
            is_plain = spelled.isalpha() and len(word.exact) == 1 and not (spelled.isupper() or word.is_unigram)
            is_finished = not is_draft or start + word.end < len(text)
            if is_plain and is_finished and len(word.exact[0]) >= _ONE_ERROR:
                yield start + word.start, spelled, word.exact[0]


def _nearest(word: str, vocabulary: Vocabulary) -> str | None:
    """Return the wiki's word with the fewest errors. Ties go to the word on the most pages. None if no word is close enough."""
    may_have_two = len(word) >= _TWO_ERRORS
    errors = 1 + may_have_two
    known = vocabulary.beginning(word[0], len(word) - errors, len(word) + errors)
    found = extract(word, known, scorer=OSA.distance, score_cutoff=errors, limit=_MAX_NEAREST)
    distances = {each: distance for each, distance, _ in found}
    pages = vocabulary.pages(distances)
    if not pages and may_have_two:  # the first letter may be wrong, missing, additional or transposed
        begun = (letter + rest for letter in vocabulary.first_letters(_MAX_LETTERS) for rest in (word, word[1:]))
        pages = vocabulary.pages({word[1:], word[1] + word[0] + word[2:], *begun})
    return min(pages, key=lambda each: (distances.get(each, 1), -pages[each], each), default=None)
