"""Searches of users: they are embedded, asked of the serving generation, reranked and recorded."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from functools import partial
from itertools import chain
from threading import Lock

from msgspec import structs

from otterwiki_semantic.core.errors import CatalogError
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
from otterwiki_semantic.daemon.searcher import Searcher
from otterwiki_semantic.daemon.serving_reader import ServingReader
from otterwiki_semantic.embedding import Matrix, mean_vector
from otterwiki_semantic.indexing import IndexManager
from otterwiki_semantic.search import NO_RESULT, Query, RerankScores, SearchResult, Shortlist, with_excerpts
from otterwiki_semantic.search.answering import find_lead
from otterwiki_semantic.search.reranking import RerankStage
from otterwiki_semantic.storage import Generation

Pending = list[list[Future[Matrix]]]
"""Of each query, the vectors of its variants, which are being embedded; empty if none are needed."""


class SearchService:
    """Answers searches, and tells observers of them."""

    def __init__(
        self,
        settings: Settings,
        manager: IndexManager,
        reader: ServingReader,
        searcher: Searcher,
        reranking: RerankStage,
        telemetry: Telemetry,
    ) -> None:
        self._manager = manager
        self._reader = reader
        self._searcher = searcher
        self._model = manager.model
        self._queries = searcher.queries
        self._reranking = reranking
        self._telemetry = telemetry
        self._fingerprint = hashlib.sha256(repr(settings).encode()).hexdigest()[:16]
        """Identifies the settings."""
        self._batch_slot = Lock()
        """Held by a search for several queries, of which one takes place at a time: two would keep all others waiting."""
        self.observers: list[Callable[[SearchEvent], None]] = [telemetry.record_search]

    def search(
        self,
        queries: Sequence[str],
        options: SearchOptions,
        urls: PageUrls = NO_URLS,
        context: SearchContext = NO_CONTEXT,
        section_words: int = 0,
    ) -> list[Answer]:
        """As `IndexService.search`; sections of up to `section_words` words are returned whole as Markdown."""
        if options.wait:
            self._manager.wait_until_head(options.wait_seconds)
        serving = self._manager.serving
        parsed = [self._searcher.parse(query, options, serving) for query in queries]
        pending = self._submit(parsed, options.mode)
        start = time.perf_counter()
        try:
            answers = self._search(parsed, pending, options, urls, section_words)
            answers = [with_excerpts(answer, options) for answer in answers]
        except Exception:
            self._telemetry.record_failure(Failure.SEARCH)
            raise
        seconds = time.perf_counter() - start
        answers = [_page(query, answer, options, seconds) for query, answer in zip(queries, answers, strict=True)]
        event = SearchEvent(answers, options, context, seconds)
        for observe in self.observers:
            observe(event)
        return answers

    def version(self) -> str | None:
        """As `IndexService.version`."""
        if self._queries.last_failure or self._reranking.is_loading or self._reranking.error:
            return None

        def of(generation: Generation) -> str | None:
            index = self._reader.freshness(generation)
            if index.commit != index.head or index.pending_pages or index.progress or index.error:
                return None
            if not self._model.recipe.matches(generation):
                return None
            revision = generation.catalog.meta("revision")  # questions are embedded only after it is counted up
            facts = generation.name, revision, index.head, self._fingerprint, self._searcher.pinned.fingerprint
            return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

        return self._reader.ask(of)

    def _submit(self, queries: Sequence[Query], mode: Mode) -> Pending:
        """Begin to embed queries, each with its variants; none if their vectors cannot be used."""
        if not self._needs_vectors(mode):
            return []
        pending = self._queries.submit(each.text for query in queries for each in query.all)
        return [[pending[text] for text in dict.fromkeys(each.text for each in query.all)] for query in queries]

    def _needs_vectors(self, mode: Mode) -> bool:
        """Whether to embed queries: not if the vectors cannot be used, nor on a server for a keyword search."""
        serving, recipe = self._manager.serving, self._model.recipe
        if serving is None or (mode is Mode.KEYWORD and recipe.embedder.asks_server):
            return False
        try:
            return recipe.matches_vectors(serving)
        except CatalogError:  # the search itself handles that
            return True

    def _search(
        self, queries: Sequence[Query], pending: Pending, options: SearchOptions, urls: PageUrls, section_words: int
    ) -> list[Answer]:
        wanted = structs.replace(options, rerank=self._reranking.is_wanted(options))
        self._queries.wait_for_server(list(chain.from_iterable(pending)))
        search = partial(self._search_once, queries, pending, wanted, urls, section_words)
        found = search([{}] * len(queries))
        if found is None:
            return [_answer(query, NO_RESULT, self._reader.freshness(None)) for query in queries]
        reranked = self._reranking.rerank([query.text for query in queries], [shortlist for _, shortlist in found], options)
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
        """Search one state of the serving generation; return each answer and its shortlist; None without an index.

        If there are no vectors although they are needed now, they are added to `pending`.
        """

        def answers(generation: Generation) -> list[tuple[Answer, Shortlist]]:
            index = self._reader.freshness(generation)
            keywords_only = self._model.why_keywords_only(generation)
            if not pending:  # another generation may have taken over since
                pending.extend(self._submit(queries, options.mode))
            given = pending if pending and not keywords_only else [[]] * len(queries)
            found = [
                self._searcher.search(generation, query, partial(mean_vector, vectors), options, urls, scores, section_words)
                for query, vectors, scores in zip(queries, given, rerank_scores, strict=True)
            ]
            if any(each.is_keyword_index_corrupt for each in found):
                self._manager.mark_keyword_index_damaged(generation)
            failures = self._queries.report_failures(pending) if pending else [None] * len(queries)
            return [
                (_answer(query, each, index, keywords_only or failure), each.shortlist)
                for query, each, failure in zip(queries, found, failures, strict=True)
            ]

        with self._batch_slot if len(queries) > 1 else nullcontext(), self._searcher.slots:
            return self._reader.ask(answers)


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
    """Return the part of an answer that was asked for: what a result shows depends on those before it."""
    results, lead = answer.results[options.offset :], None if options.offset else answer.lead
    milliseconds = round(1000 * seconds, 1)
    return structs.replace(answer, query=query, results=results, lead=lead, total=len(results), processing_ms=milliseconds)
