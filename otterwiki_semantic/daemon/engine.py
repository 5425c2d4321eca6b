"""The index in the daemon: the model, the serving generation, and the answers."""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import TypeVar

from msgspec import structs

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.pages import page_excluded, page_key, page_not_found
from otterwiki_semantic.core.errors import (
    CatalogCorruptError,
    CatalogError,
    IndexUnavailableError,
    ModelError,
    PageNotFoundError,
    RepositoryError,
    RollbackError,
    SemanticError,
    VectorStoreError,
)
from otterwiki_semantic.core.records import (
    FIRST_BUILD,
    NO_URLS,
    Answer,
    AskProgress,
    AskRequest,
    DismissalAnswer,
    DismissalRequest,
    DraftLinks,
    DraftRequest,
    FindingKind,
    Freshness,
    HealthReport,
    HealthRequest,
    IndexStatus,
    Insight,
    Mode,
    PageInspection,
    PageLinks,
    PageList,
    PageListRequest,
    PageUrls,
    RebuildStatus,
    ReindexStarted,
    RelatedPage,
    RelatedPages,
    SearchOptions,
    Suggestions,
    SuggestRequest,
    WikiMap,
)
from otterwiki_semantic.core.settings import EXCLUDE, Settings, index_settings, with_index_settings
from otterwiki_semantic.core.telemetry import Failure, Telemetry
from otterwiki_semantic.daemon.asking import Questions
from otterwiki_semantic.daemon.health.duplicates import find_duplicates
from otterwiki_semantic.daemon.health.links import find_broken_links, find_orphans
from otterwiki_semantic.daemon.health.mentions import find_mentions as find_unlinked_names
from otterwiki_semantic.daemon.health.reporter import HealthReporter
from otterwiki_semantic.daemon.health.stale import find_stale
from otterwiki_semantic.daemon.health.survey import Checks
from otterwiki_semantic.daemon.health.unanswered import Asked, find_unanswered
from otterwiki_semantic.daemon.reports.insight import Insights
from otterwiki_semantic.daemon.reports.monitoring import Monitoring
from otterwiki_semantic.daemon.reports.quality import QualityMonitor
from otterwiki_semantic.daemon.rollback import RollbackFile, SwapWatch, may_roll_back, note_choice
from otterwiki_semantic.daemon.status import StatusReport
from otterwiki_semantic.daemon.wiki_map.builder import WikiMapBuilder, switched_off
from otterwiki_semantic.embedding import CachedEmbedder, Matrix, QueryEmbedder, mean_vector, model_config, open_embedder
from otterwiki_semantic.indexing import IndexManager, IndexRecipe, ModelStatus, QualityGate
from otterwiki_semantic.search import (
    NO_RESULT,
    PinnedAnswers,
    Query,
    QueryVector,
    RerankScores,
    SearchResult,
    Shortlist,
    SynonymPage,
    expand_query,
    find_mentions,
    inspect_page,
    likely_duplicates,
    pages_about,
    query_in_languages,
    related_pages,
    search_chunks,
    suggest,
    suggest_tags,
    with_excerpts,
    with_markdown,
)
from otterwiki_semantic.search.answering import find_lead
from otterwiki_semantic.search.evaluation import RANKED_PAGES, JudgedQuery, read_judged_queries
from otterwiki_semantic.search.judge import Ask
from otterwiki_semantic.search.reranking import RerankStage, open_reranker
from otterwiki_semantic.storage import (
    EXACT,
    EXACT_FLOAT32,
    PUBLIC_LINK,
    ChromaServer,
    ChromaServerStore,
    CollectionOwnership,
    CollectionSpec,
    EmbeddedChromaStore,
    Generation,
    GenerationStore,
    OpenStore,
    VectorStore,
    claim_data_directory,
)

_SEARCH_SLOTS = 2
"""More searches at a time take the interpreter from each other: four threads answer 109 a second, two at a time 145."""
_WARM_UP_WORDS = 8
"""Words of the search that warms up: the most common ones, whose posting lists take longest to read."""
_REST_FACTOR = 4
"""How much longer than its work a background search rests."""
_CLOSE_SECONDS = 8.0
_SUCCESSOR_SECONDS = 2.0

