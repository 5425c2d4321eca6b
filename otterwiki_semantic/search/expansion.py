"""What is asked besides a query as it was typed: the same in other languages, with corrected words and with synonyms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from otterwiki_semantic.core.records import Correction, SearchOptions
from otterwiki_semantic.search.query import Query, parse_query
from otterwiki_semantic.search.spelling import corrected
from otterwiki_semantic.search.synonyms import Synonyms
from otterwiki_semantic.storage import KeywordIndex


def expand_query(
    text: str, keywords: KeywordIndex, synonyms: Synonyms, languages: tuple[str, ...], options: SearchOptions
) -> Query:
    """Parse a query, with its variants. Errors: those of the catalog."""
    right, corrections = text, tuple[Correction, ...]()
    if options.corrections:
        right, corrections = corrected(text, keywords, languages, is_draft=options.draft)
    texts = dict.fromkeys((text, right, *synonyms.variants(right)))
    return replace(_parsed(texts, languages, is_draft=options.draft), corrections=corrections)


def query_in_languages(text: str, languages: tuple[str, ...], *, is_draft: bool = False) -> Query:
    """Parse a query, with its stems in other languages as its only variants."""
    return _parsed([text], languages, is_draft=is_draft)


def _parsed(texts: Iterable[str], languages: tuple[str, ...], *, is_draft: bool) -> Query:
    distinct: dict[tuple[object, ...], Query] = {}
    for text, language in product(texts, languages):
        parsed = parse_query(text, is_draft=is_draft, languages=languages, language=language)
        distinct.setdefault((parsed.name, parsed.parts, parsed.wholes), parsed)
    query, *variants = distinct.values()
    return replace(query, variants=tuple(variants))
