"""Figures of the index for Prometheus, gathered in the one process that does all the work.

`docs/monitoring.md` tells what each means. A search is counted in a few microseconds; what the index holds is asked only when
somebody asks for the figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from otterwiki_semantic.records import Answer, Mode, RebuildState, SearchOptions
from otterwiki_semantic.watching import Embedded, Failure, IndexState, Watcher

PREFIX = "otterwiki_semantic"
_SEARCH_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_WORK_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SYNC_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_OUTCOMES = ("answered", "nothing_relevant", "degraded")
_SYNCS = ("changed", "unchanged", "failed")


def outcome(answer: Answer) -> str:
    """Tell what became of a question; before the first build is done no answer is all it could be."""
    if answer.degraded or answer.index.commit is None:
        return "degraded"
    return "answered" if answer.confident else "nothing_relevant"


class Metrics(Watcher):
    """Counts the work, and gives the figures. Every series is there from the start, with 0."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the series, and the process tells when it was started
        self._registry = registry = CollectorRegistry()
        ProcessCollector(namespace=PREFIX, registry=registry)
        searches = Histogram(
            "search_duration_seconds",
            "Time in which the index answered a question, without the web server and without waiting for a commit.",
            ["mode"],
            namespace=PREFIX,
            registry=registry,
            buckets=_SEARCH_SECONDS,
        )
        outcomes = Counter("searches", "Questions by what became of them.", ["outcome"], namespace=PREFIX, registry=registry)
        self._drafts = Counter(
            "draft_searches",
            "Searches for words still being typed; they are not among the questions.",
            namespace=PREFIX,
            registry=registry,
        )
        embedding = Histogram(
            "embedding_duration_seconds",
            "Time of one call of the model: a question, or up to 64 passages.",
            ["kind"],
            namespace=PREFIX,
            registry=registry,
            buckets=_WORK_SECONDS,
        )
        texts = Counter("embedded_texts", "Texts that the model embedded.", ["kind"], namespace=PREFIX, registry=registry)
        self._sync_seconds = Histogram(
            "sync_duration_seconds",
            "Time of a sync that changed pages.",
            namespace=PREFIX,
            registry=registry,
            buckets=_SYNC_SECONDS,
        )
        syncs = Counter("syncs", "Looks at HEAD, by what they did.", ["outcome"], namespace=PREFIX, registry=registry)
        errors = Counter("errors", "What failed.", ["kind"], namespace=PREFIX, registry=registry)
        self._search_seconds = {mode: searches.labels(mode.value) for mode in Mode}
        self._outcomes = {name: outcomes.labels(name) for name in _OUTCOMES}
        self._embedding_seconds = {what: embedding.labels(what.value) for what in Embedded}
        self._texts = {what: texts.labels(what.value) for what in Embedded}
        self._syncs = {name: syncs.labels(name) for name in _SYNCS}
        self._errors = {what: errors.labels(what.value) for what in Failure}
        self._equalled_at = time.monotonic()
        """When it was last known to equal HEAD, or to be started."""

    def searched(self, answers: Sequence[Answer], options: SearchOptions, seconds: float) -> None:
        """See `Watcher`; each of several questions is taken for an equal share of the time."""
        if not options.note:
            self._drafts.inc(len(answers))
            return
        observed = self._search_seconds[options.mode]
        for answer in answers:
            observed.observe(seconds / len(answers))
            self._outcomes[outcome(answer)].inc()

    @contextmanager
    def embedding(self, what: Embedded, texts: int) -> Iterator[None]:
        """See `Watcher`."""
        start = time.perf_counter()
        try:
            yield
        except Exception:
            self.failed(Failure.MODEL)
            raise
        self._embedding_seconds[what].observe(time.perf_counter() - start)
        self._texts[what].inc(texts)

    def synced(self, seconds: float, *, has_changed: bool) -> None:
        """See `Watcher`."""
        self._syncs["changed" if has_changed else "unchanged"].inc()
        if has_changed:
            self._sync_seconds.observe(seconds)

    def equals_head(self) -> None:
        """See `Watcher`."""
        self._equalled_at = time.monotonic()

    def failed(self, what: Failure) -> None:
        """See `Watcher`."""
        self._errors[what].inc()
        if what is Failure.SYNC:
            self._syncs["failed"].inc()

    def text(self, state: IndexState) -> str:
        """See `Watcher`."""
        if state.equals_head:
            self.equals_head()
        behind = 0.0 if state.equals_head else time.monotonic() - self._equalled_at
        return generate_latest(_Everything(self._registry, [*_families(state), _behind_seconds(behind)])).decode()


class _Everything(Collector):
    """What was counted, and what was asked just now."""

    def __init__(self, counted: Collector, asked: Sequence[Metric]) -> None:
        self._counted = counted
        self._asked = asked

    def collect(self) -> Iterable[Metric]:
        yield from self._counted.collect()
        yield from self._asked


def _families(state: IndexState) -> Iterator[Metric]:
    status = state.status
    yield InfoMetricFamily(
        f"{PREFIX}_build", "Version and embedding model.", {"version": status.version, "model": status.model}
    )
    yield _gauge("pages", "Pages that the index has.", status.pages)
    yield _gauge("chunks", "Passages that the index has.", status.chunks)
    yield _gauge("vectors", "Vectors of passages that the index has.", status.vectors)
    yield _gauge("pending_pages", "Pages that are not indexed as HEAD has them.", status.index.pending_pages)
    yield _gauge("unfinished_pages", "Pages found by words alone, because the model failed.", state.unfinished_pages)
    if state.commits_behind is not None:
        yield _gauge("behind_commits", "Commits of HEAD that the index lacks; 1,000 may be more.", state.commits_behind)
    yield _counter("query_cache_hits", "Questions whose vectors were remembered.", state.cache_hits)
    yield _counter("query_cache_misses", "Questions that were embedded.", state.cache_misses)
    rebuild = GaugeMetricFamily(f"{PREFIX}_rebuild_state", "The last rebuild: 1 for the state it is in.", labels=["state"])
    for each in RebuildState:
        rebuild.add_metric([each.value], float(status.rebuild.state is each))
    yield rebuild


def _behind_seconds(seconds: float) -> Metric:
    return _gauge("behind_seconds", "Seconds since the index was last known to equal HEAD; 0 while it does.", seconds)


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}_{name}", about, value)


def _counter(name: str, about: str, value: float) -> Metric:
    return CounterMetricFamily(f"{PREFIX}_{name}", about, value)
