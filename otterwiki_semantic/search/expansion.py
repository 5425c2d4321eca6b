"""Query expansion: stems of other languages, corrected spelling, and synonyms.

Synonyms come from a wiki page on which each line is a group. The words in ``pto, annual leave, vacation`` are equivalent;
``pto => annual leave, vacation`` expands the first word only. List markers are allowed; other lines and code are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.analysis import words
from otterwiki_semantic.core.records import Correction, SearchOptions
from otterwiki_semantic.search.query import Query, free_text, parse_query
from otterwiki_semantic.search.spelling import corrected
from otterwiki_semantic.storage import KeywordIndex

_MAX_BYTES = 1_000_000
_MAX_GROUPS, _MAX_TERMS = 5_000, 50
_LONGEST_TERM = 6
"""Words of a term; a line with a longer one is prose."""
_MAX_VARIANTS = 6
_MARKER = re.compile(r"^ {0,3}(?:[-*+]|\d+[.)])\s+")
_ARROW = "=>"

Synonyms = Mapping[tuple[str, ...], Sequence[str]]
"""Terms, as words of the keyword index, with the texts to search for instead."""


def expand_query(
    text: str, keywords: KeywordIndex, synonyms: Synonyms, languages: tuple[str, ...], options: SearchOptions
) -> Query:
    """Parse a query and add its variants. Raises errors of the catalog."""
    right, corrections = text, tuple[Correction, ...]()
    if options.corrections:
        right, corrections = corrected(text, keywords, languages, is_draft=options.draft)
    texts = dict.fromkeys((text, right, *with_synonyms(right, synonyms)))
    return replace(_parsed(texts, languages, is_draft=options.draft), corrections=corrections)


def query_in_languages(text: str, languages: tuple[str, ...], *, is_draft: bool = False) -> Query:
    """Parse a query, with only its stems in other languages as variants."""
    return _parsed([text], languages, is_draft=is_draft)


def _parsed(texts: Iterable[str], languages: tuple[str, ...], *, is_draft: bool) -> Query:
    distinct: dict[tuple[object, ...], Query] = {}
    for text, language in product(texts, languages):
        parsed = parse_query(text, is_draft=is_draft, languages=languages, language=language)
        distinct.setdefault((parsed.name, parsed.parts, parsed.wholes), parsed)
    query, *variants = distinct.values()
    return replace(query, variants=tuple(variants))


def with_synonyms(text: str, synonyms: Synonyms) -> tuple[str, ...]:
    """Return copies of a query, each with one term replaced by a synonym; at most six, longer terms first."""
    found = (text[:start] + other + text[end:] for start, end, others in _terms_in(text, synonyms) for other in others)
    return tuple(dict.fromkeys(found))[:_MAX_VARIANTS]


def _terms_in(text: str, synonyms: Synonyms) -> Iterator[tuple[int, int, Sequence[str]]]:
    """Yield the ranges of terms in the text (start to before end, without overlaps) with their synonyms."""
    for offset, part in free_text(text) if synonyms else ():
        found = [word for word in words(part) if not word.is_unigram]
        first = 0
        while first < len(found):
            for size in range(min(_LONGEST_TERM, len(found) - first), 0, -1):
                key = tuple(part for word in found[first : first + size] for part in word.parts)
                if others := synonyms.get(key):
                    yield offset + found[first].start, offset + found[first + size - 1].end, others
                    first += size - 1
                    break
            first += 1


def read_synonyms(markdown: str) -> Synonyms:
    """Return the synonym groups of a page."""
    terms: dict[tuple[str, ...], dict[str, None]] = {}
    for line in _lines(markdown)[:_MAX_GROUPS]:
        left, arrow, right = line.partition(_ARROW)
        asked, others = _terms(left), _terms(right if arrow else left)
        if max(map(len, (*asked.values(), *others.values())), default=_LONGEST_TERM) <= _LONGEST_TERM:
            for key in asked.values():
                terms.setdefault(key, {}).update(dict.fromkeys(other for other, its in others.items() if its != key))
    return {key: tuple(others) for key, others in terms.items() if others}


def _lines(markdown: str) -> list[str]:
    """Return the lines that may be groups, without list markers."""
    lines, is_code = [], False
    for line in markdown.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code and not line.startswith(("#", "    ", "\t", "|")):
            lines.append(_MARKER.sub("", line))
    return [line for line in lines if "," in line or _ARROW in line]


def _terms(text: str) -> dict[str, tuple[str, ...]]:
    """Return the terms between commas, with their words in the keyword index."""
    terms = (" ".join(term.strip("`*_ ").split()) for term in text.split(",")[:_MAX_TERMS])
    keys = {term: tuple(part for word in words(term) if not word.is_unigram for part in word.parts) for term in terms}
    return {term: key for term, key in keys.items() if key}


class SynonymPage:
    """The page of synonyms, read again when the index reaches another commit."""

    def __init__(self, repository: Repository, path: str | None) -> None:
        self._repository = repository
        self._path = path
        self._read: tuple[str | None, Synonyms] = None, {}
        """The commit of the groups."""

    def synonyms(self, commit: str | None) -> Synonyms:
        """Return the synonyms as of a commit, or none without a page. Raises errors of `Repository`."""
        known_commit, known = self._read
        if self._path is None or commit is None or commit == known_commit:
            return known
        blob = self._repository.page_blob(commit, self._path)
        content = next(self._repository.read_blobs([blob], _MAX_BYTES)) if blob else b""
        known = read_synonyms(content.decode("utf-8", errors="replace"))
        self._read = commit, known
        return known
