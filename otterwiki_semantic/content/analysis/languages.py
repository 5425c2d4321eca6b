"""The language of a text, and the function words of each language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain, islice

from otterwiki_semantic.content.analysis.tokenizer import fold, words
from otterwiki_semantic.core.languages import ENGLISH

_SAMPLE = 3_000
"""Words of a text to examine."""
_ENGLISH = (
    "a an and are as at be been by can could did do does for from had has have how i if in into is it its me my not of on",
    "or our should so that the their them then there these they this to was we were what when where which who whom whose",
    "why will with would you your",
)
_OTHER_NAMES = {"no": "nb"}


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language, with and without accents; empty for a language without a list."""
    if language == ENGLISH:
        return frozenset(word for line in _ENGLISH for word in line.split())
    from stop_words import LANGUAGE_MAPPING, get_stop_words

    code = _OTHER_NAMES.get(language, language)
    listed = get_stop_words(code) if code in LANGUAGE_MAPPING else ()
    return frozenset(form for word in listed for form in (word, fold(word)))


def detect_language(texts: Iterable[str], languages: Sequence[str]) -> str:
    """Return the language with the most function words in the texts; the first of `languages` if none is ahead of it."""
    if len(languages) == 1:
        return languages[0]
    found = (word.exact for text in texts for word in words(text))
    counts = Counter(chain.from_iterable(islice(found, _SAMPLE)))
    known = {language: function_words(language) for language in languages}
    return max(languages, key=lambda language: sum(counts[word] for word in known[language]))


def language_code(name: str | None, languages: Sequence[str]) -> str | None:
    """Return the language for a name such as ``de`` or ``de-AT`` if it is one of `languages`, else None."""
    code = (name or "").replace("_", "-").partition("-")[0].strip().lower()
    return code if code in languages else None
