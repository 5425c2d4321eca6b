"""The status of the index: its contents, and its problems."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Literal

from otterwiki_semantic import __version__
from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import CatalogError, ParameterError, RebuildRefusedError, RepositoryError
from otterwiki_semantic.core.hints import SHOW_CAPITALS, problem
from otterwiki_semantic.core.humanize import count
from otterwiki_semantic.core.records import NO_URLS, Freshness, IndexStatus, PageUrls, PreviousIndex, Problem, Rollback
from otterwiki_semantic.core.telemetry import IndexState, Telemetry
from otterwiki_semantic.daemon.reports.insight import Insights
from otterwiki_semantic.embedding import QueryEmbedder
from otterwiki_semantic.indexing import IndexManager
from otterwiki_semantic.search.reranking import RerankStage
from otterwiki_semantic.storage import Counts, Generation

_MAX_NAMED = 5
_MOST_BEHIND = 1_000
_RETRIED_SOON = "no action needed: they are retried within five minutes after the model can be reached"
_SHORTEN = "divide these pages, or simplify them"
_REPLACE = "replace these files, or leave them out with SEMANTIC_ATTACHMENTS"
_RETRIED = "no action needed: they are retried within an hour; if a page fails again and again, change it"


@dataclass(frozen=True)
class StatusReport:
    """Collect the status of the index, and its problems."""

    repository: Repository
    manager: IndexManager
    queries: QueryEmbedder
    reranking: RerankStage
    insights: Insights
    rollback: Rollback | None
    telemetry: Telemetry

    def status(self, urls: PageUrls = NO_URLS) -> IndexStatus:
        """Return the status of the serving generation, or of the index without one if its catalog fails."""
        while True:
            generation = self.manager.serving
            try:
                with generation.catalog.snapshot() if generation else nullcontext():
                    return self._status_of(generation, self.manager.syncs.error, urls)
            except CatalogError as error:
                if self.manager.serving is generation:  # not being replaced
                    return self._status_of(None, error, urls)

    def metrics(self) -> str:
        """Return the metrics in Prometheus's text format. Errors: `MetricsError` if none are kept."""
        status, serving, unfinished = self.status(), self.manager.serving, 0
        with suppress(CatalogError):
            unfinished = serving.catalog.unfinished if serving else 0
        behind = self._count_behind(status.indexed_commit, status.head_commit) if status.head_error is None else None
        facts = self.manager.index.equals_head(), behind, *self.queries.cache_hits_and_misses, self.insights.last_quality
        return self.telemetry.render(IndexState(status, unfinished, *facts))

    def _count_behind(self, commit: str | None, head: str | None) -> int | None:
        """Return the number of commits of HEAD that are not indexed; at least 1 if the two differ, as after HEAD was reset."""
        if commit == head or head is None:
            return 0
        commits = self.repository.commits_between(commit, head, _MOST_BEHIND)
        return None if commits is None else max(1, commits)

    def _status_of(self, generation: Generation | None, failure: Exception | None, urls: PageUrls) -> IndexStatus:
        manager, index = self.manager, self.manager.index.freshness(generation)
        counts = generation.catalog.counts() if generation else Counts(0, 0, 0)
        excluded = 0
        with suppress(RepositoryError):  # reported as the error of HEAD
            excluded = len(manager.index.excluded_pages(generation)) if generation else 0
        return IndexStatus(
            status="error" if failure else self._readiness(generation, index),
            indexed_commit=index.commit,
            head_commit=index.head,
            pending_pages=index.pending_pages,
            head_error=index.error,
            pages=counts.pages,
            attachments=counts.files,
            unread_attachments=manager.index.unread_attachments(index.head),
            excluded_pages=excluded,
            chunks=counts.chunks,
            vectors=counts.vectors,
            model=manager.model.recipe.embedder.name,
            generation=generation.name if generation else None,
            collection=generation.mirror.store.name if generation else None,
            chroma=generation.mirror.fill if generation else None,
            progress=manager.syncs.progress.snapshot(),
            rebuild=manager.rebuilds.tracker.status,
            last_sync=manager.syncs.last_success,
            last_error=(str(failure) or type(failure).__name__) if failure else None,
            embedded_texts=manager.syncs.indexer.embedding.texts + manager.rebuilds.indexer.embedding.texts,
            owner_pid=os.getpid(),
            version=__version__,
            problems=(*self._problems(generation, failure, index), *_not_shown(generation, urls)),
            is_outdated=generation is not None and manager.rebuilds.is_outdated(generation),
            previous=_previous(manager.previous.generation),
            rollback=self.rollback,
            reranker=self.reranking.name,
            reranker_is_loading=self.reranking.is_loading,
        )

    def _readiness(self, generation: Generation | None, index: Freshness) -> Literal["ready", "ready_by_words", "indexing"]:
        if generation is None or generation.catalog.commit != index.head:
            return "indexing"
        has_vectors = self.manager.model.recipe.matches_vectors(generation) and not generation.catalog.unfinished
        return "ready" if has_vectors else "ready_by_words"

    def _problems(self, generation: Generation | None, failure: Exception | None, index: Freshness) -> list[Problem]:
        rebuilds = self.manager.rebuilds
        found = [failure, RepositoryError(index.error) if index.error and not failure else None]
        if generation is not None:
            refusal = rebuilds.refusal(generation)
            unbuilt = RebuildRefusedError(refusal) if refusal else rebuilds.tracker.error_next_to(generation)
            found += [generation.mirror.error, generation.mirror.publication_error, unbuilt]
        try:
            self.manager.gate.read_queries()
        except ParameterError as error:
            found.append(error)
        found += [self.queries.last_failure, self.reranking.error]
        shown = [problem(error) for error in found if error is not None]
        shown += self.insights.problems()
        if self.rollback is not None:
            settings = ", ".join(self.rollback.not_in_use)
            message = f"the index does not use the configured {settings} after a rollback: {self.rollback.reason}"
            shown.append(
                Problem(message, "configure other settings and restart the wiki; or go back: otterwiki-semantic rollback")
            )
        if self.manager.model.error is not None:  # its effect on pages and queries is reported as well
            shown.append(problem(self.manager.model.error))
        if generation is not None:
            shown += [*self._lack_of_vectors(generation), *_bad_pages(generation)]
        return shown

    def _lack_of_vectors(self, generation: Generation) -> list[Problem]:
        manager, model = self.manager, self.manager.model
        if model.recipe.embedder.dimension and not model.recipe.matches_vectors(generation):
            return [Problem(model.why_keywords_only(generation) or "", "no action needed: wait until the new index is built")]
        unfinished = generation.catalog.unfinished
        if not unfinished:
            return []
        stages = manager.syncs.indexer.embedding, manager.rebuilds.indexer.embedding
        why = next((stage.error for stage in stages if stage.error), "see owner.log")
        message = f"{unfinished} pages are found by keywords only, because the model failed: {why}"
        return [Problem(message, _RETRIED_SOON if stages[0].is_resting else _RETRIED)]


