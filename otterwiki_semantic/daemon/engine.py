"""The index in the process that owns it: the model, the generation that serves, and the answers."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore
from typing import TypeVar

from msgspec import structs

from otterwiki_semantic import __version__
from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.pages import page_unknown
from otterwiki_semantic.core.errors import (
    CatalogCorruptError,
    CatalogError,
    IndexUnavailableError,
    PageNotFoundError,
    ParameterError,
    RebuildRefusedError,
    RepositoryError,
    VectorStoreError,
)
from otterwiki_semantic.core.records import (
    FIRST_BUILD,
    NO_URLS,
    Answer,
    Freshness,
    IndexStatus,
    Insight,
    Mode,
    PageInspection,
    PageLinks,
    PageList,
    PageListRequest,
    PageUrls,
    Problem,
    RebuildStatus,
    RelatedPages,
    SearchOptions,
    WikiMap,
)
from otterwiki_semantic.core.remedies import problem
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.telemetry import Failure
from otterwiki_semantic.daemon.reports.insight import Insights
from otterwiki_semantic.daemon.reports.monitoring import Monitoring
from otterwiki_semantic.daemon.wiki_map.builder import WikiMapBuilder, switched_off
from otterwiki_semantic.embedding import QueryEmbedder, open_embedder, vector_if_made
from otterwiki_semantic.indexing import IndexManager, IndexRecipe
from otterwiki_semantic.search import (
    NO_RESULT,
    Query,
    RerankScores,
    SearchResult,
    Shortlist,
    inspect_page,
    parse_query,
    related_pages,
    search_chunks,
)
from otterwiki_semantic.search.evaluation import JudgedQuery, read_judged_queries
from otterwiki_semantic.search.reranking import BoundedReranker, RerankStage, open_reranker
from otterwiki_semantic.storage import (
    ChromaServer,
    ChromaServerVectors,
    ChromaVectors,
    CollectionOwnership,
    Counts,
    Generation,
    GenerationStore,
    OpenStore,
    VectorStore,
)

_SEARCHES_AT_A_TIME = 2
"""More of them take the interpreter from each other: four threads answer 109 searches a second, two of them at a time 145."""
_CLOSE_SECONDS = 8.0
_SUCCESSOR_SECONDS = 2.0
_TRIED_SOON = "nothing: they are tried again as soon as the model can be reached, within five minutes"
_TRIED_AGAIN = "nothing: they are tried again within an hour; a page that fails again and again has to be changed"

T = TypeVar("T")

log = logging.getLogger(__name__)


class IndexEngine:
    """An `IndexService` that answers by itself. Only the process that holds the data directory's lock may make one."""

    def __init__(self, settings: Settings) -> None:
        repository = Repository(settings.repository)
        self._monitoring = Monitoring(settings, repository)
        self._watcher = self._monitoring.watcher
        self.embedder = open_embedder(settings)
        self._vectors = QueryEmbedder(self.embedder, self._watcher)
        self._places = BoundedSemaphore(_SEARCHES_AT_A_TIME)
        reranker = open_reranker(settings)
        self._rereading = RerankStage(BoundedReranker(reranker) if reranker else None, self._watcher)
        questions = partial(_questions, settings.eval_queries)
        self._way = IndexRecipe(self.embedder, settings.chunks, questions, self._vectors.vector_of)
        generations = GenerationStore(settings.data_dir, _store_opener(settings), self._watcher)
        self._keeper = IndexManager(repository, generations, self._way, settings.sync_interval, self._watcher)
        self._insights = Insights(settings.data_dir, self._keeper.syncs, keeps_searches=settings.search_log)
        self._mapper: WikiMapBuilder | None = None
        if settings.map:
            self._mapper = WikiMapBuilder(settings.data_dir / "map.json", self._keeper.settled, self._keeper.run_in)
            self._keeper.after_sync = self._mapper.look

    def start(self) -> None:
        """Open the serving generation, if there is one, and begin to keep it equal to HEAD, in the background."""
        self._keeper.start()
        self._insights.start()
        self._rereading.start()

    def close(self) -> None:
        """Stop the work between two steps and close the files."""
        if self._mapper is not None:
            self._mapper.stop()
        self._keeper.stop(_CLOSE_SECONDS)
        self._insights.close()
        self._rereading.close()
        self._vectors.close()

    # Questions

    def search(self, queries: Sequence[str], options: SearchOptions, urls: PageUrls = NO_URLS) -> list[Answer]:
        parsed = [parse_query(query) for query in queries]
        if options.wait:
            self._keeper.wait_until_head(options.wait_seconds)
        start = time.perf_counter()
        try:
            answers = self._search(parsed, options, urls)
        except Exception:
            self._watcher.record_failure(Failure.SEARCH)
            raise
        answers = [structs.replace(answer, query=query) for query, answer in zip(queries, answers, strict=True)]
        seconds = time.perf_counter() - start
        if options.counts:
            self._insights.note(answers, options.mode, seconds)
        self._monitoring.searched(answers, options, seconds)
        return answers

    def _search(self, queries: Sequence[Query], options: SearchOptions, urls: PageUrls) -> list[Answer]:
        wanted = replace(options, rerank=self._rereading.is_wanted(options))
        found = self._search_once(queries, wanted, urls)
        reranked = self._rereading.rerank([query.text for query in queries], [shortlist for _, shortlist in found], options)
        if any(each.scores for each in reranked):  # the index may have changed since the candidates were read
            found = self._search_once(queries, wanted, urls, [each.scores for each in reranked])
        return [each.applied_to(answer) for (answer, _), each in zip(found, reranked, strict=True)]

    def _search_once(
        self,
        queries: Sequence[Query],
        options: SearchOptions,
        urls: PageUrls,
        rerank_scores: Sequence[RerankScores] = (),
    ) -> list[tuple[Answer, Shortlist]]:
        """Search one state of the serving generation; return what a reranker is to read along with each answer."""
        texts = [query.text for query in queries]
        pending = self._vectors.coming(texts) if self._asks_by_meaning(options.mode) else []
        self._vectors.wait_for_server(pending)

        def answers(generation: Generation) -> list[tuple[Answer, Shortlist]]:
            index = self._keeper.freshness(generation)
            words_alone = self._way.why_words_alone(generation)
            is_late = not pending and self._asks_by_meaning(options.mode)  # another generation has taken over since
            vectors = self._vectors.coming(texts) if is_late else pending
            given = vectors if vectors and not words_alone else [None] * len(queries)
            found = [
                search_chunks(
                    generation, query, partial(vector_if_made, vector), options, self._way.calibration(generation), scores, urls
                )
                for query, vector, scores in zip(queries, given, rerank_scores or [{}] * len(queries), strict=True)
            ]
            if any(each.is_keyword_index_corrupt for each in found):
                self._keeper.replace(generation)
            degraded = words_alone or self._vectors.failure(vectors)
            return [(_answer(query, each, index, degraded), each.shortlist) for query, each in zip(texts, found, strict=True)]

        with self._places:
            found = self._ask(answers)
        return found or [(_answer(query, NO_RESULT, self._keeper.freshness(None)), {}) for query in texts]

    def _asks_by_meaning(self, mode: Mode) -> bool:
        """Whether the model is to be asked for queries: not in vain, and not a server for a search by words."""
        serving = self._keeper.serving
        if serving is None or (mode is Mode.KEYWORD and self.embedder.asks_server):
            return False
        try:
            return self._way.embeds_for(serving)
        except CatalogError:  # whoever asks it next sees to that
            return True

    def related(self, path: str, n: int, urls: PageUrls = NO_URLS) -> RelatedPages:

        def nearest(generation: Generation) -> RelatedPages:
            known = _known_path(generation, path)
            calibration = self._way.calibration(generation)
            pages = related_pages(generation, known, n, calibration.of_model(calibration.related), urls)
            return RelatedPages(known, pages, len(pages), self._keeper.freshness(generation))

        return self._of_page(path, nearest)

    def pages(self, request: PageListRequest, urls: PageUrls = NO_URLS) -> PageList:
        def listed(generation: Generation) -> PageList:
            found, total = generation.catalog.directory.pages(request.filters, request.limit, request.offset)
            addressed = found if urls.prefix is None else tuple(structs.replace(page, url=urls.of(page.path)) for page in found)
            return PageList(addressed, total, self._keeper.freshness(generation))

        return self._ask(listed) or PageList((), 0, self._keeper.freshness(None))

    def links(self, path: str) -> PageLinks:
        return self._ask(lambda generation: generation.catalog.directory.links(path)) or PageLinks((), ())

    def inspect_page(self, path: str, urls: PageUrls = NO_URLS) -> PageInspection:

        def seen(generation: Generation) -> PageInspection:
            known = _known_path(generation, path)
            return inspect_page(generation, self.embedder, known, self._keeper.freshness(generation), urls)

        return self._of_page(path, seen)

    def _of_page(self, path: str, question: Callable[[Generation], T]) -> T:
        """Give what the serving generation tells of a page; `PageNotFoundError` if there is none yet."""
        found = self._ask(question)
        if found is None:
            raise PageNotFoundError(f"the index has no page {path!r} yet: it is being built")
        return found

    def map(self, urls: PageUrls = NO_URLS) -> WikiMap:

        def mapped(generation: Generation | None) -> WikiMap:
            index = self._keeper.freshness(generation)
            return self._mapper.answer(generation, index, urls) if self._mapper else switched_off(index)

        return self._ask(mapped) or mapped(None)

    def _ask(self, question: Callable[[Generation], T]) -> T | None:
        """Give what the serving generation answers, None if there is none; one that fails or is replaced is asked again."""
        generation = self._keeper.serving
        while generation is not None:
            store = generation.vectors
            try:
                with generation.catalog.snapshot():
                    return question(generation)
            except (VectorStoreError, CatalogError) as error:
                failure = error
            if isinstance(failure, CatalogError):
                self._watcher.record_failure(Failure.CATALOG)
            if self._keeper.is_stopping:
                raise IndexUnavailableError("the index process is ending") from failure
            if generation is not self._keeper.serving:
                generation = self._keeper.serving
            else:
                generation = self._mended(generation, store, failure)
        return None

    def _mended(self, failed: Generation, store: VectorStore, failure: VectorStoreError | CatalogError) -> Generation:
        """Give the generation to ask again: itself without its store, or what takes the place of one whose catalog fails."""
        try:
            if isinstance(failure, CatalogError):
                return self._successor(failed, failure)
            failed.store_failed(store, failure)
        except CatalogError as error:
            return self._successor(failed, error)
        finally:
            self._keeper.wake()  # not sooner: a sync that came first would find nothing to be filled
        return failed

    def _successor(self, failed: Generation, failure: CatalogError) -> Generation:
        """Give what takes the place of a generation whose catalog fails; `IndexUnavailableError` if nothing does soon."""
        if isinstance(failure, CatalogCorruptError):
            self._keeper.report_damage(failed)
            successor = self._keeper.wait_for_successor(failed, _SUCCESSOR_SECONDS)
            if successor is not None:
                return successor
        raise IndexUnavailableError(f"the index is being repaired: {failure}") from failure

    # The index itself

    def insight(self) -> Insight:
        return self._insights.insight()

    def metrics(self) -> str:
        return self._monitoring.text(self.status(), self._keeper, *self._vectors.hits_and_misses)

    def status(self) -> IndexStatus:
        while True:
            generation = self._keeper.serving
            try:
                return self._status_of(generation, self._keeper.error)
            except CatalogError as error:
                if self._keeper.serving is generation:  # it is not being replaced
                    return self._status_of(None, error)

    def _status_of(self, generation: Generation | None, failure: Exception | None) -> IndexStatus:
        keeper, index = self._keeper, self._keeper.freshness(generation)
        counts = generation.catalog.counts() if generation else Counts(0, 0, 0)
        is_whole = generation is not None and generation.catalog.commit == index.head and not generation.is_refilling
        return IndexStatus(
            status="error" if failure else "ready" if is_whole else "indexing",
            index=index,
            pages=counts.pages,
            chunks=counts.chunks,
            vectors=counts.vectors,
            model=self.embedder.name,
            generation=generation.name if generation else None,
            collection=generation.vectors.name if generation else None,
            progress=keeper.sync_progress.snapshot(),
            rebuild=keeper.rebuilder.status(),
            last_sync=keeper.last_sync,
            last_error=(str(failure) or type(failure).__name__) if failure else None,
            embedded_texts=keeper.embedded_texts,
            owner_pid=os.getpid(),
            version=__version__,
            problems=tuple(self._problems(generation, failure, index)),
            is_outdated=generation is not None and keeper.rebuilder.is_outdated(generation),
            reranker=self._rereading.name,
            reranker_is_loading=self._rereading.is_loading,
        )

    def _problems(self, generation: Generation | None, failure: Exception | None, index: Freshness) -> list[Problem]:
        rebuilder = self._keeper.rebuilder
        found = [failure, RepositoryError(index.error) if index.error and not failure else None]
        if generation is not None:
            refusal = rebuilder.refusal(generation)
            unbuilt = RebuildRefusedError(refusal) if refusal else rebuilder.failure(generation)
            found += [generation.store_error, unbuilt]
        try:
            self._way.questions()
        except ParameterError as error:
            found.append(error)
        found += [self._vectors.last_failure, self._rereading.error]
        shown = [problem(error) for error in found if error is not None]
        shown += self._insights.problems()
        if self._way.error is not None:  # what it means for pages and questions is told, too
            shown.append(problem(self._way.error))
        if generation is not None and self.embedder.dimension and not self._way.embeds_for(generation):
            why = self._way.why_words_alone(generation) or ""
            shown.append(Problem(why, "nothing: wait until the other index is built"))
        elif generation is not None and (unfinished := generation.catalog.unfinished):
            why = self._keeper.indexer.model_error or rebuilder.indexer.model_error or "see owner.log"
            shown.append(
                Problem(
                    f"{unfinished} pages are found by their words alone, because the model failed: {why}",
                    _TRIED_SOON if self._keeper.indexer.model_is_left_alone else _TRIED_AGAIN,
                )
            )
        return shown

    def reindex(self, *, full: bool = False) -> RebuildStatus:
        return self._keeper.reindex(full=full)

    def refresh(self, paths: Sequence[str]) -> tuple[str, ...]:

        def known(generation: Generation) -> tuple[str, ...]:
            return tuple(_known_path(generation, path) for path in paths)

        again = self._ask(known)
        if again is None:
            raise IndexUnavailableError("the index is being built, and reads every page anyway")
        self._keeper.read_again(again)
        return again

    def notify(self) -> None:
        self._keeper.wake()


