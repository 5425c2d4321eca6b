"""The index in the daemon: assembles the services that answer the calls of `IndexService`."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from functools import partial

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import CatalogClosedError, CatalogError, SemanticError
from otterwiki_semantic.core.heap import freeze_heap
from otterwiki_semantic.core.settings import Settings, with_index_settings
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Telemetry
from otterwiki_semantic.daemon.answer_service import AnswerService
from otterwiki_semantic.daemon.health.reporter import HealthReporter
from otterwiki_semantic.daemon.health.unanswered import find_unanswered
from otterwiki_semantic.daemon.page_service import PageService
from otterwiki_semantic.daemon.reports.insight import Insights
from otterwiki_semantic.daemon.reports.search_log import SlowSearches
from otterwiki_semantic.daemon.rollback import RollbackFile, Rollbacks
from otterwiki_semantic.daemon.search_service import Searcher, SearchService
from otterwiki_semantic.daemon.serving_reader import ServingReader
from otterwiki_semantic.daemon.status import StatusReport
from otterwiki_semantic.daemon.wiki_map.builder import WikiMapBuilder
from otterwiki_semantic.embedding import open_embedder
from otterwiki_semantic.indexing import IndexManager, IndexRecipe, ModelStatus, QualityGate
from otterwiki_semantic.search.evaluation import read_judged_queries
from otterwiki_semantic.search.reranking import RerankStage, open_reranker
from otterwiki_semantic.storage import Generation, claim_data_directory, open_generations

_CLOSE_SECONDS = 8.0

log = logging.getLogger(__name__)


class IndexEngine:
    """The `IndexService` of the daemon. Only the process that holds the data directory's lock may create one."""

    def __init__(self, settings: Settings) -> None:
        rollback_file = RollbackFile(settings)
        settings = rollback_file.effective(settings)
        repository = Repository.of(settings)
        claim_data_directory(settings.data_dir, repository)
        telemetry = _telemetry()
        self.embedder = open_embedder(settings)
        recipe = IndexRecipe(self.embedder, settings.chunks, settings.languages)
        self._searcher = searcher = Searcher(settings, repository, recipe, telemetry)
        self._manager = manager = _manager(settings, repository, recipe, searcher, telemetry)
        self._rollbacks = rollbacks = Rollbacks(manager, rollback_file)
        self._reranking = RerankStage(open_reranker(settings), telemetry)
        reader = ServingReader(manager, telemetry)
        self._searches = searches = SearchService(settings, manager, reader, searcher, self._reranking, telemetry)
        self._answers = AnswerService(settings, searches.search, searcher.paragraphs)
        pages = PageService(manager, reader, searcher.paragraphs)
        self._map = WikiMapBuilder(settings, manager, reader)
        self._insights = insights = Insights(settings, manager, rollbacks)
        questions = find_unanswered(insights.unanswered, searcher.ask_again)
        health = HealthReporter(settings, repository, manager, reader, questions)
        parts = repository, manager, searcher.queries, self._reranking, insights
        report = StatusReport(*parts, rollback_file.status, telemetry)
        searches.observers += [telemetry.record_search, SlowSearches().record, insights.record_search, rollbacks.record_search]
        manager.on_synced = self._follow_up
        self._warm = ""
        """The name of the generation that was last warmed up."""
        self._warming = threading.Lock()

        self.search, self.version = searches.search, searches.version
        self.ask, self.ask_progress, self.cancel_ask = self._answers.ask, self._answers.progress, self._answers.cancel
        self.suggest, self.related, self.draft_links = pages.suggest, pages.related, pages.draft_links
        self.inspect_page, self.pages, self.links, self.map = pages.inspect_page, pages.pages, pages.links, self._map.map
        self.health, self.dismiss = health.health, health.dismiss
        self.status, self.metrics, self.insight = report.status, report.metrics, insights.insight
        self.reindex, self.roll_back, self.refresh = manager.rebuilds.request, rollbacks.roll_back, pages.refresh
        self.job, self.notify = manager.job, manager.wake

    def start(self) -> None:
        """Open the serving generation, if there is one, and start syncing it with HEAD in the background."""
        self._manager.start()
        threading.Thread(target=self._prepare, name="warm-up", daemon=True).start()
        self._insights.start()
        self._reranking.start()

    def close(self, timeout: float = _CLOSE_SECONDS) -> None:
        """Stop the work at the next step, waiting up to `timeout` seconds twice, and close the files."""
        self._map.stop()
        self._answers.close()
        self._manager.stop(timeout)
        self._insights.close()
        self._reranking.close()
        self._searcher.queries.close()

    @property
    def must_reopen(self) -> bool:
        """Whether the index must be reopened with other settings after a rollback."""
        return self._rollbacks.is_done

    def _prepare(self) -> None:
        """Load the index, then check it: a check takes as long, and the first search need not wait for it."""
        try:
            self._load()
        finally:
            self._manager.check_catalog()

    def _follow_up(self) -> None:
        serving = self._manager.serving
        try:
            self._searcher.pinned.refresh(serving.catalog.reader.answers() if serving and serving.catalog.is_current else ())
        except CatalogClosedError:
            pass
        except SemanticError as error:
            log.warning("questions that pages are pinned to are only found word for word: %s", error)
        self._load()
        if self._insights.quality is not None:
            self._insights.quality.refresh()
        self._map.refresh()

    def _load(self) -> None:
        serving = self._manager.serving
        if serving is None:
            return
        with self._warming:
            if serving.name != self._warm:
                self._warm = serving.name
                self._searcher.warm_up(serving)
                freeze_heap()
        try:
            serving.catalog.reader.page_names()
        except CatalogError as error:
            log.info("names are loaded by the first search: %s", error)


def _telemetry() -> Telemetry:
    try:
        from otterwiki_semantic.daemon.reports.prometheus import PrometheusTelemetry
    except ImportError:  # prometheus-client is not installed
        return NO_TELEMETRY
    return PrometheusTelemetry()


def _manager(
    settings: Settings, repository: Repository, recipe: IndexRecipe, searcher: Searcher, telemetry: Telemetry
) -> IndexManager:
    gate = QualityGate(
        recipe,
        lambda: read_judged_queries(settings.eval_queries) if settings.eval_queries else [],
        lambda generation: searcher.asking_in_background(generation, manager.index.pause),
    )
    generations, recipe_of = open_generations(settings, telemetry), partial(_recipe_of, settings, recipe)
    manager = IndexManager(repository, generations, ModelStatus(recipe), gate, settings.sync_interval, recipe_of, telemetry)
    return manager


def _recipe_of(settings: Settings, recipe: IndexRecipe, generation: Generation) -> IndexRecipe:
    """Return the recipe of a generation that was built with other settings than `recipe`."""
    own = with_index_settings(settings, generation.settings)
    has_same_model = replace(own, chunks=settings.chunks, languages=settings.languages) == settings
    return IndexRecipe(recipe.embedder if has_same_model else open_embedder(own), own.chunks, own.languages)
