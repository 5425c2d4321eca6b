"""Searches of users: embed them, search the serving generation, rerank and record.

The `Searcher` searches one generation, also in the background, where searches are not counted.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain
from threading import BoundedSemaphore, Lock

from msgspec import structs

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import CatalogClosedError, CatalogError, RepositoryError
from otterwiki_semantic.core.records import (
    FIRST_BUILD,
    NO_CONTEXT,
    NO_URLS,
    Answer,
    Freshness,
    Mode,
    PageUrls,
    SearchContext,
    SearchOptions,
)
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.telemetry import Failure, SearchEvent, Telemetry
from otterwiki_semantic.daemon.health.unanswered import Asked
from otterwiki_semantic.daemon.protocol import settings_fingerprint
from otterwiki_semantic.daemon.serving_reader import ServingReader
from otterwiki_semantic.embedding import CachedEmbedder, Matrix, QueryEmbedder, mean_vector
from otterwiki_semantic.indexing import IndexManager, IndexRecipe
from otterwiki_semantic.search import (
    PinnedAnswers,
    Query,
    QueryVector,
    RerankScores,
    SearchResult,
    Shortlist,
    SynonymPage,
    expand_query,
    query_in_languages,
    search_chunks,
    with_excerpts,
    with_markdown,
)
from otterwiki_semantic.search.answering import find_lead
from otterwiki_semantic.search.evaluation import RANKED_PAGES, Ask
from otterwiki_semantic.search.reranking import RerankStage
from otterwiki_semantic.storage import Generation

_SEARCH_SLOTS = 2
"""More concurrent searches compete for the interpreter: four threads answer 109 a second, two 145."""
_REST_FACTOR = 4
"""How long a background search rests, as a multiple of its work."""
_WARM_UP_WORDS = 8
"""Words of the warm-up search: the most common ones, whose posting lists take longest to read."""

Embed = Callable[[tuple[str, ...]], Matrix | None]

Pending = dict[str, Future[Matrix]]
"""The vectors of queries and variants, which are being embedded, by text; empty if none are needed."""

log = logging.getLogger(__name__)


class Searcher:
    """Parse queries and search a generation for them."""

    def __init__(self, settings: Settings, repository: Repository, recipe: IndexRecipe, telemetry: Telemetry) -> None:
        self._recipe = recipe
        self.queries = queries = QueryEmbedder(recipe.embedder, telemetry)
        self.paragraphs = CachedEmbedder(recipe.embedder)
        self._repository = repository
        self._synonyms = SynonymPage(Repository(settings.repository), settings.synonyms)  # may be excluded from search
        self.pinned = PinnedAnswers(queries.vector_of)
        self.slots = BoundedSemaphore(_SEARCH_SLOTS)

    def parse(self, text: str, options: SearchOptions, generation: Generation | None) -> Query:
        """Parse a query in the languages of the index, without corrections and synonyms."""
        languages = self._recipe.languages
        with suppress(CatalogError):
            languages = generation.languages if generation is not None else languages
        return query_in_languages(text, languages, is_draft=options.draft)

    def expand(self, text: str, query: Query, options: SearchOptions, generation: Generation | None) -> Query:
        """Return a parsed query with all variants, unless the catalog has another version, or the catalog or git fails."""
        try:
            if generation is not None and (catalog := generation.catalog).is_current:
                with catalog.snapshot():
                    return expand_query(text, query, catalog.keywords, self._synonyms.synonyms(catalog.commit), options)
        except CatalogClosedError:
            pass
        except (CatalogError, RepositoryError) as error:
            log.warning("a query is asked without synonyms and corrections: %s", error)
        return query

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
        if not options.markdown:
            return found
        return replace(found, hits=with_markdown(found.hits, self._repository, generation.catalog, section_words))

    def asking_in_background(self, generation: Generation, pause: Callable[[float], None]) -> Ask:
        """Return a function that searches a generation, serving or not, as for a user but without a reranker.

        It rests after each search, to use at most a fifth of one core. Raises `Stopped`, errors of the search.
        """
        embed = lru_cache(maxsize=1)(self.queries.embed)  # once for consecutive searches

        def ask(text: str, options: SearchOptions) -> SearchResult:
            start = time.thread_time()
            found = self._search_as_user(generation, text, options, embed).result
            pause(_REST_FACTOR * (time.thread_time() - start))
            return found

        return ask

    def ask_again(self, generation: Generation, text: str) -> Asked:
        """Ask a question in the background. Vectors are cached, so that a server is asked once for each."""
        embed = self.queries.submit
        return self._search_as_user(generation, text, RANKED_PAGES, lambda texts: mean_vector(list(embed(texts).values())))

    def warm_up(self, generation: Generation) -> None:
        """Search a generation, so that the first search need not wait for loading; no server is asked for a vector."""
        generation.warm_up()
        try:
            words: Sequence[str] = generation.catalog.keywords.common_words(_WARM_UP_WORDS)
            embed = None if self._recipe.embedder.asks_server else self.queries.embed
            for query in (" ".join(words), *words[:1]):  # a question, and a name
                self._search_as_user(generation, query, SearchOptions(), embed)
            generation.catalog.keywords.vocabulary.refresh()
        except Exception as error:  # noqa: BLE001 - the first search reports it
            log.info("the first search loads what it needs: %s", error)

    def _search_as_user(self, generation: Generation, text: str, options: SearchOptions, embed: Embed | None) -> Asked:
        query = self.expand(text, self.parse(text, options, generation), options, generation)
        vector = embed(_texts(query)) if embed and self._recipe.matches_vectors(generation) else None
        with self.slots, generation.catalog.snapshot():
            return Asked(vector, self.search(generation, query, lambda: vector, options))


@dataclass
class SearchService:
    """Answer searches, and notify observers."""

    settings: Settings
    manager: IndexManager
    reader: ServingReader
    searcher: Searcher
    reranking: RerankStage
    telemetry: Telemetry
    observers: list[Callable[[SearchEvent], None]] = field(default_factory=list)
    _batch_slot: Lock = field(default_factory=Lock)
    """Held by a search for several queries, one at a time: two would block all other searches."""

    def search(
        self,
        queries: Sequence[str],
        options: SearchOptions,
        urls: PageUrls = NO_URLS,
        context: SearchContext = NO_CONTEXT,
        section_words: int = 0,
    ) -> list[Answer]:
        """Search as `IndexService.search` does; sections of up to `section_words` words are returned whole as Markdown."""
        if options.wait:
            self.manager.wait_until_head(options.wait_seconds)
        serving = self.manager.serving
        if serving is not None:
            serving.wait_until_loaded()
        parsed = [self.searcher.parse(query, options, serving) for query in queries]
        pending: Pending = {}
        if not self.manager.model.recipe.embedder.asks_server:  # a server gets one request, with all variants
            self._submit(parsed, options.mode, pending)
        parsed = [self.searcher.expand(text, query, options, serving) for text, query in zip(queries, parsed, strict=True)]
        self._submit(parsed, options.mode, pending)
        start = time.perf_counter()
        try:
            answers = self._search(parsed, pending, options, urls, section_words)
            answers = [with_excerpts(answer, options) for answer in answers]
        except Exception:
            self.telemetry.record_failure(Failure.SEARCH)
            raise
        seconds = time.perf_counter() - start
        answers = [_page(query, answer, options, seconds) for query, answer in zip(queries, answers, strict=True)]
        event = SearchEvent(answers, options, context, seconds)
        for observe in self.observers:
            observe(event)
        return answers

    def version(self) -> str | None:
        """Return the token of `IndexService.version`."""
        if self.searcher.queries.last_failure or self.reranking.is_loading or self.reranking.error:
            return None

        def of(generation: Generation) -> str | None:
            index = self.reader.freshness(generation)
            if index.commit != index.head or index.pending_pages or index.progress or index.error:
                return None
            if not self.manager.model.recipe.matches(generation):
                return None
            revision = generation.catalog.meta("revision")  # questions are embedded only after it is incremented
            facts = generation.name, revision, index.head, settings_fingerprint(self.settings), self.searcher.pinned.fingerprint
            return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

        return self.reader.ask(of)

    def _submit(self, queries: Sequence[Query], mode: Mode, pending: Pending) -> None:
        """Start to embed the texts of queries that are not `pending`, and add them."""
        new = [text for text in chain.from_iterable(map(_texts, queries)) if text not in pending]
        serving, recipe = self.manager.serving, self.manager.model.recipe
        if not new or serving is None or (mode is Mode.KEYWORD and recipe.embedder.asks_server):
            return
        with suppress(CatalogError):  # handled by the search itself
            if not recipe.matches_vectors(serving):
                return
        pending |= self.searcher.queries.submit(new)

    def _search(
        self, queries: Sequence[Query], pending: Pending, options: SearchOptions, urls: PageUrls, section_words: int
    ) -> list[Answer]:
        wanted = structs.replace(options, rerank=self.reranking.is_wanted(options))
        self.searcher.queries.wait_for_server(list(pending.values()))
        search = partial(self._search_once, queries, pending, wanted, urls, section_words)
        found = search([{}] * len(queries))
        if found is None:
            return [_answer(query, SearchResult(), self.reader.freshness(None)) for query in queries]
        reranked = self.reranking.rerank([query.text for query in queries], [shortlist for _, shortlist in found], options)
        if any(each.scores for each in reranked):  # the index may have changed since the candidates were read
            found = search([each.scores for each in reranked]) or found
        return [each.applied_to(answer) for (answer, _), each in zip(found, reranked, strict=True)]

    def _search_once(
        self,
        queries: Sequence[Query],
        pending: Pending,
        options: SearchOptions,
        urls: PageUrls,
        section_words: int,
        rerank_scores: Sequence[RerankScores],
    ) -> list[tuple[Answer, Shortlist]] | None:
        """Search one snapshot of the serving generation; return each answer and its shortlist, or None without an index.

        Vectors that turn out to be needed but are missing are added to `pending`.
        """

        def answers(generation: Generation) -> list[tuple[Answer, Shortlist]]:
            index = self.reader.freshness(generation)
            keywords_only = self.manager.model.why_keywords_only(generation)
            if not pending:  # another generation may serve by now
                self._submit(queries, options.mode, pending)
            embedded = [[pending[text] for text in _texts(query) if text in pending] for query in queries]
            given = [[]] * len(queries) if keywords_only else embedded
            found = [
                self.searcher.search(generation, query, partial(mean_vector, vectors), options, urls, scores, section_words)
                for query, vectors, scores in zip(queries, given, rerank_scores, strict=True)
            ]
            if any(each.is_keyword_index_corrupt for each in found):
                self.manager.mark_keyword_index_damaged(generation)
            failures = self.searcher.queries.report_failures(embedded)
            return [
                (_answer(query, each, index, keywords_only or failure), each.shortlist)
                for query, each, failure in zip(queries, found, failures, strict=True)
            ]

        with self._batch_slot if len(queries) > 1 else nullcontext(), self.searcher.slots:
            return self.reader.ask(answers)


def _texts(query: Query) -> tuple[str, ...]:
    """Return the distinct texts of a query and its variants."""
    return tuple(dict.fromkeys(each.text for each in query.all))


def _answer(query: Query, found: SearchResult, index: Freshness, degraded: str | None = None) -> Answer:
    is_first_build = index.commit is None and index.head is not None
    return Answer(
        query=query.text,
        results=found.hits,
        total=len(found.hits),
        total_hits=found.total_hits,
        confident=found.confident,
        index=index,
        lead=find_lead(query.text, found.hits, query.languages),
        message=FIRST_BUILD if is_first_build else None,
        degraded=degraded or found.degraded or index.error,
        facets=found.facets,
        corrections=query.corrections,
    )


def _page(query: str, answer: Answer, options: SearchOptions, seconds: float) -> Answer:
    """Return the requested part of an answer; the display of a result depends on those before it."""
    results, lead = answer.results[options.offset :], None if options.offset else answer.lead
    milliseconds = round(1000 * seconds, 1)
    return structs.replace(answer, query=query, results=results, lead=lead, total=len(results), processing_ms=milliseconds)