def _answer(query: str, found: SearchResult, index: Freshness, degraded: str | None = None) -> Answer:
    is_first_build = index.commit is None and index.head is not None
    return Answer(
        query=query,
        results=found.hits,
        total=len(found.hits),
        confident=found.confident,
        index=index,
        message=FIRST_BUILD if is_first_build else None,
        degraded=degraded or found.degraded or index.error,
        facets=found.facets,
    )


def _known_path(generation: Generation, path: str) -> str:
    """Give a page's path as the index has it, whatever the case; `PageNotFoundError` for one that it does not have."""
    known = generation.catalog.directory.path_like(path)
    if known is None:
        raise page_unknown("the index", path, generation.catalog.blobs())
    return known


def _store_opener(settings: Settings) -> OpenStore:
    """Give what opens the store of a collection: in a directory, or on a server, where each refilling has another name."""
    if settings.chroma_url is None:
        return ChromaVectors
    server = ChromaServer(
        settings.chroma_url, settings.chroma_token, settings.chroma_tenant, settings.chroma_database, settings.chroma_ca
    )
    claims = CollectionOwnership(settings.data_dir / "chroma-server.json", server.place)
    return lambda directory, collection: ChromaServerVectors(server, f"{collection}-{directory.name}", claims)


def _questions(path: Path | None) -> list[JudgedQuery]:
    return read_judged_queries(path) if path is not None else []
