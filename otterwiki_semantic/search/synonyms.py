"""The wiki's own words for the same thing, from one of its pages: what is asked with one is asked with the others as well.

Each line of the page is a group. ``pto, annual leave, vacation`` holds equal words; after ``pto => annual leave, vacation`` the
first is also asked as the others, but not the other way round. List markers are allowed; other lines and code are no groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.analysis import words
from otterwiki_semantic.search.query import free_text

_MAX_BYTES = 1_000_000
_MAX_GROUPS, _MAX_TERMS = 5_000, 50
_LONGEST_TERM = 6
"""Words; a line with a longer one is prose."""
_MAX_VARIANTS = 6
_MARKER = re.compile(r"^ {0,3}(?:[-*+]|\d+[.)])\s+")
_ARROW = "=>"


@dataclass(frozen=True)
class Synonyms:
    """Terms, as the words that the keyword index stores, each with the texts to ask instead."""

    terms: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def variants(self, text: str) -> tuple[str, ...]:
        """Return a query with one of its terms replaced by a synonym, up to six times; longer terms come first."""
        found = (text[:start] + other + text[end:] for start, end, others in self._occurrences(text) for other in others)
        return tuple(dict.fromkeys(found))[:_MAX_VARIANTS]

    def _occurrences(self, text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yield where terms stand in the text (start to before end), apart from each other, with their synonyms."""
        for offset, part in free_text(text) if self.terms else ():
            found = [word for word in words(part) if not word.is_unigram]
            first = 0
            while first < len(found):
                size, others = self._longest_term([word.parts for word in found[first : first + _LONGEST_TERM]])
                if size:
                    yield offset + found[first].start, offset + found[first + size - 1].end, others
                first += size or 1

    def _longest_term(self, parts: Sequence[tuple[str, ...]]) -> tuple[int, tuple[str, ...]]:
        """Return the number of words of the longest term that a text begins with, and its synonyms; 0 if it is none."""
        for size in range(len(parts), 0, -1):
            others = self.terms.get(tuple(part for word in parts[:size] for part in word))
            if others:
                return size, others
        return 0, ()


def read_synonyms(markdown: str) -> Synonyms:
    """Read the groups of a page."""
    terms: dict[tuple[str, ...], dict[str, None]] = {}
    for line in _lines(markdown)[:_MAX_GROUPS]:
        left, arrow, right = line.partition(_ARROW)
        asked, others = _terms(left), _terms(right if arrow else left)
        if max(map(len, (*asked.values(), *others.values())), default=_LONGEST_TERM) <= _LONGEST_TERM:
            for key in asked.values():
                terms.setdefault(key, {}).update(dict.fromkeys(other for other, its in others.items() if its != key))
    return Synonyms({key: tuple(others) for key, others in terms.items() if others})


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
    """Return the terms between commas, each with the words that the keyword index stores."""
    terms = (" ".join(term.strip("`*_ ").split()) for term in text.split(",")[:_MAX_TERMS])
    keys = {term: tuple(part for word in words(term) if not word.is_unigram for part in word.parts) for term in terms}
    return {term: key for term, key in keys.items() if key}


class SynonymPage:
    """The page with the groups, read again when the index has reached another commit."""

    def __init__(self, repository: Repository, path: str | None) -> None:
        self._repository = repository
        self._path = path
        self._read: tuple[str | None, Synonyms] = None, Synonyms()
        """The commit that it was read from."""

    def synonyms(self, commit: str | None) -> Synonyms:
        """Return the groups as of a commit; none if there is no such page. Errors: those of `Repository`."""
        known_commit, known = self._read
        if self._path is None or commit is None or commit == known_commit:
            return known
        blob = self._repository.page_blob(commit, self._path)
        content = next(self._repository.read_blobs([blob], _MAX_BYTES)) if blob else b""
        known = read_synonyms(content.decode("utf-8", errors="replace"))
        self._read = commit, known
        return known
