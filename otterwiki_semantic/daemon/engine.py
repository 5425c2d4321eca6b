"""The index in the daemon: built here of its parts, whose methods answer the calls of `IndexService`."""

from __future__ import annotations

import hashlib
import logging
import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import CatalogError, SemanticError
from otterwiki_semantic.core.records import FindingKind
from otterwiki_semantic.core.settings import Settings, index_settings, with_index_settings
from otterwiki_semantic.core.telemetry import Telemetry
from otterwiki_semantic.daemon.asking import AnswerService
from otterwiki_semantic.daemon.health.duplicates import find_duplicates
from otterwiki_semantic.daemon.health.links import find_broken_links, find_orphans
from otterwiki_semantic.daemon.health.mentions import find_mentions
from otterwiki_semantic.daemon.health.reporter import HealthReporter
from otterwiki_semantic.daemon.health.stale import find_stale
from otterwiki_semantic.daemon.health.unanswered import find_unanswered
from otterwiki_semantic.daemon.page_service import PageService
from otterwiki_semantic.daemon.reports.insight import Insights
from otterwiki_semantic.daemon.reports.monitoring import Monitoring
from otterwiki_semantic.daemon.reports.quality import QualityMonitor
from otterwiki_semantic.daemon.rollback import RollbackFile, Rollbacks, SwapWatch
from otterwiki_semantic.daemon.search_service import SearchService
from otterwiki_semantic.daemon.searcher import Searcher
from otterwiki_semantic.daemon.serving_reader import ServingReader
from otterwiki_semantic.daemon.status import StatusReport
from otterwiki_semantic.daemon.wiki_map.builder import WikiMapBuilder
from otterwiki_semantic.embedding import CachedEmbedder, QueryEmbedder, model_config, open_embedder
from otterwiki_semantic.indexing import IndexManager, IndexRecipe, ModelStatus, QualityGate
from otterwiki_semantic.search.evaluation import JudgedQuery, read_judged_queries
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
    claim_data_directory,
)

_CLOSE_SECONDS = 8.0

log = logging.getLogger(__name__)


