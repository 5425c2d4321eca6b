"""Prometheus metrics of the index; docs/monitoring.md explains each.

Recording a search takes a few microseconds; the state of the index is read only when the metrics are scraped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from types import SimpleNamespace
from typing import TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from otterwiki_semantic.core.records import Answer, ChromaFill, ChromaState, Mode, QualityRecord, RebuildState
from otterwiki_semantic.core.telemetry import EmbeddingKind, Failure, IndexState, SearchEvent, Telemetry
from otterwiki_semantic.search.reranking import NONE_CONFIGURED

PREFIX = "otterwiki_semantic"
_SEARCH_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_WORK_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SYNC_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)

Kind = TypeVar("Kind", bound=StrEnum)


class Outcome(StrEnum):
    """The outcome of a query."""

    ANSWERED = "answered"
    NOTHING_RELEVANT = "nothing_relevant"
    DEGRADED = "degraded"


class _Sync(StrEnum):
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"


def outcome(answer: Answer) -> Outcome:
    """Return the outcome of a query, degraded until the first build is complete, but not for lack of a reranker."""
    if answer.degraded not in {None, NONE_CONFIGURED} or answer.index.commit is None:
        return Outcome.DEGRADED
    return Outcome.ANSWERED if answer.confident else Outcome.NOTHING_RELEVANT


class PrometheusTelemetry(Telemetry):
    """Record metrics in a separate registry. Every series exists from the start, at 0."""

    def __init__(self) -> None:
        # They would double the number of series; the start of the process is a separate metric.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        ProcessCollector(namespace=PREFIX, registry=self._registry)
        about = "Time in which the index answered a query, without the web server and without waiting for a commit."
        self._search_seconds = self._histograms("search_duration_seconds", about, "mode", Mode, _SEARCH_SECONDS)
        self._outcomes = self._counters("searches", "Queries by their outcome.", "outcome", Outcome)
        about = "Searches for words still being typed; not counted as queries."
        self._drafts = Counter(f"{PREFIX}_draft_searches", about, registry=self._registry)
        about = "Time of one call of the model: a query, or up to 64 passages."
        self._embedding_seconds = self._histograms("embedding_duration_seconds", about, "kind", EmbeddingKind, _WORK_SECONDS)
        self._texts = self._counters("embedded_texts", "Texts that the model embedded.", "kind", EmbeddingKind)
        about = "Time of a sync that changed pages."
        name = f"{PREFIX}_sync_duration_seconds"
        self._sync_seconds = Histogram(name, about, registry=self._registry, buckets=_SYNC_SECONDS)
        self._syncs = self._counters("syncs", "Comparisons with HEAD, by their outcome.", "outcome", _Sync)
        about = "Pages that syncs indexed or removed."
        self._pages_indexed = Counter(f"{PREFIX}_pages_indexed", about, registry=self._registry)
        self._errors = self._counters("errors", "What failed.", "kind", Failure)
        self._equalled_at = time.monotonic()
        """When the index was last known to equal HEAD, or was opened."""

    def _counters(self, name: str, about: str, label: str, kinds: type[Kind]) -> dict[Kind, Counter]:
        counter = Counter(f"{PREFIX}_{name}", about, [label], registry=self._registry)
        return {kind: counter.labels(kind.value) for kind in kinds}

    def _histograms(
        self, name: str, about: str, label: str, kinds: type[Kind], buckets: Sequence[float]
    ) -> dict[Kind, Histogram]:
        histogram = Histogram(f"{PREFIX}_{name}", about, [label], registry=self._registry, buckets=buckets)
        return {kind: histogram.labels(kind.value) for kind in kinds}

    def record_search(self, search: SearchEvent) -> None:
        if not search.counts:
            self._drafts.inc(len(search.answers))
            return
        observed = self._search_seconds[search.options.mode]
        for answer in search.answers:
            observed.observe(search.seconds / len(search.answers))  # an equal share of the request
            self._outcomes[outcome(answer)].inc()

    @contextmanager
    def record_embedding(self, kind: EmbeddingKind, texts: int) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        except Exception:
            self.record_failure(Failure.MODEL)
            raise
        self._embedding_seconds[kind].observe(time.perf_counter() - start)
        self._texts[kind].inc(texts)

    def record_sync(self, seconds: float, pages: int) -> None:
        self._syncs[_Sync.CHANGED if pages else _Sync.UNCHANGED].inc()
        self._pages_indexed.inc(pages)
        if pages:
            self._sync_seconds.observe(seconds)

    def record_up_to_date(self) -> None:
        self._equalled_at = time.monotonic()

    def record_failure(self, failure: Failure) -> None:
        self._errors[failure].inc()
        if failure is Failure.SYNC:
            self._syncs[_Sync.FAILED].inc()

    def render(self, state: IndexState) -> str:
        if state.equals_head:
            self.record_up_to_date()
        behind = 0.0 if state.equals_head else time.monotonic() - self._equalled_at
        about = "Seconds since the index was last known to equal HEAD; 0 while it does."
        families = [*self._registry.collect(), *_families(state), _gauge("behind_seconds", about, behind)]
        return generate_latest(cast("CollectorRegistry", SimpleNamespace(collect=lambda: families))).decode()


def _families(state: IndexState) -> Iterator[Metric]:
    status = state.status
    yield InfoMetricFamily(
        f"{PREFIX}_build", "Version and embedding model.", {"version": status.version, "model": status.model}
    )
    yield _gauge("pages", "Pages in the index.", status.pages)
    yield _gauge("chunks", "Passages in the index.", status.chunks)
    yield _gauge("vectors", "Vectors in the index.", status.vectors)
    if status.chroma is not None:
        yield from _chroma_families(status.chroma)
    yield _gauge("pending_pages", "Pages whose content in HEAD is not indexed yet.", status.index.pending_pages)
    yield _gauge("unfinished_pages", "Pages found by keywords only, because the model failed on them.", state.unfinished_pages)
    if state.commits_behind is not None:
        yield _gauge("behind_commits", "Commits of HEAD not indexed; counted up to 1,000.", state.commits_behind)
    yield CounterMetricFamily(f"{PREFIX}_query_cache_hits", "Queries whose vectors were cached.", state.cache_hits)
    yield CounterMetricFamily(f"{PREFIX}_query_cache_misses", "Queries that had to be embedded.", state.cache_misses)
    if state.quality is not None:
        yield from _quality(state.quality)
    rebuild = GaugeMetricFamily(f"{PREFIX}_rebuild_state", "The last rebuild: 1 for its current state.", labels=["state"])
    for each in RebuildState:
        rebuild.add_metric([each.value], float(status.rebuild.state is each))
    yield rebuild


def _quality(last: QualityRecord) -> Iterator[Metric]:
    yield _gauge("quality_queries", "Judged queries of the last evaluation.", last.queries)
    yield _gauge("quality_recall_at_10_ratio", "Share of the relevant pages among the first 10.", last.recall_at_10)
    if last.semantic_recall_at_10 is not None:
        about = "Share of the relevant pages among the first 10 by meaning alone."
        yield _gauge("quality_semantic_recall_at_10_ratio", about, last.semantic_recall_at_10)
    yield _gauge("quality_precision_at_10_ratio", "Share of relevant pages in the first 10.", last.precision_at_10)
    yield _gauge("quality_mean_reciprocal_rank", "Mean of 1 / rank of the first relevant page.", last.mrr)
    yield _gauge("quality_zero_result_ratio", "Share of judged queries without any result.", last.zero_result_rate)
    finished = datetime.fromisoformat(last.finished).timestamp()
    yield _gauge("quality_last_evaluation_timestamp_seconds", "When judged queries were last asked (Unix time).", finished)


def _chroma_families(fill: ChromaFill) -> Iterator[Metric]:
    about = "Vectors in the ChromaDB collection, as counted after the last write."
    yield _gauge("chroma_vectors", about, math.nan if fill.count is None else fill.count)
    yield _gauge("chroma_pending_vectors", "Vectors that the ChromaDB collection lacks.", fill.pending)
    yield _gauge("chroma_outdated_vectors", "Vectors with outdated metadata in the ChromaDB collection.", fill.outdated)
    yield _gauge("chroma_up", "Whether ChromaDB can be used.", float(fill.state is not ChromaState.RESTING))


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}_{name}", about, value)
