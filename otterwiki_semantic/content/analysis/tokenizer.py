"""The words of a text as the keyword index knows them: folded, stemmed, and identifiers both in parts and whole.

Case, accents and compatibility forms fold away (NFKD, Unicode Standard Annex 15). `TargetWords`, ``max_chunks_per_page`` and
``10.0.0.5`` are found by their parts, in their order, and whole, whatever stands between the parts. English words are stemmed
(Porter, 1980, as revised in Snowball). Scripts written without spaces become overlapping pairs of characters.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from array import array
from collections.abc import Callable, Container, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import NamedTuple

import regex
import Stemmer

ANALYSIS_VERSION = f"1/{version('PyStemmer')}"
"""What the stored words depend on: with another one, the index is built again."""

_CACHED_WORDS = 20_000
_LONGEST_CACHED = 64
_CACHED_TEXTS, _LONGEST_CACHED_TEXT = 2_000, 5_000
"""Texts shown lately, of which it is remembered where their words stand, in some 3 KB each."""
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc"
"""Scripts written without spaces, as part of a character class."""
_LETTER = r"[\p{L}\p{M}\p{N}_]"
_LANGUAGE = rf"[A-Za-z](?:\+\+|\#)(?!{_LETTER})"
"""``C++``, ``C#``: the signs are part of the name."""
_WORD = regex.compile(rf"(?<!{_LETTER}){_LANGUAGE}|{_LETTER}+(?:[-._'’]{_LETTER}+)*")
_ASCII_WORD = re.compile(r"\b[A-Za-z](?:\+\+|\#)(?!\w)|\w+(?:[-._']\w+)*", re.ASCII)
"""What `_WORD` finds in a text of ASCII characters alone, in half the time."""
_UNSPACED_RUN = regex.compile(rf"([{UNSPACED}][{UNSPACED}\p{{M}}]*)")
_PIECE = regex.compile(r"[^\W_][\p{L}\p{M}\p{N}]*")
_NAME_PIECE = regex.compile(rf"(?<!{_LETTER}){_LANGUAGE}|{_PIECE.pattern}")
_HUMP = regex.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+[a-z]*")
_POSSESSIVE = regex.compile(r"['’]s$", regex.IGNORECASE)
_COMBINING = regex.compile(r"[\u0300-\u036f]")
_NO_DECOMPOSITION = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"})
_STEMMER = Stemmer.Stemmer("english")


class Word(NamedTuple):
    """A word and where it stands in its text (`start` to before `end`).

    `parts` are its pieces as they are stored, `exact` the same not stemmed, `whole` all of them as one. A pair of characters of
    a script without spaces is a word, too; the last character of a run once more stands alone, as `is_unigram`.
    """

    start: int
    end: int
    parts: tuple[str, ...]
    exact: tuple[str, ...]
    whole: str
    is_unigram: bool = False