def _previous(generation: Generation | None) -> PreviousIndex | None:
    if generation is None:
        return None
    settings = generation.settings
    return PreviousIndex(generation.name, str(settings.get("model")), str(settings.get("chunks")), generation.catalog.commit)


def _bad_pages(generation: Generation) -> list[Problem]:
    if not generation.catalog.is_current:
        return []
    found = generation.catalog.pages.problems()
    files = generation.catalog.pages.file_states() if found else {}
    of_pages, of_files = [each for each in found if each[0] not in files], [each for each in found if each[0] in files]
    return [*_bad(of_pages, "page", _SHORTEN), *_bad(of_files, "attached file", _REPLACE)]


def _bad(found: Sequence[tuple[str, str]], what: str, hint: str) -> list[Problem]:
    if not found:
        return []
    named = "; ".join(f"{path}: {reason}" for path, reason in found[:_MAX_NAMED])
    others = f"; and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    are = "is not indexed as it should be" if len(found) == 1 else "are not indexed as they should be"
    return [Problem(f"{count(len(found), what)} {are}: {named}{others}", hint)]


def _not_shown(generation: Generation | None, urls: PageUrls) -> list[Problem]:
    paths = () if generation is None or urls.retains_case else generation.catalog.pages.with_capitals()
    hidden = [path for path in paths if not urls.shows(path)]
    if not hidden:
        return []
    message = f"the wiki cannot show {len(hidden)} of its pages, such as {min(hidden)}: their names have capitals"
    return [Problem(f"{message}, and RETAIN_PAGE_NAME_CASE is off", SHOW_CAPITALS)]
