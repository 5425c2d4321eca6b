"""Divide text into words for the keyword index: folded and stemmed; identifiers in parts and whole.

Case, accents and compatibility forms are folded (NFKD, Unicode Standard Annex 15). `TargetWords`, ``max_chunks_per_page`` and
``10.0.0.5`` can be found by consecutive parts and as a whole, with any separators. Words are stemmed in their page's language
(Snowball; for English, the revised stemmer of Porter, 1980). Stemmers of other languages need accents, so accents are folded
after stemming, and the stem of the word without accents is stored as well. Scripts written without spaces become bigrams:
overlapping pairs of characters.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import accumulate, chain
from typing import NamedTuple

import regex
import Stemmer

from otterwiki_semantic.content.word_cache import WordCache
from otterwiki_semantic.core.languages import ENGLISH, SNOWBALL

ANALYSIS_VERSION = f"1/{version('PyStemmer')}"
"""The version of the stored words. A new value rebuilds indexes."""

_CACHED_WORDS = 20_000
_SHORTEST_SPELLED = 4
_CACHED_TEXTS, _LONGEST_CACHED_TEXT = 1_500, 5_000
"""Cached texts of recent searches, whose words take about 4 KB each."""
_NOT_PLAIN = ""
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc"
"""Scripts written without spaces, as part of a character class."""
_LETTER = r"[\p{L}\p{M}\p{N}_]"
_LANGUAGE = rf"[A-Za-z](?:\+\+|\#)(?!{_LETTER})"
"""``C++``, ``C#``: the signs are part of the name."""
_WORD = regex.compile(rf"(?<!{_LETTER}){_LANGUAGE}|{_LETTER}+(?:[-.'’]{_LETTER}+)*")
_ASCII_WORD = re.compile(r"\b[A-Za-z](?:\+\+|\#)(?!\w)|\w+(?:[-.']\w+)*", re.ASCII)
"""Matches the same as `_WORD` in ASCII text, in half the time."""
_AROUND_WORDS, _AROUND_ASCII_WORDS = regex.compile(f"({_WORD.pattern})"), re.compile(f"({_ASCII_WORD.pattern})", re.ASCII)
_UNSPACED_RUN = regex.compile(rf"([{UNSPACED}][{UNSPACED}\p{{M}}]*)")
_ALPHANUMERIC = regex.compile(r"[^\W_][\p{L}\p{M}\p{N}]*")
_NAME_PART = regex.compile(rf"(?<!{_LETTER}){_LANGUAGE}|{_ALPHANUMERIC.pattern}")
_ASCII_NAME_PART = re.compile(r"(?<!\w)[A-Za-z](?:\+\+|\#)(?!\w)|[A-Za-z0-9]+", re.ASCII)
"""Matches the same as `_NAME_PART` in ASCII text."""
_LETTERS = regex.compile(r"[\p{L}\p{M}]+")
_CAMEL_CASE = regex.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+[a-z]*")
_POSSESSIVE = regex.compile(r"['’]s$", regex.IGNORECASE)
_COMBINING = regex.compile(r"[\u0300-\u036f]")
_NO_DECOMPOSITION = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"})


_Analysis = tuple[tuple[str, ...], tuple[str, ...], str, tuple[str, ...]]


class Word(NamedTuple):
    """A word in a text; in scripts written without spaces, a bigram."""

    start: int
    end: int
    """The word's range in the text is `start` to before `end`."""
    parts: tuple[str, ...]
    """The parts as stored: one for each word of an identifier."""
    exact: tuple[str, ...]
    whole: str
    bare: tuple[str, ...] = ()
    """Stems of the parts and the whole as typed without accents, where they differ."""
    is_unigram: bool = False
    """Whether it is the last character of a run without spaces, stored once more for searches by a single character."""


def words(text: str, language: str = ENGLISH) -> Iterator[Word]:
    """Yield the words of a text in order."""
    for match in _ASCII_WORD.finditer(text) if text.isascii() else _WORD.finditer(text):
        spelled, start = match[0], match.start()
        yield from _word(spelled, start, language) if spelled.isascii() else _words_of_scripts(spelled, start, language)


def indexed_text(text: str, language: str = ENGLISH) -> str:
    """Return a text as the keyword index stores it: its words' parts in order, words with several parts whole, bare stems."""
    parts: list[str] = []
    wholes: list[str] = []
    bare: list[str] = []
    analyses = _analyses(language)
    for spelled in _spelled(text):
        if spelled.isascii():  # half the time of creating a `Word` for each
            found, _, whole, _ = analyses[spelled]
            parts += found
            if len(found) > 1:
                wholes.append(whole)
        else:
            for word in _words_of_scripts(spelled, 0, language):
                parts += word.parts
                bare += word.bare
                if len(word.parts) > 1:
                    wholes.append(word.whole)
    return " ".join((*parts, *wholes, *bare))


