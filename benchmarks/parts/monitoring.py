"""What figures for Prometheus cost: noting a search, searches with and without them in turns, and giving them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from statistics import median

from benchmarks.support.corpus import questions
from benchmarks.support.local import opened, wait_until_settled
from benchmarks.support.options import Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.processes import in_fresh_process
from benchmarks.support.report import Figure, at_most, say
from benchmarks.support.wikis import BuiltWiki, built
from otterwiki_semantic.core.records import NO_CONTEXT, SearchOptions
from otterwiki_semantic.core.telemetry import SearchEvent

_MOST_MICROSECONDS = 20.0
_NOTES = 20_000
_SEARCHES = 1_000
_SCRAPES = 50
_WARM_UP = 50


@dataclass(frozen=True, slots=True)
class _Times:
    """Microseconds of noting a search; milliseconds of searches with and without figures, one by one, and of giving them."""

    note_us: float
    watched_ms: list[float]
    unwatched_ms: list[float]
    scrapes_ms: list[float]


def measure(options: Options) -> list[Figure]:
    """Return the costs at each size."""
    found = []
    for pages in options.sizes:
        wiki = built(pages)
        say(f"{_SEARCHES} searches with figures, and as many without, {wiki.chunks:,} chunks")
        found += _figures(wiki, in_fresh_process(_measured, wiki))
    return found


def _figures(wiki: BuiltWiki, times: _Times) -> list[Figure]:
    size = f"{wiki.chunks:,} chunks"
    watched, unwatched = median(times.watched_ms), median(times.unwatched_ms)
    compared = f"p50 {watched:.3f} ms with, {unwatched:.3f} ms without, {_SEARCHES} distinct queries each, in turns"
    return [
        at_most(f"noting a search: {size}", times.note_us, "µs", _MOST_MICROSECONDS, f"mean of {_NOTES:,}"),
        Figure(f"what figures add to a search in the index daemon: {size}", 1000 * (watched - unwatched), "µs", note=compared),
        Figure(f"giving all figures: {size}", p50(times.scrapes_ms), "ms", note=f"p95 {p95(times.scrapes_ms):.1f} ms"),
    ]


def _measured(wiki: BuiltWiki) -> _Times:
    with opened(wiki.repository, wiki.data_dir) as index:
        wait_until_settled(index)
        kept = index._searches.observers
        asked = questions(_WARM_UP + 2 * _SEARCHES, wiki.pages)
        for query in islice(asked, _WARM_UP):
            index.search([query], SearchOptions())
        watched: list[float] = []
        unwatched: list[float] = []
        for number, query in enumerate(islice(asked, _WARM_UP, None)):
            index._searches.observers = [] if number % 2 else kept
            milliseconds = _milliseconds(partial(index.search, [query], SearchOptions()))
            (unwatched if number % 2 else watched).append(milliseconds)
        index._searches.observers = kept
        options = SearchOptions()
        event = SearchEvent(index.search(["heating"], options), options, NO_CONTEXT, 0.01)
        noting = _milliseconds(partial(_note, kept, event))
        scrapes = [_milliseconds(index.metrics) for _ in range(_SCRAPES)]
        return _Times(1000 * noting / _NOTES, watched, unwatched, scrapes)


def _note(observers: Sequence[Callable[[SearchEvent], None]], event: SearchEvent) -> None:
    for _ in range(_NOTES):
        for observe in observers:
            observe(event)


def _milliseconds(what: Callable[[], object]) -> float:
    start = time.perf_counter()
    what()
    return 1000 * (time.perf_counter() - start)
