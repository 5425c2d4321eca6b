"""From a query to ranked and explained chunks.

`pipeline` runs a query from start to end. Import `evaluation`, which measures rankings, by module name.
"""

from otterwiki_semantic.search.expansion import PinnedAnswers, SynonymPage, expand_query, query_in_languages
from otterwiki_semantic.search.inspection import inspect_page
from otterwiki_semantic.search.link_suggestions import find_mentions, likely_duplicates, pages_about
from otterwiki_semantic.search.pipeline import RerankScores, SearchResult, Shortlist, search_chunks
from otterwiki_semantic.search.query import Query
from otterwiki_semantic.search.related import are_related, related_pages
from otterwiki_semantic.search.results import with_excerpts, with_markdown
from otterwiki_semantic.search.retrieval import QueryVector
from otterwiki_semantic.search.similarity_scale import Scale, note_scale, noted_scale
from otterwiki_semantic.search.suggest import suggest, suggest_tags
