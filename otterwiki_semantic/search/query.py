"""Parse user input into words, "exact phrases" and -exclusions, and build expressions for the keyword index.

Any text is a query. Unclosed quotes, a minus before a number or before one or two letters (``rm -rf``), operators and symbols
are plain text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TypeVar

import regex

from otterwiki_semantic.content.analysis import (
    UNSPACED,
    Word,
    WordMatcher,
    function_words,
    name_key,
    stem,
    stem_beginnings,
    words,
)
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.core.records import Correction, Filters
from otterwiki_semantic.storage import Filter, page_filter

T = TypeVar("T")
_EXCLUDED_WORD = rf"[{UNSPACED}][\p{{L}}\p{{M}}\p{{N}}]*|\p{{L}}[\p{{L}}\p{{M}}\p{{N}}_'’.-]{{2,}}"
_EXCLUSION = rf'(?<!\S)-(?:"(?P<no_phrase>[^"]+)"|(?P<no_word>{_EXCLUDED_WORD}))(?!\S)'
_PHRASE = r'(?<![\p{L}\p{N}"])"(?P<phrase>[^"]+)"(?![\p{L}\p{N}])'
"""A quote directly after a letter or digit opens no phrase: it is the inch sign."""
_SYNTAX = regex.compile(f"{_EXCLUSION}|{_PHRASE}")
_MOST_PHRASES = 16
_CURLY = str.maketrans("“”„«»", '"' * 5)
_LONGEST_NAME = 300
_MIN_BEGINNING = 4
_LONGEST_FUNCTION_WORD = 4
"""Longer entries in the stop lists of languages other than English include words such as *trabajo* and *estado*."""


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query."""

    text: str
    """The query without syntax."""
    parts: tuple[str, ...]
    """Its words as stored, with identifiers divided."""
    sought: tuple[str, ...]
    """The parts to look up: all except function words, unless there are no others."""
    wholes: tuple[str, ...]
    """The undivided identifiers."""
    pairs: tuple[tuple[str, str], ...]
    """Adjacent parts."""
    prefixes: tuple[str, ...]
    """Single characters of scripts without spaces, and the prefix of a word that is still being typed."""
    unfinished: str
    """The part that is still being typed, which need not occur in the wiki; empty if there is none."""
    phrases: tuple[tuple[Word, ...], ...]
    """Runs of words that a passage must contain verbatim."""
    without: tuple[tuple[Word, ...], ...]
    """Runs of words that a passage must not contain."""
    literals: tuple[str, ...]
    """Phrases without a word, such as ``->``, that a passage must contain."""
    name: str
    """The whole query as the key of a name; empty if too long for one."""
    language: str = ENGLISH
    """The language of the stems."""
    variants: tuple[Query, ...] = ()
    """The query with stems of other languages, corrected words and synonyms. A match for a variant is a match for the query."""
    corrections: tuple[Correction, ...] = ()
    languages: tuple[str, ...] = (ENGLISH,)
    """The languages of the wiki's pages."""
    pinned: tuple[str, ...] = ()
    """The paths of pages that come first."""

    @property
    def all(self) -> tuple[Query, ...]:
        """The query and its variants."""
        return self, *self.variants


@cache
def _function_stems(languages: tuple[str, ...], language: str) -> frozenset[str]:
    """Return the stems of function words, which are not looked up."""
    return frozenset(
        stem(word, language)
        for each in languages
        for word in function_words(each)
        if each == ENGLISH or len(word) <= _LONGEST_FUNCTION_WORD
    )


def parse_query(
    text: str, *, is_draft: bool = False, languages: tuple[str, ...] = (ENGLISH,), language: str | None = None
) -> Query:
    """Parse a query, with the stems of one of the wiki's languages, by default the first.

    A query that excludes everything it names is plain text, as are phrases and exclusions after the 16th. The last word of a
    draft also matches as a prefix if it has at least four letters.
    """
    language = language or languages[0]
    source = text.translate(_CURLY)
    found = list(_SYNTAX.finditer(source))[:_MOST_PHRASES]
    asked = " ".join(_without_syntax(source, found).split())
    phrases = [match["phrase"] for match in found if match["phrase"]]
    without = [match["no_phrase"] or match["no_word"] for match in found if not match["phrase"]]
    if not any(words(asked)):
        asked, without = text, []
    run = _run(asked, language)
    parts = [part for word in run if not word.is_unigram for part in word.parts]
    prefixes = [word.whole for word in run if word.is_unigram]
    is_typing = is_draft and text[-1:].isalnum()
    if is_typing and run and len(run[-1].exact[-1]) >= _MIN_BEGINNING:
        prefixes.append(run[-1].exact[-1])
    return Query(
        text=asked,
        parts=_distinct(parts),
        sought=_distinct([part for part in parts if part not in _function_stems(languages, language)] or parts),
        wholes=_distinct(word.whole for word in run if len(word.parts) > 1),
        pairs=_distinct(pairwise(parts)),
        prefixes=_distinct(prefixes),
        unfinished=parts[-1] if is_typing and parts else "",
        phrases=_runs(phrases, language),
        without=_runs(without, language),
        literals=_distinct(phrase.strip() for phrase in phrases if not _run(phrase, language) and phrase.strip()),
        name=name_key(asked) if len(asked) <= _LONGEST_NAME else "",
        language=language,
        languages=languages,
    )