@lru_cache(_CACHED_WORDS)
def name_words(name: str, language: str) -> tuple[str, ...]:
    """Return the distinct words of a title, a heading or a path, as the keyword index stores them."""
    return tuple(dict.fromkeys(indexed_text(name, language).split()))


def spelled_words(*texts: str) -> set[str]:
    """Return the words of texts as spelled, folded, without numbers and words of fewer than four letters."""
    spellings, analyses = set(chain.from_iterable(map(_spelled, texts))), _analyses(ENGLISH)
    parts = set(chain.from_iterable(analyses[spelled][1] for spelled in spellings if spelled.isascii()))
    for spelled in spellings:
        if not spelled.isascii():
            parts.update(part for word in _words_of_scripts(spelled, 0, ENGLISH) for part in word.exact)
    return {part for part in parts if len(part) >= _SHORTEST_SPELLED and part.isalpha()}


def name_key(text: str) -> str:
    """Return a key that spellings of a name share: its folded letters and digits, or without any, everything but spaces."""
    if text.isascii():
        return "".join(_ASCII_NAME_PART.findall(text)).lower() or "".join(text.split()).lower()
    return "".join(fold(match[0]) for match in _NAME_PART.finditer(text)) or "".join(fold(text).split())


class NamePart(NamedTuple):
    """A word of a name as it may be typed; in scripts written without spaces, a whole run of characters."""

    start: int
    end: int
    """The range in the name is `start` to before `end`."""
    inner: tuple[int, ...]
    """Other positions in the part where typing may begin: words of an identifier, or every character of an unspaced script."""
    keys: tuple[str, ...]
    """The keys to look up: the folded part, or in scripts written without spaces its bigrams, or its single character."""
    beginnings: tuple[str, ...]
    """The texts that find it: a match begins with one of the `keys` that are looked up."""


def name_parts(name: str) -> Iterator[NamePart]:
    """Yield the words of a title, a heading or a path, in order."""
    if name.isascii():
        for match in _ASCII_NAME_PART.finditer(name):
            yield _name_part(match[0], match.start())
        return
    for found in _NAME_PART.finditer(name):
        start = found.start()
        for run in _UNSPACED_RUN.split(found[0]):
            if _UNSPACED_RUN.fullmatch(run):
                yield _unspaced_part(run, start)
            elif fold(run):
                yield _name_part(run, start)
            start += len(run)


def _name_part(spelled: str, start: int) -> NamePart:
    key = fold(spelled)
    inner = [match.start() for match in _CAMEL_CASE.finditer(spelled)][1:] if len(_split_camel_case(spelled)) > 1 else ()
    beginnings = (key, *(spelled[place:].lower() for place in inner))
    return NamePart(start, start + len(spelled), tuple(start + place for place in inner), (key,), beginnings)


def _unspaced_part(run: str, start: int) -> NamePart:
    found = list(_bigrams(run, start))
    bigrams = tuple(dict.fromkeys(word.whole for word in found))
    keys = tuple(dict.fromkeys(word.whole for word in found if not word.is_unigram)) or bigrams
    return NamePart(start, start + len(run), tuple(word.start for word in found[1:]), keys, bigrams)


def fold(text: str) -> str:
    """Return a text without case, accents and compatibility forms."""
    if text.isascii():
        return text.lower()
    bare = _COMBINING.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare).casefold().translate(_NO_DECOMPOSITION)


@lru_cache(_CACHED_WORDS)
def stem(word: str, language: str = ENGLISH) -> str:
    """Return the folded stem of a lower-case word in a language; foreign words change little. English words are folded."""
    if language == ENGLISH:
        return str(_stemmer(language).stemWord(word)) if word.isascii() and word.isalpha() else word
    return fold(_stemmer(language).stemWord(word)) if _LETTERS.fullmatch(word) else fold(word)


def stem_beginnings(stems: Iterable[str]) -> set[str]:
    """Return the first two letters of English words with these stems: mostly the stem's own, but *dying* has the stem *die*."""
    return {stem[0] + each for stem in stems for each in (stem[1:2], *("eiy" if not stem[1:] or stem.endswith("ie") else ""))}


@cache
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(SNOWBALL[language])


