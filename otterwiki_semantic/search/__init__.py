"""From a query to ranked and explained chunks.

`pipeline` is the whole way of a query; `evaluation`, which judges rankings, is imported by its own name.
"""

from otterwiki_semantic.search.inspection import inspect_page
from otterwiki_semantic.search.pipeline import NO_RESULT, RerankScores, SearchResult, Shortlist, search_chunks
from otterwiki_semantic.search.query import Query, parse_query
from otterwiki_semantic.search.related import related_pages
from otterwiki_semantic.search.similarity_scale import Scale, note_scale, noted_scale

__all__ = [
    "NO_RESULT",
    "Query",
    "RerankScores",
    "Scale",
    "SearchResult",
    "Shortlist",
    "inspect_page",
    "note_scale",
    "noted_scale",
    "parse_query",
    "related_pages",
    "search_chunks",
]
