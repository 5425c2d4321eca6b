"""What a person typed, taken apart: words, "exact phrases" and -exclusions; and the same as expressions of the keyword index.

Any text is a query. Quotes that do not close, a minus before a number or before one or two letters (``rm -rf``), operators and
symbols are no syntax but text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from otterwiki_semantic.terms import Word, name_key, stem, words

_EXCLUSION = r"""(?<!\S)-(?:"(?P<no_phrase>[^"]+)"|(?P<no_word>\p{L}[\p{L}\p{M}\p{N}_'’.-]{2,}))(?!\S)"""
_PHRASE = r'"(?P<phrase>[^"]+)"'
_SYNTAX = regex.compile(f"{_EXCLUSION}|{_PHRASE}")
_CURLY = str.maketrans("“”„«»", '"' * 5)
_LONGEST_NAME = 100
_FUNCTION_WORDS = frozenset(
    stem(word)
    for line in (
        "a an and are as at be been by can could did do does for from had has have how i if in into is it its me my not of on",
        "or our should so that the their them then there these they this to was we were what when where which who whom whose",
        "why will with would you your",
    )
    for word in line.split()
)
"""Words that join others: no passage is looked for because it has one of them."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: `text` is what is asked, without the syntax.

    `parts` are its words as they are stored, identifiers divided; `sought` are those that passages are looked for by: all
    but the function words, unless there are no others. `wholes` are the identifiers undivided, `pairs` are parts next to each
    other, `prefixes` single characters of scripts without spaces. `phrases` have to stand in a passage as they are, what is
    `without` must not; both as runs of words.
    """

    text: str
    parts: tuple[str, ...]
    sought: tuple[str, ...]
    wholes: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    prefixes: tuple[str, ...]
    phrases: tuple[tuple[Word, ...], ...]
    without: tuple[tuple[Word, ...], ...]

    @property
    def name(self) -> str:
        """The whole of it as the key of a name; empty if it is too long for one."""
        return name_key(self.text) if len(self.text) <= _LONGEST_NAME else ""

    @property
    def identifier(self) -> str:
        """The whole of it as one stored word."""
        return stem(self.name)


def parse_query(text: str) -> Query:
    """Take a query apart. One that excludes everything it names is taken as plain text."""
    source = text.translate(_CURLY)
    phrases = [run for match in _SYNTAX.finditer(source) if (run := _run(match["phrase"]))]
    without = [run for match in _SYNTAX.finditer(source) if (run := _run(match["no_phrase"] or match["no_word"]))]
    asked = " ".join(_SYNTAX.sub(lambda match: match["phrase"] or "", source).split())
    if not any(True for _ in words(asked)):
        return _query(text, [], []) if without else _query(text, phrases, [])
    return _query(asked, phrases, without)


def _query(text: str, phrases: Iterable[tuple[Word, ...]], without: Iterable[tuple[Word, ...]]) -> Query:
    found = _run(text)
    parts = [part for word in found if not word.is_tail for part in word.parts]
    sought = [part for part in parts if part not in _FUNCTION_WORDS]
    return Query(
        text=text,
        parts=tuple(dict.fromkeys(parts)),
        sought=tuple(dict.fromkeys(sought or parts)),
        wholes=tuple(dict.fromkeys(word.whole for word in found if len(word.parts) > 1)),
        pairs=tuple(dict.fromkeys(pairwise(parts))),
        prefixes=tuple(dict.fromkeys(word.whole for word in found if word.is_tail)),
        phrases=tuple(phrases),
        without=tuple(without),
    )


def _run(text: str | None) -> tuple[Word, ...]:
    """Give the words of a text; the last character of a run without spaces only if it stands alone."""
    found = list(words(text or ""))
    ends = [0, *(word.end for word in found)]
    return tuple(word for word, end_before in zip(found, ends, strict=False) if not (word.is_tail and end_before == word.end))


# The keyword index's expressions: the one place where text of a user is quoted for FTS5


def any_of(terms: Iterable[str], prefixes: Iterable[str] = ()) -> str:
    """Give the expression for passages with any of these words."""
    return " OR ".join((*map(_quoted, terms), *(f"{_quoted(prefix)} *" for prefix in prefixes)))


def any_pair(pairs: Iterable[tuple[str, str]]) -> str:
    """Give the expression for passages with any of these pairs of words next to each other."""
    return " OR ".join(_quoted(" ".join(pair)) for pair in pairs)


def all_phrases(phrases: Sequence[Sequence[Word]]) -> str:
    """Give the expression for passages with every one of these runs of words."""
    return " AND ".join(f"({_phrase(phrase)})" for phrase in phrases)


def any_phrase(phrases: Sequence[Sequence[Word]]) -> str:
    """Give the expression for passages with any of these runs of words."""
    return " OR ".join(_phrase(phrase) for phrase in phrases)


def _phrase(run: Sequence[Word]) -> str:
    """A run of parts; a single word may also be stored whole, and a single character may begin a pair."""
    if len(run) == 1:
        word = run[0]
        spellings = dict.fromkeys((" ".join(word.parts), word.whole))
        return f"{_quoted(word.whole)} *" if word.is_tail else " OR ".join(map(_quoted, spellings))
    return _quoted(" ".join(part for word in run for part in word.parts))


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def has_phrase(text: str, phrase: Sequence[Word]) -> bool:
    """Tell whether a text has a run of words as they are, not only their stems."""
    wanted = [part for word in phrase for part in word.exact]
    if len(phrase) == 1 and phrase[0].is_tail:
        return any(wanted[0] in word.exact[0] for word in words(text))
    found = [word for word in words(text) if not word.is_tail]
    if len(phrase) == 1 and any("".join(word.exact) == "".join(wanted) for word in found):
        return True
    parts = [part for word in found for part in word.exact]
    return any(parts[start : start + len(wanted)] == wanted for start in range(len(parts) - len(wanted) + 1))