class IndexEngine:
    """An `IndexService` that answers itself. Only the process that holds the data directory's lock may create one."""

    def __init__(self, settings: Settings) -> None:
        rollback_file = RollbackFile(settings)
        settings = rollback_file.effective(settings)
        repository = Repository.of(settings)
        claim_data_directory(settings.data_dir, repository)
        monitoring = Monitoring(repository)
        telemetry = monitoring.telemetry
        self.embedder = open_embedder(settings)
        recipe = IndexRecipe(self.embedder, settings.chunks, settings.languages)
        model = ModelStatus(recipe)
        self._queries = QueryEmbedder(self.embedder, telemetry)
        self._reranking = RerankStage(open_reranker(settings), telemetry)
        paragraphs = CachedEmbedder(self.embedder)
        self._searcher = searcher = Searcher(settings, repository, recipe, self._queries, paragraphs)
        gate = QualityGate(
            recipe,
            partial(_judged_queries, settings.eval_queries),
            lambda generation: searcher.asking_in_background(generation, manager.index.pause),
        )
        generations = _generations(settings, telemetry)
        self._manager = manager = IndexManager(
            repository, generations, model, gate, settings.sync_interval, partial(_recipe_of, settings, recipe), telemetry
        )
        self._rollbacks = rollbacks = Rollbacks(manager, rollback_file)
        reader = ServingReader(manager, telemetry)
        digest = hashlib.sha256(repr(settings).encode()).hexdigest()[:16]
        self._searches = searches = SearchService(
            manager, reader, searcher, model, self._queries, self._reranking, telemetry, digest
        )
        self._answers = AnswerService(settings, searches.search, paragraphs, settings.languages)
        self._quality: QualityMonitor | None = None
        if settings.eval_queries:
            self._quality = QualityMonitor(settings.data_dir / "quality.json", gate, manager, rollbacks)
        self._insights = Insights(settings.data_dir, manager.syncs.history, self._quality, keeps_searches=settings.search_log)
        self._map = WikiMapBuilder(settings.data_dir / "map.json", manager) if "map" in settings.pages else None
        pages = PageService(manager, reader, model, paragraphs, self._map)
        checks = {
            FindingKind.DUPLICATE: find_duplicates,
            FindingKind.ORPHAN: find_orphans,
            FindingKind.BROKEN_LINK: find_broken_links,
            FindingKind.MENTION: find_mentions,
            FindingKind.STALE: find_stale,
            FindingKind.UNANSWERED: find_unanswered(self._insights.unanswered, searcher.ask_again),
        }
        health = HealthReporter(settings, repository, checks, manager, reader, recipe.scale)
        rollback = rollback_file.status
        report = StatusReport(manager, model, gate, self._queries, self._reranking, self._insights, rollback, monitoring)
        self._watch = SwapWatch(manager, model, rollbacks)
        searches.observers += [monitoring.slow_searches.record, self._insights.record_search, self._watch.record]
        manager.on_synced = self._follow_up
        self._warm = ""
        """The generation that was last searched to load what searches need."""

        self.search, self.version = searches.search, searches.version
        self.ask, self.ask_progress, self.cancel_ask = self._answers.ask, self._answers.progress, self._answers.cancel
        self.suggest, self.related, self.draft_links = pages.suggest, pages.related, pages.draft_links
        self.inspect_page, self.pages, self.links, self.map = pages.inspect_page, pages.pages, pages.links, pages.map
        self.health, self.dismiss = health.health, health.dismiss
        self.status, self.metrics, self.insight = report.status, report.metrics, self._insights.insight
        self.reindex, self.roll_back, self.refresh = manager.rebuilds.request, rollbacks.roll_back, pages.refresh
        self.job, self.notify = manager.job, manager.wake

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
        self._answers.close()
        self._manager.stop(timeout)
        self._insights.close()
        self._reranking.close()
        self._queries.close()

    @property
    def must_reopen(self) -> bool:
        """Whether the index is to be opened again, with other settings: it was rolled back."""
        return self._rollbacks.is_done

    def note_idle(self) -> None:
        """Record that the last client has gone, after which this process may be killed at any moment."""
        serving = self._manager.serving
        if serving is not None:
            serving.mirror.note_idle()

    def _follow_up(self) -> None:
        """Bring what is derived from the index up to date with it."""
        serving = self._manager.serving
        try:
            self._searcher.pinned.refresh(serving.catalog.reader.answers() if serving and serving.catalog.is_current else ())
        except SemanticError as error:
            log.warning("questions that pages are pinned to are only found word for word: %s", error)
        self._load()
        if self._quality is not None:
            self._quality.refresh()
        if self._map is not None:
            self._map.refresh()

    def _load(self) -> None:
        """Load what searches and suggestions need; an index of an earlier version gets the names that suggestions need."""
        serving = self._manager.serving
        if serving is None:
            return
        if serving.name != self._warm:
            self._warm = serving.name
            self._searcher.warm_up(serving)
        try:
            serving.catalog.reader.page_names()
            serving.catalog.labels.refresh()
        except CatalogError as error:
            log.info("names are loaded by the first search, and some are not suggested: %s", error)


def _recipe_of(settings: Settings, recipe: IndexRecipe, generation: Generation) -> IndexRecipe:
    """Return the recipe of a generation that was made with other settings than `recipe`."""
    own = with_index_settings(settings, generation.settings)
    has_same_model = replace(own, chunks=settings.chunks, languages=settings.languages) == settings
    return IndexRecipe(recipe.embedder if has_same_model else open_embedder(own), own.chunks, own.languages)


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


def _judged_queries(path: Path | None) -> Sequence[JudgedQuery]:
    return read_judged_queries(path) if path is not None else []