T = TypeVar("T")

log = logging.getLogger(__name__)


class IndexEngine:
    """An `IndexService` that answers itself. Only the process that holds the data directory's lock may create one."""

    def __init__(self, settings: Settings) -> None:
        self._rollback = RollbackFile(settings)
        settings = self._rollback.effective(settings)
        repository = Repository(settings.repository, settings.exclude)
        claim_data_directory(settings.data_dir, repository)
        self._settings = hashlib.sha256(repr(settings).encode()).hexdigest()[:16]
        self._monitoring = Monitoring(repository)
        self._telemetry = self._monitoring.telemetry
        self.embedder = open_embedder(settings)
        self._queries = QueryEmbedder(self.embedder, self._telemetry)
        self._search_slots = BoundedSemaphore(_SEARCH_SLOTS)
        self._batch_slot = Lock()
        """Held by a search for several queries, of which one takes place at a time: two would keep all others waiting."""
        self._reranking = RerankStage(open_reranker(settings), self._telemetry)
        self._repository = repository
        self._paragraphs = CachedEmbedder(self.embedder)
        self._recipe = IndexRecipe(self.embedder, settings.chunks, settings.languages)
        self._model = ModelStatus(self._recipe)
        gate = QualityGate(self._recipe, partial(_judged_queries, settings.eval_queries), self._asking_in_background)
        self._manager = IndexManager(
            repository,
            _generations(settings, self._telemetry),
            self._recipe,
            self._model,
            gate,
            settings.sync_interval,
            self._telemetry,
            on_synced=self._refresh,
            recipe_of=partial(self._recipe_of, settings),
        )
        self._watch = SwapWatch(lambda reason: self._manager.run_in_background(partial(self._roll_back_automatically, reason)))
        self._warm = ""
        """The generation that was last searched to load what searches need."""
        self.must_reopen = False
        """Whether the index is to be opened again, with other settings: it was rolled back."""
        self._synonyms = SynonymPage(Repository(settings.repository), settings.synonyms)  # which may be excluded from search
        self._pinned = PinnedAnswers(self._queries.vector_of)
        self._quality = (
            QualityMonitor(settings.data_dir / "quality.json", gate, self._manager, self._roll_back_automatically)
            if settings.eval_queries
            else None
        )
        self._insights = Insights(settings.data_dir, self._manager.history, self._quality, keeps_searches=settings.search_log)
        self._health = HealthReporter(
            settings.data_dir,
            repository,
            self._health_checks(),
            self._manager.stable_generation,
            self._recipe.scale,
            self._manager.reschedule_background,
            self._manager.pause,
            keeps_searches=settings.search_log,
        )
        self._map = (
            WikiMapBuilder(settings.data_dir / "map.json", self._manager.stable_generation, self._manager.reschedule_background)
            if "map" in settings.pages
            else None
        )
        self._questions = Questions(settings, self.search, self._paragraphs, settings.languages)
        self._status = StatusReport(
            self._manager,
            self._recipe,
            self._model,
            gate,
            self._queries,
            self._reranking,
            self._insights,
            self._rollback.status,
        )

    def _recipe_of(self, settings: Settings, generation: Generation) -> IndexRecipe:
        """Return the recipe of a generation that was made with other settings."""
        own = with_index_settings(settings, generation.settings)
        has_same_model = replace(own, chunks=settings.chunks, languages=settings.languages) == settings
        return IndexRecipe(self.embedder if has_same_model else open_embedder(own), own.chunks, own.languages)

    def start(self) -> None:
        """Open the serving generation, if there is one, and begin to keep it equal to HEAD, in the background."""
        self._manager.start()
        threading.Thread(target=self._load, name="warm-up", daemon=True).start()
        self._insights.start()
        self._reranking.start()

    def close(self, timeout: float = _CLOSE_SECONDS) -> None:
        """Stop the work between two steps, for which it waits up to `timeout` seconds twice, and close the files."""
        if self._map is not None:
            self._map.stop()
        self._questions.close()
        self._manager.stop(timeout)
        self._insights.close()
        self._reranking.close()
        self._queries.close()

    def note_idle(self) -> None:
        """Record that the last client has gone, after which this process may be killed at any moment."""
        serving = self._manager.serving
        if serving is not None:
            serving.mirror.note_idle()

    def _load(self) -> None:
        """Load what searches and suggestions need."""
        self._warm_up()
        self._refresh_names()

    def _warm_up(self) -> None:
        """Search a generation that has just begun to serve, so that the first search does not wait for what it loads.

        Nothing counts it, and no server is asked for a vector.
        """
        serving = self._manager.serving
        if serving is None or serving.name == self._warm:
            return
        self._warm = serving.name
        serving.warm_up()
        try:
            words = serving.catalog.keywords.common_words(_WARM_UP_WORDS)
            for query in (" ".join(words), *words[:1]):  # a question, and a name
                self._search_as_user(
                    serving, query, SearchOptions(), None if self.embedder.asks_server else self._queries.embed
                )
        except Exception as error:  # noqa: BLE001 - the first search reports it
            log.info("the first search loads what it needs: %s", error)

    def _refresh(self) -> None:
        """Bring what is derived from the index up to date with it."""
        try:
            self._pinned.refresh(self._ask(lambda each: each.catalog.reader.answers() if each.catalog.is_current else ()) or ())
        except SemanticError as error:
            log.warning("questions that pages are pinned to are only found word for word: %s", error)
        self._load()
        if self._quality is not None:
            self._quality.refresh()
        if self._map is not None:
            self._map.refresh_if_due()

    def _refresh_names(self) -> None:
        """Load names that searches need, and add those that suggestions need to an index of an earlier version."""
        serving = self._manager.serving
        if serving is not None:
            try:
                serving.catalog.reader.page_names()
                serving.catalog.labels.refresh()
            except CatalogError as error:
                log.info("names are loaded by the first search, and some are not suggested: %s", error)

    # Searches

    def search(self, queries: Sequence[str], options: SearchOptions, urls: PageUrls = NO_URLS) -> list[Answer]:
        if options.wait:
            self._manager.wait_until_head(options.wait_seconds)
        serving = self._manager.serving
        parsed = [self._parse(query, options, serving) for query in queries]
        pending = self._submit(parsed, options.mode)
        start = time.perf_counter()
        try:
            answers = self._search(parsed, pending, options, urls)
            answers = [with_excerpts(answer, options) for answer in answers]
        except Exception:
            self._telemetry.record_failure(Failure.SEARCH)
            raise
        seconds = time.perf_counter() - start
        answers = [_page(query, answer, options, seconds) for query, answer in zip(queries, answers, strict=True)]
        if options.counts:
            self._insights.record_search(answers, options.mode, seconds)
        self._monitoring.record_search(answers, options, seconds)
        serving = self._manager.serving
        is_whole = serving is not None and not any(answer.index.progress for answer in answers)
        if serving is not None and is_whole and options.counts and not self._model.why_keywords_only(serving):
            self._watch.record(serving, self._manager.previous, answers)
        return answers

    def _parse(self, query: str, options: SearchOptions, generation: Generation | None) -> Query:
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

    def _submit(self, queries: Sequence[Query], mode: Mode) -> list[list[Future[Matrix]]]:
        """Begin to embed queries, each with its variants; none if their vectors cannot be used."""
        if not self._needs_vectors(mode):
            return []
        pending = self._queries.submit(each.text for query in queries for each in query.all)
        return [[pending[text] for text in dict.fromkeys(each.text for each in query.all)] for query in queries]

    def _search(
        self, queries: Sequence[Query], pending: list[list[Future[Matrix]]], options: SearchOptions, urls: PageUrls
    ) -> list[Answer]:
        wanted = structs.replace(options, rerank=self._reranking.is_wanted(options))
        self._queries.wait_for_server(list(chain.from_iterable(pending)))
        found = self._search_once(queries, pending, wanted, urls)
        if found is None:
            return [_answer(query, NO_RESULT, self._manager.freshness(None)) for query in queries]
        reranked = self._reranking.rerank([query.text for query in queries], [shortlist for _, shortlist in found], options)
        if any(each.scores for each in reranked):  # the index may have changed since the candidates were read
            found = self._search_once(queries, pending, wanted, urls, [each.scores for each in reranked]) or found
        return [each.applied_to(answer) for (answer, _), each in zip(found, reranked, strict=True)]

    def _search_once(
        self,
        queries: Sequence[Query],
        pending: list[list[Future[Matrix]]],
        options: SearchOptions,
        urls: PageUrls,
        rerank_scores: Sequence[RerankScores] = (),
    ) -> list[tuple[Answer, Shortlist]] | None:
        """Search one state of the serving generation; return each answer and its shortlist; None without an index.

        `pending` are the queries' vectors; if there are none although they are needed now, they are added.
        """

        def answers(generation: Generation) -> list[tuple[Answer, Shortlist]]:
            index = self._manager.freshness(generation)
            keywords_only = self._model.why_keywords_only(generation)
            if not pending:  # another generation may have taken over since
                pending.extend(self._submit(queries, options.mode))
            given = pending if pending and not keywords_only else [[]] * len(queries)
            vectors = [partial(mean_vector, of_query) for of_query in given]
            scores = rerank_scores or [{}] * len(queries)
            found = [
                self._search_generation(generation, *each, options, urls) for each in zip(queries, vectors, scores, strict=True)
            ]
            if any(each.is_keyword_index_corrupt for each in found):
                self._manager.mark_keyword_index_damaged(generation)
            failures = self._queries.report_failures(pending) if pending else [None] * len(queries)
            return [
                (_answer(query, each, index, keywords_only or failure), each.shortlist)
                for query, each, failure in zip(queries, found, failures, strict=True)
            ]

        with self._batch_slot if len(queries) > 1 else nullcontext(), self._search_slots:
            return self._ask(answers)

    def _search_generation(
        self,
        generation: Generation,
        query: Query,
        vector: QueryVector,
        rerank_scores: RerankScores,
        options: SearchOptions,
        urls: PageUrls = NO_URLS,
    ) -> SearchResult:
        scale = self._recipe.scale(generation)
        pinned = self._pinned.paths(query, vector, generation, scale)
        embeds = options.needs_best_sentence and not self.embedder.asks_server  # a server would take too long
        embed = self._paragraphs.embed if embeds else None
        found = search_chunks(generation, replace(query, pinned=pinned), vector, options, scale, rerank_scores, urls, embed)
        if not options.markdown:
            return found
        return with_markdown(found, self._repository, generation.catalog, options.section_words)

    def _asking_in_background(self, generation: Generation) -> Ask:
        """Return what searches a generation, serving or not, as for a user but without a reranker; nothing counts it.

        It rests after each search, so as to use a fifth of one core at most, and embeds a query once for searches in a row.
        Its errors: `Stopped`; those of the model, of the catalog and of ChromaDB.
        """
        embed = lru_cache(maxsize=1)(self._queries.embed)

        def ask(text: str, options: SearchOptions) -> SearchResult:
            start = time.thread_time()
            found = self._search_as_user(generation, text, options, embed)
            self._manager.pause(_REST_FACTOR * (time.thread_time() - start))
            return found

        return ask

    def _search_as_user(
        self, generation: Generation, text: str, options: SearchOptions, embed: Callable[[tuple[str, ...]], Matrix] | None
    ) -> SearchResult:
        """Search a generation without a reranker, by words alone without `embed`; nothing counts it.

        Errors: those of the model, the catalog and ChromaDB.
        """
        query = self._parse(text, options, generation)
        texts = tuple(dict.fromkeys(each.text for each in query.all))
        vector = embed(texts) if embed and self._recipe.matches_vectors(generation) else None
        with self._search_slots, generation.catalog.snapshot():
            return self._search_generation(generation, query, lambda: vector, {}, options)

    def _needs_vectors(self, mode: Mode) -> bool:
        """Whether to embed queries: not if the vectors cannot be used, nor on a server for a keyword search."""
        serving = self._manager.serving
        if serving is None or (mode is Mode.KEYWORD and self.embedder.asks_server):
            return False
        try:
            return self._recipe.matches_vectors(serving)
        except CatalogError:  # the search itself handles that
            return True

    # Questions

    def ask(self, request: AskRequest, urls: PageUrls = NO_URLS) -> AskProgress:
        return self._questions.ask(request, urls)

    def ask_progress(self, id_: str, seen: int | None) -> AskProgress:
        return self._questions.progress(id_, seen)

    def cancel_ask(self, id_: str) -> None:
        self._questions.cancel(id_)

    # Pages

    def suggest(self, request: SuggestRequest, urls: PageUrls = NO_URLS) -> Suggestions:
        def suggested(generation: Generation) -> Suggestions:
            found = suggest(generation.catalog, request, urls)
            tags = suggest_tags(generation.catalog, request)
            return Suggestions(request.query, found, self._manager.freshness(generation), tags)

        return self._ask(suggested) or Suggestions(request.query, (), self._manager.freshness(None))

    def related(self, path: str, n: int, urls: PageUrls = NO_URLS) -> RelatedPages:
        def nearest(generation: Generation) -> RelatedPages:
            known = self._known_path(generation, path)
            self._manager.indexer.opened.append(known)
            pages = related_pages(generation, known, n, self._recipe.scale(generation), urls)
            return RelatedPages(known, pages, len(pages), self._manager.freshness(generation))

        return self._ask_for_page(path, nearest)

    def draft_links(self, request: DraftRequest, urls: PageUrls = NO_URLS) -> DraftLinks:
        def linked(generation: Generation) -> DraftLinks:
            catalog, text, path = generation.catalog, request.text, request.path
            mentions = find_mentions(catalog, text, path, generation.languages, urls)
            pages, problem = self._pages_about(generation, request, urls)
            is_there = catalog.pages.find_path(path) is not None
            scale = self._recipe.scale(generation)
            duplicates = () if is_there else likely_duplicates(catalog, text, path, pages, scale, urls)
            return DraftLinks(mentions, pages, duplicates, self._manager.freshness(generation), problem)

        return self._ask(linked) or DraftLinks((), (), (), self._manager.freshness(None), FIRST_BUILD)

    def _pages_about(
        self, generation: Generation, request: DraftRequest, urls: PageUrls
    ) -> tuple[tuple[RelatedPage, ...], str | None]:
        """Return the pages about the same as a text, and why there are none if the model was not asked or failed."""
        if self.embedder.asks_server:
            return (), "texts that are not saved are not sent to the model's server"
        if not self._recipe.matches_vectors(generation):
            return (), self._model.why_keywords_only(generation) or "the index has no vectors of this model"
        scale = self._recipe.scale(generation)
        asked = generation, request.text, request.cursor, request.path, request.n
        try:
            return pages_about(*asked, self._paragraphs.embed, scale, urls), None
        except ModelError as error:
            return (), f"the embedding model failed: {error}"

    def inspect_page(self, path: str, urls: PageUrls = NO_URLS) -> PageInspection:
        def inspected(generation: Generation) -> PageInspection:
            known = self._known_path(generation, path)
            return inspect_page(generation, self.embedder, known, self._manager.freshness(generation), urls)

        return self._ask_for_page(path, inspected)

    def pages(self, request: PageListRequest, urls: PageUrls = NO_URLS) -> PageList:
        def listed(generation: Generation) -> PageList:
            found, total = generation.catalog.pages.select(request.filters, request.limit, request.offset, request.sort)
            addressed = found if urls.prefix is None else tuple(structs.replace(page, url=urls.of(page.path)) for page in found)
            return PageList(addressed, total, self._manager.freshness(generation))

        return self._ask(listed) or PageList((), 0, self._manager.freshness(None))

    def links(self, path: str) -> PageLinks:
        def linked(generation: Generation) -> PageLinks:
            if self._manager.excluded_pages(generation).get(path) == EXCLUDE:  # the reader of a page reads its front matter
                raise page_excluded(path, EXCLUDE)
            return generation.catalog.pages.links(path)

        return self._ask(linked) or PageLinks((), ())

    def map(self, urls: PageUrls = NO_URLS) -> WikiMap:
        def mapped(generation: Generation | None) -> WikiMap:
            index = self._manager.freshness(generation)
            return self._map.answer(generation, index, urls) if self._map else switched_off(index)

        return self._ask(mapped) or mapped(None)

    def _health_checks(self) -> Checks:
        """Return what looks for findings, by kind."""
        return {
            FindingKind.DUPLICATE: find_duplicates,
            FindingKind.ORPHAN: find_orphans,
            FindingKind.BROKEN_LINK: find_broken_links,
            FindingKind.MENTION: find_unlinked_names,
            FindingKind.STALE: find_stale,
            FindingKind.UNANSWERED: find_unanswered(self._insights.unanswered, self._ask_again),
        }

    def _ask_again(self, generation: Generation, text: str) -> Asked:
        """Ask a question in the background; nothing counts it. Vectors are cached: a server is asked once for them."""
        query = self._parse(text, RANKED_PAGES, generation)
        texts = [each.text for each in query.all] if self._recipe.matches_vectors(generation) else []
        vector = mean_vector(list(self._queries.submit(texts).values()))
        with self._search_slots, generation.catalog.snapshot():
            return Asked(vector, self._search_generation(generation, query, lambda: vector, {}, RANKED_PAGES))

    def health(self, request: HealthRequest, urls: PageUrls = NO_URLS) -> HealthReport:
        self._health.refresh()
        index = self._ask(self._manager.freshness) or self._manager.freshness(None)
        return self._health.answer(request, index, urls)

    def dismiss(self, request: DismissalRequest) -> DismissalAnswer:
        self._health.refresh()
        return self._health.dismiss(request)

    def _ask_for_page(self, path: str, question: Callable[[Generation], T]) -> T:
        """Return what the serving generation says of a page; `PageNotFoundError` if there is none yet."""
        found = self._ask(question)
        if found is None:
            raise PageNotFoundError(f"the index has no page {path!r} yet: it is being built")
        return found

    def _known_path(self, generation: Generation, path: str) -> str:
        """Return a page's path as the index has it, whatever the case; `PageNotFoundError` if it has no such page."""
        known = generation.catalog.pages.find_path(path)
        if known is not None:
            return known
        for excluded, excluder in self._manager.excluded_pages(generation).items():
            if page_key(excluded) == page_key(path):
                raise page_excluded(excluded, excluder)
        raise page_not_found("the index", path, generation.catalog.blobs())

    # The serving generation

    def _ask(self, question: Callable[[Generation], T]) -> T | None:
        """Return what the serving generation answers, None if there is none; ask again if it fails or is replaced."""
        generation = self._manager.serving
        while generation is not None:
            store = generation.vector_store
            try:
                with generation.catalog.snapshot():
                    return question(generation)
            except (VectorStoreError, CatalogError) as error:
                failure = error
            if isinstance(failure, CatalogError):
                self._telemetry.record_failure(Failure.CATALOG)
            if self._manager.is_stopping:
                raise IndexUnavailableError("the index daemon is ending") from failure
            if generation is not self._manager.serving:
                generation = self._manager.serving
            else:
                generation = self._recover(generation, store, failure)
        return None

    def _recover(self, failed: Generation, store: VectorStore, failure: VectorStoreError | CatalogError) -> Generation:
        """Return the generation to ask next: the same without its vector store, or the successor of one whose catalog fails."""
        try:
            if isinstance(failure, CatalogError):
                return self._successor(failed, failure)
            failed.mirror.handle_failure(store, failure)
        except CatalogError as error:
            return self._successor(failed, error)
        finally:
            self._manager.wake()  # only now: an earlier sync would find nothing to refill
        return failed

    def _successor(self, failed: Generation, failure: CatalogError) -> Generation:
        """Return what replaces a generation whose catalog fails; `IndexUnavailableError` if nothing does soon."""
        if isinstance(failure, CatalogCorruptError):
            self._manager.mark_corrupt(failed)
            successor = self._manager.wait_for_successor(failed, _SUCCESSOR_SECONDS)
            if successor is not None:
                return successor
        raise IndexUnavailableError(f"the index is being repaired: {failure}") from failure

    # The index as a whole

    def version(self) -> str | None:
        if self._queries.last_failure or self._reranking.is_loading or self._reranking.error:
            return None

        def of(generation: Generation) -> str | None:
            index = self._manager.freshness(generation)
            if index.commit != index.head or index.pending_pages or index.progress or index.error:
                return None
            if not self._recipe.matches(generation):
                return None
            revision = generation.catalog.meta("revision")  # questions are embedded only after it is counted up
            return f"{generation.name} {revision} {index.head} {self._settings} {self._pinned.fingerprint}"

        return self._ask(of)

    def status(self, urls: PageUrls = NO_URLS) -> IndexStatus:
        return self._status.status(urls)

    def insight(self) -> Insight:
        return self._insights.insight()

    def metrics(self) -> str:
        quality = self._quality.latest if self._quality else None
        return self._monitoring.metrics(self.status(), self._manager, quality, *self._queries.cache_hits_and_misses)

    def reindex(self, *, full: bool = False) -> RebuildStatus:
        return self._manager.reindex(full=full)

    def roll_back(self, reason: str = "an administrator asked for it") -> ReindexStarted:
        def record(previous: Generation, serving: Generation) -> None:
            for generation in (previous, serving):
                note_choice(generation)
            self._rollback.write(previous.settings, reason)

        try:
            previous = self._manager.roll_back(record)
        except RollbackError:
            self._rollback.restore()
            raise
        self.must_reopen = True
        return ReindexStarted("started", generation=previous.name)

    def _roll_back_automatically(self, reason: str) -> None:
        serving = self._manager.serving
        try:
            if serving is None or not may_roll_back(serving):
                return
            self.roll_back(reason)
        except SemanticError as error:
            log.warning("searches are worse than before (%s), and the index is not rolled back: %s", reason, error)
        else:
            log.warning("the index was rolled back: %s", reason)

    def job(self, job: str) -> RebuildStatus:
        return self._manager.job(job)

    def refresh(self, paths: Sequence[str]) -> ReindexStarted:
        def known(generation: Generation) -> tuple[str, ...]:
            return tuple(self._known_path(generation, path) for path in paths)

        found = self._ask(known)
        if found is None:
            raise IndexUnavailableError("the index is being built, and reads every page anyway")
        return ReindexStarted("started", pages=found, job=self._manager.refresh_pages(found).job)

    def notify(self) -> None:
        self._manager.wake()


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