def free_text(text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a query that are neither quoted nor excluded, with their positions."""
    start = 0
    for match in list(_SYNTAX.finditer(text.translate(_CURLY)))[:_MOST_PHRASES]:
        yield start, text[start : match.start()]
        start = match.end()
    yield start, text[start:]


def _distinct(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


def _without_syntax(source: str, found: Sequence[regex.Match[str]]) -> str:
    """Return the text with the quotes of phrases and all exclusions removed."""
    parts, end = [], 0
    for match in found:
        parts += [source[end : match.start()], match["phrase"] or ""]
        end = match.end()
    return "".join((*parts, source[end:]))


def _runs(texts: Iterable[str], language: str) -> tuple[tuple[Word, ...], ...]:
    """Return the runs of words in the texts, without repeats; none for a text without words."""
    runs = (_run(text, language) for text in texts)
    return tuple({tuple(part for word in run for part in word.exact): run for run in runs if run}.values())


def _run(text: str, language: str) -> tuple[Word, ...]:
    """Return the words of a text; the last character of a run without spaces only if it is alone."""
    found = list(words(text, language))
    ends = [0, *(word.end for word in found)]
    return tuple(
        word for word, end_before in zip(found, ends, strict=False) if not (word.is_unigram and end_before == word.end)
    )


# Expressions for the keyword index: the only place where user text is quoted for FTS5.


def any_of(terms: Iterable[str], prefixes: Iterable[str] = ()) -> str:
    """Return the expression for passages with any of these words."""
    return " OR ".join((*map(_quoted, terms), *(f"{_quoted(prefix)} *" for prefix in prefixes)))


def any_pair(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the expression for passages with any of these pairs of adjacent words."""
    return " OR ".join(_quoted(" ".join(pair)) for pair in pairs)


def all_phrases(phrases: Sequence[Sequence[Word]], languages: tuple[str, ...] = (ENGLISH,)) -> str:
    """Return the expression for passages with all of these runs of words.

    In languages other than English, `has_phrases` checks the word order: stems of words typed without accents have no
    position.
    """
    if languages != (ENGLISH,):
        phrases = [[word] for phrase in phrases for word in phrase]
    return " AND ".join(f"({_phrase(phrase)})" for phrase in phrases)


def any_phrase(phrases: Sequence[Sequence[Word]]) -> str:
    """Return the expression for passages with any of these runs of words."""
    return " OR ".join(_phrase(phrase) for phrase in phrases)


def _phrase(run: Sequence[Word]) -> str:
    """Return the expression for a run; a single word may also be stored whole, and a single character may begin a pair."""
    if len(run) == 1:
        word = run[0]
        spellings = dict.fromkeys((" ".join(word.parts), word.whole))
        return f"{_quoted(word.whole)} *" if word.is_unigram else " OR ".join(map(_quoted, spellings))
    return _quoted(" ".join(part for word in run for part in word.parts))


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""').replace("\0", " ")  # FTS5 ends an expression at NUL
    return f'"{doubled}"'


def has_phrases(text: str, phrases: Sequence[Sequence[Word]]) -> bool:
    """Return whether a text has all of these runs of words verbatim, not only their stems."""
    found = list(words(text))
    parts = [part for word in found if not word.is_unigram for part in word.exact]
    return all(_has_phrase(found, parts, phrase) for phrase in phrases)


def _has_phrase(found: Sequence[Word], parts: Sequence[str], phrase: Sequence[Word]) -> bool:
    wanted = [part for word in phrase for part in word.exact]
    if len(phrase) == 1:
        whole = "".join(wanted)
        if any(whole in word.exact[0] if phrase[0].is_unigram else whole == "".join(word.exact) for word in found):
            return True
    return any(parts[start : start + len(wanted)] == wanted for start in range(len(parts) - len(wanted) + 1))


class Highlighter:
    """Find matches of a query's words."""

    def __init__(self, query: Query) -> None:
        wanted = {word for each in query.all for word in (*each.sought, *each.wholes)}
        prefixes = tuple({prefix for each in query.all for prefix in each.prefixes})

        def is_wanted(parts: Sequence[str], whole: str) -> bool:
            return whole in wanted or not wanted.isdisjoint(parts) or whole.startswith(prefixes)

        beginnings = stem_beginnings((*wanted, *prefixes)) if query.languages == (ENGLISH,) else None
        self._matcher = WordMatcher(is_wanted, beginnings, query.languages)

    def ranges(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return the matching ranges of a text (start to before end), in order and without overlaps."""
        return merged_ranges(self._matcher.spans(text))


def merged_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ranges in order, with adjacent and overlapping ones merged."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def filter_of(filters: Filters, query: Query) -> Filter:
    """Return the filter of a query: its page filter, the phrases that a chunk must contain, and the words that it must not."""
    # The plus stops SQLite from searching the keyword index once per chunk.
    matching = "(SELECT rowid FROM keywords WHERE keywords MATCH ?)"
    conditions = [("instr(chunks.text, ?)", (literal,)) for literal in query.literals]
    # Phrases are stemmed in the language of the page, which may be any of the wiki's.
    if query.phrases:
        wanted = _distinct(f"({all_phrases(each.phrases, each.languages)})" for each in query.all)
        conditions.append((f"+chunks.id IN {matching}", (" OR ".join(wanted),)))
    if query.without:
        unwanted = _distinct(any_phrase(each.without) for each in query.all)
        conditions.append((f"+chunks.id NOT IN {matching}", (" OR ".join(unwanted),)))
    return Filter(page_filter(filters).pages, tuple(conditions))