class WordMatcher:
    """Finds those words in texts that are wanted, by their parts and their whole; asks once for each spelling.

    With `initials` only words are wanted of which a part begins with one of these, folded: stemming leaves the first letter.
    """

    def __init__(self, is_wanted: Callable[[Sequence[str], str], bool], initials: Container[str] | None = None) -> None:
        self._is_wanted = is_wanted
        self._initials = initials
        self._known: dict[str, bool] = {}

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Give where the wanted words of a text stand, in order (start to before end)."""
        known = self._known
        runs, starts = _spelled(text) if len(text) <= _LONGEST_CACHED_TEXT else _spelled.__wrapped__(text)
        for place, run in enumerate(runs):
            is_wanted = known.get(run)
            if is_wanted is None and run.isascii():
                is_wanted = known[run] = self._wants(run)
            if is_wanted:
                yield starts[place], starts[place] + len(run)
            elif is_wanted is None:
                found = _words_of_scripts(run, starts[place])
                yield from ((word.start, word.end) for word in found if self._is_wanted(word.parts, word.whole))

    def _wants(self, run: str) -> bool:
        """Whether a word of ASCII characters is wanted."""
        if self._initials is not None and run.isalpha() and _is_plain(run) and run[0].lower() not in self._initials:
            return False
        parts, _, whole = _analysis(run)
        return bool(parts) and self._is_wanted(parts, whole)


@lru_cache(_CACHED_TEXTS)
def _spelled(text: str) -> tuple[tuple[str, ...], array[int]]:
    """Give the words of a text as they are spelled, and where each begins."""
    found = [(match.start(), sys.intern(match[0])) for match in _runs(text)]
    return tuple(run for _, run in found), array("I", [start for start, _ in found])


def _runs(text: str) -> Iterator[re.Match[str]] | Iterator[regex.Match[str]]:
    return _ASCII_WORD.finditer(text) if text.isascii() else _WORD.finditer(text)


def words(text: str) -> Iterator[Word]:
    """Give the words of a text in order."""
    for match in _runs(text):
        run, start = match[0], match.start()
        if run.isascii():
            parts, exact, whole = _analysis(run)
            if parts:
                yield Word(start, match.end(), parts, exact, whole)
        else:
            yield from _words_of_scripts(run, start)


def _words_of_scripts(text: str, start: int) -> Iterator[Word]:
    for run in _UNSPACED_RUN.split(text):
        if _UNSPACED_RUN.fullmatch(run):
            yield from _pairs(run, start)
        elif run:
            parts, exact, whole = _analysis(run)
            if parts:
                yield Word(start, start + len(run), parts, exact, whole)
        start += len(run)


def indexed_text(text: str) -> str:
    """Give a text as the keyword index stores it: the parts of its words in order, then the words of several parts whole."""
    found = list(words(text))
    parts = [part for word in found for part in word.parts]
    return " ".join((*parts, *(word.whole for word in found if len(word.parts) > 1)))


def name_key(text: str) -> str:
    """Give what spellings of a name have in common: its letters and digits, folded; of one without any, all but the spaces."""
    return "".join(fold(match[0]) for match in _NAME_PIECE.finditer(text)) or "".join(fold(text).split())


def fold(text: str) -> str:
    """Give a text without case, accents and compatibility forms."""
    bare = _COMBINING.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare).casefold().translate(_NO_DECOMPOSITION)


@lru_cache(_CACHED_WORDS)
def stem(word: str) -> str:
    """Give the stem of a folded English word; others stay nearly as they are."""
    return str(_STEMMER.stemWord(word)) if word.isascii() and word.isalpha() else word


def _analysis(word: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Give a word's parts as stored and as they are, and the whole; those of a long one are not remembered."""
    return _analysed(word) if len(word) <= _LONGEST_CACHED else _analysed.__wrapped__(word)


@lru_cache(_CACHED_WORDS)
def _analysed(word: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    if word.endswith(("+", "#")):
        language = word.casefold()
        return (language,), (language,), language
    word = _POSSESSIVE.sub("", word)
    exact = tuple(folded for piece in _PIECE.findall(word) for hump in _humps(piece) if (folded := fold(hump)))
    return tuple(stem(part) for part in exact), exact, stem("".join(exact))


def _humps(piece: str) -> list[str]:
    """Divide ``camelCase``; a word with only a first capital, or with none, stays whole."""
    return [piece] if not piece.isascii() or _is_plain(piece) else _HUMP.findall(piece)


def _is_plain(piece: str) -> bool:
    return piece.islower() or piece.isupper() or piece[1:].islower()


def _pairs(run: str, start: int) -> Iterator[Word]:
    characters = [(match.start(), fold(match[0])) for match in regex.finditer(r"\X", run)]
    ends = [place for place, _ in characters[1:]] + [len(run)]
    for (place, first), (_, second), end in zip(characters, characters[1:], ends[1:], strict=False):
        pair = first + second
        yield Word(start + place, start + end, (pair,), (pair,), pair)
    place, last = characters[-1]
    yield Word(start + place, start + len(run), (last,), (last,), last, is_unigram=True)
