"""What a search adds to a query: stems of other languages, synonyms, and pages pinned to a question.

Synonyms come from a wiki page on which each line is a group. The words in ``pto, annual leave, vacation`` are equivalent;
``pto => annual leave, vacation`` expands the first word only. List markers are allowed; other lines and code are ignored.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.analysis import Word, name_key, words
from otterwiki_semantic.core.records import Correction, SearchOptions
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.query import Query, free_text, parse_query
from otterwiki_semantic.search.similarity_scale import Scale
from otterwiki_semantic.search.spelling import corrected
from otterwiki_semantic.storage import Generation, KeywordIndex, PinnedQuestion

_MAX_BYTES = 1_000_000
_MAX_GROUPS, _MAX_TERMS = 5_000, 50
_LONGEST_TERM = 6
"""Words of a term; a line with a longer one is prose."""
_MAX_VARIANTS = 6
_MARKER = re.compile(r"^ {0,3}(?:[-*+]|\d+[.)])\s+")
_ARROW = "=>"
_SAME_QUESTION = 0.8
"""The least similarity, on the bundled model's scale, of two wordings of a question."""

Synonyms = Mapping[tuple[str, ...], Sequence[str]]
"""Terms, as words of the keyword index, with the texts to search for instead."""


def expand_query(text: str, parsed: Query, keywords: KeywordIndex, synonyms: Synonyms, options: SearchOptions) -> Query:
    """Return a parsed query with corrected words and synonyms as further variants. Raises errors of the catalog."""
    right, corrections = text, tuple[Correction, ...]()
    if options.corrections and not all(keywords.frequencies(parsed.parts).values()):
        right, corrections = corrected(text, keywords, parsed.languages, is_draft=options.draft)
    texts = dict.fromkeys((text, right, *with_synonyms(right, synonyms)))
    return _parsed(texts, parsed.languages, corrections, is_draft=options.draft) if len(texts) > 1 else parsed


def query_in_languages(text: str, languages: tuple[str, ...], *, is_draft: bool = False) -> Query:
    """Parse a query, with only its stems in other languages as variants."""
    return _parsed([text], languages, (), is_draft=is_draft)


def _parsed(texts: Iterable[str], languages: tuple[str, ...], corrections: tuple[Correction, ...], *, is_draft: bool) -> Query:
    distinct: dict[tuple[object, ...], Query] = {}
    for text, language in product(dict.fromkeys(texts), languages):
        parsed = parse_query(text, is_draft=is_draft, languages=languages, language=language)
        distinct.setdefault((parsed.name, parsed.parts, parsed.wholes), parsed)
    query, *variants = distinct.values()
    return replace(query, variants=tuple(variants), corrections=corrections)


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
                if others := synonyms.get(_key(found[first : first + size])):
                    yield offset + found[first].start, offset + found[first + size - 1].end, others
                    first += size - 1
                    break
            first += 1


def _key(found: Iterable[Word]) -> tuple[str, ...]:
    return tuple(part for word in found if not word.is_unigram for part in word.parts)


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
    return {term: key for term in terms if (key := _key(words(term)))}


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
        self._read = commit, read_synonyms(content.decode("utf-8", errors="replace"))
        return self._read[1]


class PinnedAnswers:
    """Find the pages that are pinned to a query, even in other words; `embed` returns the vector of a question."""

    def __init__(self, embed: Callable[[str], Matrix]) -> None:
        self._embed = embed
        self._vectors: dict[str, Matrix] = {}

    def refresh(self, questions: Iterable[PinnedQuestion]) -> None:
        """Embed questions. Raises errors of `embed`.

        Until it succeeds, and if questions may not be embedded, only the same words match.
        """
        self._vectors = {each.text: self._embed(each.text) for each in questions if each.may_be_embedded}

    @property
    def fingerprint(self) -> str:
        """A hash of the questions that are matched by meaning."""
        return hashlib.sha256("\n".join(sorted(self._vectors)).encode()).hexdigest()[:16]

    def paths(self, query: Query, vector: Callable[[], Matrix | None], generation: Generation, scale: Scale) -> tuple[str, ...]:
        """Return the pages that are pinned to a query. Raises errors of the catalog."""
        answers = generation.catalog.reader.answers() if generation.catalog.is_current else ()
        if not answers:
            return ()
        asked, names = vector(), {each.name for each in query.all}
        return tuple(each.path for each in answers if name_key(each.text) in names or self._is_same(each.text, asked, scale))

    def _is_same(self, question: str, asked: Matrix | None, scale: Scale) -> bool:
        known = self._vectors.get(question)
        if known is None or asked is None or known.shape != asked.shape:
            return False
        return scale.to_bundled(float(np.dot(known, asked))) >= _SAME_QUESTION
