"""From a query to ranked and explained chunks."""

from otterwiki_semantic.search.inspection import inspect_page
from otterwiki_semantic.search.pipeline import RerankScores, Shortlist, search_chunks
from otterwiki_semantic.search.query import parse_query
from otterwiki_semantic.search.related import related_pages
from otterwiki_semantic.search.similarity_scale import note_scale, noted_scale

__all__ = [
    "RerankScores",
    "Shortlist",
    "inspect_page",
    "note_scale",
    "noted_scale",
    "parse_query",
    "related_pages",
    "search_chunks",
]
