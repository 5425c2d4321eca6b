"""Search one generation: for users, and in the background, where nothing counts it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from threading import BoundedSemaphore

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import CatalogError, RepositoryError
from otterwiki_semantic.core.records import NO_URLS, PageUrls, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Telemetry
from otterwiki_semantic.daemon.health.unanswered import Asked
from otterwiki_semantic.embedding import CachedEmbedder, Matrix, QueryEmbedder, mean_vector
from otterwiki_semantic.indexing import IndexRecipe
from otterwiki_semantic.search import (
    PinnedAnswers,
    Query,
    QueryVector,
    RerankScores,
    SearchResult,
    SynonymPage,
    expand_query,
    query_in_languages,
    search_chunks,
    with_markdown,
)
from otterwiki_semantic.search.evaluation import RANKED_PAGES, Ask
from otterwiki_semantic.storage import Generation

_SEARCH_SLOTS = 2
"""More searches at a time take the interpreter from each other: four threads answer 109 a second, two at a time 145."""
_REST_FACTOR = 4
"""How much longer than its work a background search rests."""
_WARM_UP_WORDS = 8
"""Words of the search that warms up: the most common ones, whose posting lists take longest to read."""

Embed = Callable[[tuple[str, ...]], Matrix]

log = logging.getLogger(__name__)


class Searcher:
    """Parses queries and searches a generation for them."""

    def __init__(
        self,
        settings: Settings,
        repository: Repository,
        recipe: IndexRecipe,
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        self._recipe = recipe
        self.queries = queries = QueryEmbedder(recipe.embedder, telemetry)
        self.paragraphs = CachedEmbedder(recipe.embedder)
        self._repository = repository
        self._synonyms = SynonymPage(Repository(settings.repository), settings.synonyms)  # which may be excluded from search
        self.pinned = PinnedAnswers(queries.vector_of)
        self.slots = BoundedSemaphore(_SEARCH_SLOTS)

    def parse(self, query: str, options: SearchOptions, generation: Generation | None) -> Query:
        """Parse a query, with its variants unless the catalog is of another version or fails, or git does."""
        languages = self._recipe.languages
        if generation is not None:
            try:
                catalog, languages = generation.catalog, generation.languages
                if catalog.is_current:
                    with catalog.snapshot():
                        synonyms = self._synonyms.synonyms(catalog.commit)
                        return expand_query(query, catalog.keywords, synonyms, languages, options)
            except (CatalogError, RepositoryError) as error:
                log.warning("a query is asked without synonyms and corrections: %s", error)
        return query_in_languages(query, languages, is_draft=options.draft)

    def search(
        self,
        generation: Generation,
        query: Query,
        vector: QueryVector,
        options: SearchOptions,
        urls: PageUrls = NO_URLS,
        rerank_scores: RerankScores | None = None,
        section_words: int = 0,
    ) -> SearchResult:
        """Search a generation in its snapshot; for `section_words` see `with_markdown`."""
        embedder, scale = self._recipe.embedder, self._recipe.scale(generation)
        pinned = self.pinned.paths(query, vector, generation, scale)
        embeds = options.needs_best_sentence and not embedder.asks_server  # a server would take too long
        embed = self.paragraphs.embed if embeds else None
        asked = replace(query, pinned=pinned), vector, options, scale, rerank_scores or {}, urls, embed
        found = search_chunks(generation, *asked)
        return with_markdown(found, self._repository, generation.catalog, section_words) if options.markdown else found

    def asking_in_background(self, generation: Generation, pause: Callable[[float], None]) -> Ask:
        """Return what searches a generation, serving or not, as for a user but without a reranker.

        It rests after each search, so as to use a fifth of one core at most, and embeds a query once for searches in a row.
        Its errors: `Stopped`; those of the model, of the catalog and of ChromaDB.
        """
        embed = lru_cache(maxsize=1)(self.queries.embed)

        def ask(text: str, options: SearchOptions) -> SearchResult:
            start = time.thread_time()
            found = self._search_as_user(generation, text, options, embed)
            pause(_REST_FACTOR * (time.thread_time() - start))
            return found

        return ask

    def ask_again(self, generation: Generation, text: str) -> Asked:
        """Ask a question in the background. Vectors are cached: a server is asked once for them."""
        query = self.parse(text, RANKED_PAGES, generation)
        texts = [each.text for each in query.all] if self._recipe.matches_vectors(generation) else []
        vector = mean_vector(list(self.queries.submit(texts).values()))
        with self.slots, generation.catalog.snapshot():
            return Asked(vector, self.search(generation, query, lambda: vector, RANKED_PAGES))

    def warm_up(self, generation: Generation) -> None:
        """Search a generation, so that the first search does not wait for what it loads; no server is asked for a vector."""
        generation.warm_up()
        try:
            words: Sequence[str] = generation.catalog.keywords.common_words(_WARM_UP_WORDS)
            embed = None if self._recipe.embedder.asks_server else self.queries.embed
            for query in (" ".join(words), *words[:1]):  # a question, and a name
                self._search_as_user(generation, query, SearchOptions(), embed)
        except Exception as error:  # noqa: BLE001 - the first search reports it
            log.info("the first search loads what it needs: %s", error)

    def _search_as_user(self, generation: Generation, text: str, options: SearchOptions, embed: Embed | None) -> SearchResult:
        """Search a generation, by words alone without `embed`. Errors: those of the model, the catalog and ChromaDB."""
        query = self.parse(text, options, generation)
        texts = tuple(dict.fromkeys(each.text for each in query.all))
        vector = embed(texts) if embed and self._recipe.matches_vectors(generation) else None
        with self.slots, generation.catalog.snapshot():
            return self.search(generation, query, lambda: vector, options)
