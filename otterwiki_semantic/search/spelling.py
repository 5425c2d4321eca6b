"""Spelling correction: replace a query word that is not in the wiki with the nearest one that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from otterwiki_semantic.content.analysis import Word, words
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

    An error is a missing, additional, wrong or transposed letter (Damerau, 1964). A word of at least five letters may have
    one error, of at least nine letters two. A wrong first letter, which is rare, counts as two. Common English words,
    phrases, exclusions, identifiers and the word that is still being typed are unchanged.
    """
    typed = list(_plain_words(text, is_draft=is_draft))
    stems = [_stems(text[start + word.start : start + word.end], languages) for start, word in typed]
    counts = keywords.frequencies([each for of_word in stems for each in of_word])
    corrections = []
    unknown = [
        (start, word)
        for (start, word), of_word in zip(typed, stems, strict=True)
        if not (any(counts[each] for each in of_word) or is_common_word(word.exact[0]))
    ]
    for start, word in reversed(unknown[:_MAX_CORRECTED]):
        spelled = word.exact[0]
        if nearest := _nearest(spelled, keywords.vocabulary):
            text = text[: start + word.start] + nearest + text[start + word.end :]
            corrections.append(Correction(spelled, nearest))
    return text, tuple(dict.fromkeys(reversed(corrections)))


def _stems(word: str, languages: Sequence[str]) -> list[str]:
    return [stem for language in languages for each in words(word, language) for stem in each.parts]


def _plain_words(text: str, *, is_draft: bool) -> Iterator[tuple[int, Word]]:
    """Yield the words that may be corrected, each with the offset to which its position is relative."""
    for start, part in free_text(text):
        for word in words(part):
            spelled = part[word.start : word.end]
            is_plain = spelled.isalpha() and len(word.exact) == 1 and not (spelled.isupper() or word.is_unigram)
            is_finished = not is_draft or start + word.end < len(text)
            if is_plain and is_finished and len(word.exact[0]) >= _ONE_ERROR:
                yield start, word


def _nearest(word: str, vocabulary: Vocabulary) -> str | None:
    """Return the wiki's word with the fewest errors. Ties go to the word on the most pages. None if no word is close enough."""
    may_have_two = len(word) >= _TWO_ERRORS
    errors = 1 + may_have_two
    known = vocabulary.beginning(word[0], len(word) - errors, len(word) + errors)
    found = extract(word, known, scorer=OSA.distance, score_cutoff=errors, limit=_MAX_NEAREST)
    distances = {each: distance for each, distance, _ in found}
    pages = vocabulary.pages(distances)
    if not pages and may_have_two:
        pages = vocabulary.pages(_with_another_beginning(word, vocabulary.first_letters(_MAX_LETTERS)))
    return min(pages, key=lambda each: (distances.get(each, 1), -pages[each], each), default=None)


def _with_another_beginning(word: str, letters: Iterable[str]) -> set[str]:
    """Return the candidates for a word whose first letter is wrong, missing, additional or transposed."""
    return {word[1:], word[1] + word[0] + word[2:], *(letter + rest for letter in letters for rest in (word, word[1:]))}
