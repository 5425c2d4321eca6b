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

from otterwiki_semantic import __version__
from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.pages import page_not_found
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
    Answer,
    Filters,
    Freshness,
    IndexStatus,
    Insight,
    Mode,
    PageInspection,
    PageLinks,
    PageList,
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
from otterwiki_semantic.search import RerankScores, Shortlist, inspect_page, parse_query, related_pages, search_chunks
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

    def search(self, queries: Sequence[str], options: SearchOptions) -> list[Answer]:
        """See `IndexService`."""
        parsed = [parse_query(query) for query in queries]
        texts = [query.text for query in parsed]
        coming = self._vectors.coming(texts) if self._asks_by_meaning(options.mode) else []
        if options.wait:
            self._keeper.wait_until_head(options.wait)
        start = time.perf_counter()
        asked = replace(options, rerank=self._rereading.is_wanted(options))

        def answers(readings: Sequence[RerankScores], generation: Generation) -> list[tuple[Answer, Shortlist]]:
            index = self._keeper.freshness(generation)
            by_words = self._way.why_words_alone(generation)
            calibration = self._way.calibration(generation)
            if not coming and self._asks_by_meaning(options.mode):  # another generation serves since
                coming.extend(self._vectors.coming(texts))
            known = coming if coming and not by_words else [None] * len(parsed)
            given = [partial(vector_if_made, vector) for vector in known]
            found = [
                search_chunks(generation, query, vector, asked, calibration, reading)
                for query, vector, reading in zip(parsed, given, readings, strict=True)
            ]
            if any(each.is_damaged for each in found):
                self._keeper.replace(generation)
            why = by_words or self._vectors.failure(coming)
            return [
                (
                    Answer(query, each.hits, index, each.confident, why or each.degraded or index.error, each.facets),
                    each.shortlist,
                )
                for query, each in zip(queries, found, strict=True)
            ]

        def ask(readings: Sequence[RerankScores]) -> list[tuple[Answer, Shortlist]] | None:
            with self._places:
                return self._ask(partial(answers, readings))

        self._vectors.wait_for_server(coming)
        try:
            found = self._rereading.answers(texts, options, ask)
        except Exception:
            self._watcher.failed(Failure.SEARCH)
            raise
        if found is None:
            index = self._keeper.freshness(None)
            found = [Answer(query, (), index) for query in queries]
        seconds = time.perf_counter() - start
        if options.note:
            self._insights.note(found, options.mode, seconds)
        self._monitoring.searched(found, options, seconds)
        return found

    def _asks_by_meaning(self, mode: Mode) -> bool:
        """Whether the model is to be asked for queries: not in vain, and not a server for a search by words."""
        serving = self._keeper.serving
        if serving is None or (mode is Mode.KEYWORD and self.embedder.asks_server):
            return False
        try:
            return self._way.embeds_for(serving)
        except CatalogError:  # whoever asks it next sees to that
            return True

    def related(self, path: str, n: int) -> RelatedPages:
        """See `IndexService`."""

        def nearest(generation: Generation) -> RelatedPages:
            known = _known_path(generation, path)
            calibration = self._way.calibration(generation)
            pages = related_pages(generation, known, n, calibration.of_model(calibration.related))
            return RelatedPages(known, pages, self._keeper.freshness(generation))

        return self._of_page(path, nearest)

    def pages(self, filters: Filters, limit: int, offset: int) -> PageList:
        """See `IndexService`."""

        def listed(generation: Generation) -> PageList:
            return PageList(*generation.catalog.directory.pages(filters, limit, offset), self._keeper.freshness(generation))

        return self._ask(listed) or PageList((), 0, self._keeper.freshness(None))

    def links(self, path: str) -> PageLinks:
        """See `IndexService`."""
        return self._ask(lambda generation: generation.catalog.directory.links(path)) or PageLinks((), ())

    def inspect_page(self, path: str) -> PageInspection:
        """See `IndexService`."""

        def seen(generation: Generation) -> PageInspection:
            known = _known_path(generation, path)
            return inspect_page(generation, self.embedder, known, self._keeper.freshness(generation))

        return self._of_page(path, seen)

    def _of_page(self, path: str, question: Callable[[Generation], T]) -> T:
        """Give what the serving generation tells of a page; `PageNotFoundError` if there is none yet."""
        found = self._ask(question)
        if found is None:
            raise PageNotFoundError(f"the index has no page {path!r} yet: it is being built")
        return found

    def map(self) -> WikiMap:
        """See `IndexService`."""

        def mapped(generation: Generation | None) -> WikiMap:
            index = self._keeper.freshness(generation)
            return self._mapper.answer(generation, index) if self._mapper else switched_off(index)

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
                self._watcher.failed(Failure.CATALOG)
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
        """See `IndexService`."""
        return self._insights.insight()

    def metrics(self) -> str:
        """See `IndexService`."""
        return self._monitoring.text(self.status(), self._keeper, *self._vectors.hits_and_misses)

    def status(self) -> IndexStatus:
        """See `IndexService`."""
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
        """See `IndexService`."""
        return self._keeper.reindex(full=full)

    def refresh(self, paths: Sequence[str]) -> tuple[str, ...]:
        """See `IndexService`."""

        def known(generation: Generation) -> tuple[str, ...]:
            return tuple(_known_path(generation, path) for path in paths)

        again = self._ask(known)
        if again is None:
            raise IndexUnavailableError("the index is being built, and reads every page anyway")
        self._keeper.read_again(again)
        return again

    def notify(self) -> None:
        """See `IndexService`."""
        self._keeper.wake()


def _known_path(generation: Generation, path: str) -> str:
    """Give a page's path as the index has it, whatever the case; `PageNotFoundError` for one that it does not have."""
    known = generation.catalog.directory.path_like(path)
    if known is None:
        raise page_not_found("the index", path, generation.catalog.blobs())
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
