"""What is asked besides a query as it was typed: the same with corrected words and with synonyms."""

from __future__ import annotations

from dataclasses import replace

from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.search.query import Query, parse_query
from otterwiki_semantic.search.spelling import corrected
from otterwiki_semantic.search.synonyms import Synonyms
from otterwiki_semantic.storage import KeywordIndex


def expand_query(text: str, keywords: KeywordIndex, synonyms: Synonyms, options: SearchOptions) -> Query:
    """Parse a query, with its variants. Errors: those of the catalog."""
    query = parse_query(text, is_draft=options.draft)
    right, corrections = corrected(text, keywords, is_draft=options.draft) if options.corrections else (text, ())
    others = dict.fromkeys((right, *synonyms.variants(right)))
    others.pop(text, None)
    variants = (parse_query(other, is_draft=options.draft) for other in others)
    return replace(query, corrections=corrections, variants=tuple(variants)) if others else query
