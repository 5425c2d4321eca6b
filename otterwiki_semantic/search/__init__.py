"""From a query to ranked and explained chunks.

`pipeline` runs a query from start to end. Import `evaluation` and `judge`, which measure rankings, by module name.
"""

from otterwiki_semantic.search.expansion import PinnedAnswers as PinnedAnswers
from otterwiki_semantic.search.expansion import SynonymPage as SynonymPage
from otterwiki_semantic.search.expansion import expand_query as expand_query
from otterwiki_semantic.search.expansion import query_in_languages as query_in_languages
from otterwiki_semantic.search.inspection import inspect_page as inspect_page
from otterwiki_semantic.search.link_suggestions import find_mentions as find_mentions
from otterwiki_semantic.search.link_suggestions import likely_duplicates as likely_duplicates
from otterwiki_semantic.search.link_suggestions import pages_about as pages_about
from otterwiki_semantic.search.pipeline import RerankScores as RerankScores
from otterwiki_semantic.search.pipeline import SearchResult as SearchResult
from otterwiki_semantic.search.pipeline import Shortlist as Shortlist
from otterwiki_semantic.search.pipeline import search_chunks as search_chunks
from otterwiki_semantic.search.query import Query as Query
from otterwiki_semantic.search.related import are_related as are_related
from otterwiki_semantic.search.related import related_pages as related_pages
from otterwiki_semantic.search.results import with_excerpts as with_excerpts
from otterwiki_semantic.search.results import with_markdown as with_markdown
from otterwiki_semantic.search.retrieval import QueryVector as QueryVector
from otterwiki_semantic.search.similarity_scale import Scale as Scale
from otterwiki_semantic.search.similarity_scale import note_scale as note_scale
from otterwiki_semantic.search.similarity_scale import noted_scale as noted_scale
from otterwiki_semantic.search.suggest import suggest as suggest
from otterwiki_semantic.search.suggest import suggest_tags as suggest_tags
