"""Suggestions while somebody types, without the model: pages by title, alias and path, then sections by their headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from otterwiki_semantic.content.analysis import fold, name_key
from otterwiki_semantic.content.pages import page_name
from otterwiki_semantic.core.records import Filters, PageUrls, Suggestion, SuggestionKind
from otterwiki_semantic.storage import CatalogReader, Generation, Name, NamedPlace, NameKind, name_tokens

_ONE_ERROR, _TWO_ERRORS = 4, 8
"""The least lengths of a token that may have one error and two."""
_MAX_NEAREST = 3
_MAX_TOKENS = 12
_WORD = re.compile(r"\w+")


class Fit(IntEnum):
    """How well a name fits, best first."""

    EXACT, BEGINS, WORDS, MISSPELLED = range(4)


_Target = tuple[int, int, int]
"""A page by its number, or a heading by the page, its chunk and its place there; see `Name`."""


class _Match(NamedTuple):
    """A name that fits. Suggestions are in the order of these."""

    is_section: bool
    fit: Fit
    is_path: bool
    """Whether only the page's path fits."""
    length: int
    page: int
    chunk: int
    place: int

    @property
    def target(self) -> _Target:
        """What is suggested."""
        return self.page, self.chunk, self.place if self.is_section else 0


def suggest(generation: Generation, query: str, n: int, filters: Filters, urls: PageUrls) -> list[Suggestion]:
    """Return up to `n` pages and sections whose names a query may mean; for an empty one the pages that changed last.

    Call it within `Catalog.snapshot`.
    """
    reader = generation.catalog.reader
    if not query:
        return [_suggestion(page, (), urls) for page in reader.newest_pages(n, filters)]
    tokens = name_tokens(query)[:_MAX_TOKENS]
    if not tokens:
        return []
    found: dict[_Target, tuple[_Match, NamedPlace]] = {}
    links = reader.page_names()
    typed = tokens
    for matches, words in _in_stages(reader, query, tokens):
        best: dict[_Target, _Match] = {}
        for match in sorted(matches):
            if match.target not in found:
                best.setdefault(match.target, match)
        places = reader.named_places(list(best), filters)
        found |= {target: (best[target], place) for target, place in places.items()}
        typed = [*typed, *words]
        if sum(match.fit is not Fit.WORDS or not match.is_path for match, _ in found.values()) >= n:
            break
    order = sorted(
        found.values(), key=lambda each: (each[0][:4], -links.incoming_links(each[1].path), each[1].path, each[0].target)
    )
    return [_suggestion(place, typed, urls) for _, place in order[:n]]


def _in_stages(reader: CatalogReader, query: str, tokens: Sequence[str]) -> Iterator[tuple[Iterable[_Match], Sequence[str]]]:
    """Yield matches, the best kinds first, and the words that they were found by if those are others."""
    names, key = reader.name_index(), name_key(query)
    yield [_alias_match(key, *alias) for alias in reader.aliases(key)], ()
    for kind in NameKind:
        for at_start in (True, False):
            yield _matches(names.find(kind, tokens, at_start=at_start), tokens), ()
    for corrected in _corrections(tokens, names.vocabulary):
        for kind in NameKind:
            matches = _matches(names.find(kind, corrected), corrected)
            yield [match._replace(fit=Fit.MISSPELLED) for match in matches], corrected


def _alias_match(key: str, page: int, path: str, alias: str) -> _Match:
    """Return the match of a key with the key of a title, an alias, a path or its last part."""
    is_path = alias in {name_key(path), name_key(page_name(path))}
    fit = Fit.EXACT if alias == key else Fit.WORDS if is_path else Fit.BEGINS
    return _Match(False, fit, is_path, len(alias), page, 0, 0)


def _matches(found: Iterable[Name], tokens: Sequence[str]) -> Iterator[_Match]:
    whole = " " + " ".join(tokens)
    for name in found:
        fit = Fit.EXACT if name.text == whole else Fit.BEGINS if name.text.startswith(whole) else Fit.WORDS
        is_section = name.chunk > 0
        is_path = not is_section and name.place > 0
        if is_path and fit == Fit.BEGINS:
            fit = Fit.WORDS
        yield _Match(is_section, fit, is_path, len(name.text), name.page, name.chunk, name.place)


def _corrections(tokens: Sequence[str], vocabulary: frozenset[str]) -> Iterator[list[str]]:
    """Yield the tokens with each of those that begin no word replaced by a word that begins nearly like it."""
    for place, token in enumerate(tokens):
        if len(token) >= _ONE_ERROR and not any(word.startswith(token) for word in vocabulary):
            errors = 1 + (len(token) >= _TWO_ERRORS)
            beginnings = {word[: len(token)] for word in vocabulary if len(word) >= len(token) - errors}
            for nearest, _, _ in extract(token, beginnings, scorer=OSA.distance, score_cutoff=errors, limit=_MAX_NEAREST):
                yield [*tokens[:place], nearest, *tokens[place + 1 :]]


def _suggestion(place: NamedPlace, tokens: Sequence[str], urls: PageUrls) -> Suggestion:
    label = place.section or place.title
    return Suggestion(
        kind=SuggestionKind.SECTION if place.section else SuggestionKind.PAGE,
        path=place.path,
        title=place.title,
        section=place.section,
        section_path=place.section_path,
        anchor=place.anchor,
        ranges=tuple(_ranges(label, tokens)),
        updated=place.updated,
        url=urls.of(place.path, place.anchor),
    )


def _ranges(label: str, tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield what to mark in a name: the beginning of each word that a token begins."""
    for word in _WORD.finditer(label):
        folded = fold(word[0])
        begun = max((len(token) for token in tokens if folded.startswith(token)), default=0)
        if begun:
            yield word.start(), min(word.start() + begun, word.end()) if len(folded) == len(word[0]) else word.end()