def _generations(settings: Settings, telemetry: Telemetry) -> GenerationStore:
    facts = index_settings(settings)
    spec = CollectionSpec(settings.collection, settings.chroma_documents, model_config(facts))
    vectors = settings.vectors
    if vectors == "auto" and settings.vector_search == "chroma" and settings.chroma_url is not None:
        vectors = "disk"
    largest = EXACT_FLOAT32 if vectors == "float32" else EXACT
    exact_up_to = {"auto": largest, "exact": math.inf, "chroma": 0.0}[settings.vector_search]
    open_generation = partial(
        Generation,
        open_store=_store_opener(settings),
        telemetry=telemetry,
        spec=spec,
        exact_up_to=exact_up_to,
        vectors=vectors,
    )
    return GenerationStore(settings.data_dir, open_generation, facts)


def _store_opener(settings: Settings) -> OpenStore:
    """Return what opens the store of a collection: in a directory, or on a server, where each refill has another name."""
    if settings.chroma_url is None:
        return partial(EmbeddedChromaStore, link=settings.data_dir / PUBLIC_LINK)
    tenant, database = settings.chroma_database.split("/")
    server = ChromaServer(settings.chroma_url, settings.chroma_token, tenant, database, settings.chroma_ca)
    ownership = CollectionOwnership(settings.data_dir / "chroma-server.json", server.place)

    def open_on_server(directory: Path, spec: CollectionSpec) -> ChromaServerStore:
        return ChromaServerStore(server, f"{spec.name}-{directory.parent.name}-{directory.name}", ownership, spec)

    return open_on_server


def _judged_queries(path: Path | None) -> list[JudgedQuery]:
    return read_judged_queries(path) if path is not None else []