class WordMatcher:
    """Finds words in texts that satisfy a predicate on their parts and their whole, in any of some languages.

    With `beginnings`, only words match that have a part with one of these as its first two letters, folded.
    """

    def __init__(
        self,
        is_match: Callable[[Sequence[str], str], bool],
        beginnings: Iterable[str] | None = None,
        languages: Sequence[str] = (ENGLISH,),
    ) -> None:
        self._is_match = is_match
        self._beginnings = None if beginnings is None else {_NOT_PLAIN, *beginnings}
        self._languages = languages
        self._analyses = [_analyses(language) for language in languages]
        self._known: dict[str, bool | None] = {}

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the ranges of the matching words in a text, in order (start to before end)."""
        known, beginnings = self._known, self._beginnings
        begun, spellings, starts = _spellings(text) if len(text) <= _LONGEST_CACHED_TEXT else _spellings.__wrapped__(text)
        for place, each in enumerate(begun):
            if beginnings is not None and each not in beginnings:
                continue
            spelled, start = spellings[place], starts[place]
            if spelled not in known:
                known[spelled] = self._matches(spelled)
            is_match = known[spelled]
            if is_match:
                yield start, start + len(spelled)
            elif is_match is None:
                found = (word for each in self._languages for word in _words_of_scripts(spelled, start, each))
                matching = (word for word in found if self._is_match((*word.parts, *word.bare), word.whole))
                yield from sorted({(word.start, word.end) for word in matching})

    def _matches(self, spelled: str) -> bool | None:
        """Whether an ASCII word matches; None for a word with other characters, which may match in part."""
        if not spelled.isascii():
            return None
        found = (analyses[spelled] for analyses in self._analyses)
        return any(parts and self._is_match(parts + bare, whole) for parts, _, whole, bare in found)


@lru_cache(_CACHED_TEXTS)
def _spellings(text: str) -> tuple[tuple[str, ...], tuple[str, ...], array[int]]:
    """Return how the words of a text begin, the words as spelled, and the start of each."""
    parts = (_AROUND_ASCII_WORDS if text.isascii() else _AROUND_WORDS).split(text)  # faster than a match object for each
    spellings = tuple(map(sys.intern, parts[1::2]))
    starts = array("I", accumulate(map(len, parts[:-1])))[::2]
    return tuple(map(_beginning, spellings)), spellings, starts


def _beginning(spelled: str) -> str:
    """Return the first two letters of a plain word, folded, and `_NOT_PLAIN` for other words."""
    is_plain = spelled.isalpha() and spelled.isascii() and (spelled.islower() or _is_plain(spelled))
    return sys.intern(spelled[:2].lower()) if is_plain else _NOT_PLAIN


def _spelled(text: str) -> list[str]:
    found: list[str] = (_ASCII_WORD if text.isascii() else _WORD).findall(text)
    return found


def _words_of_scripts(spelled: str, start: int, language: str) -> Iterator[Word]:
    """Yield the parts of a word in several scripts: spaced runs as words, unspaced runs as bigrams."""
    for run in _UNSPACED_RUN.split(spelled):
        if _UNSPACED_RUN.fullmatch(run):
            yield from _bigrams(run, start)
        elif run:
            yield from _word(run, start, language)
        start += len(run)


def _word(spelled: str, start: int, language: str) -> Iterator[Word]:
    """Yield a word without bigrams, unless nothing of it is stored."""
    parts, exact, whole, bare = _analyses(language)[spelled]
    if parts:
        yield Word(start, start + len(spelled), parts, exact, whole, bare)


def _bigrams(run: str, start: int) -> Iterator[Word]:
    characters = [(match.start(), fold(match[0])) for match in regex.finditer(r"\X", run)]
    ends = [place for place, _ in characters[1:]] + [len(run)]
    for (place, first), (_, second), end in zip(characters, characters[1:], ends[1:], strict=False):
        bigram = first + second
        yield Word(start + place, start + end, (bigram,), (bigram,), bigram)
    place, last = characters[-1]
    yield Word(start + place, start + len(run), (last,), (last,), last, is_unigram=True)


@cache
def _analyses(language: str) -> WordCache[_Analysis]:
    return WordCache(lambda word: _analyse(word, language))


def _analyse(word: str, language: str) -> _Analysis:
    if word.isascii() and word.isalnum() and (_is_plain(word) or word.isdigit()):  # most words, in a third of the time
        folded = word.lower()
        stemmed = stem(folded, language)
        return (stemmed,), (folded,), stemmed, ()
    if word.endswith(("+", "#")):
        name = word.casefold()
        return (name,), (name,), name, ()
    spelled = [part for run in _ALPHANUMERIC.findall(_POSSESSIVE.sub("", word)) for part in _split_camel_case(run)]
    exact = tuple(filter(None, map(_fold_part, spelled)))
    stems = tuple(stem(part, language) for part in exact)
    whole = stem("".join(exact), language)
    if language == ENGLISH or word.isascii():
        return stems, exact, whole, ()
    accented = [unicodedata.normalize("NFKC", part).replace(" ", "").lower() for part in spelled if _fold_part(part)]
    parts, accented_whole = tuple(stem(part, language) for part in accented), stem("".join(accented), language)
    bare = dict.fromkeys((*stems, *((whole,) if len(exact) > 1 else ())))
    return parts, exact, accented_whole, tuple(each for each in bare if each not in {*parts, accented_whole})


def _fold_part(part: str) -> str:
    return fold(part).replace(" ", "")  # some letters decompose into a space and a mark


def _split_camel_case(word: str) -> list[str]:
    return [word] if not word.isascii() or _is_plain(word) else _CAMEL_CASE.findall(word)


def _is_plain(word: str) -> bool:
    """Whether a word is not camelCase: only its first letter is a capital, or all are, or none."""
    return word.islower() or word.isupper() or word[1:].islower()
