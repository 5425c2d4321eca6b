"""Whether the wiki stays quick for its readers while its index is built for the first time, on one core and on two."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.support.client import Client
from benchmarks.support.corpus import path_of
from benchmarks.support.options import Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.report import Figure, say
from benchmarks.support.serving import GUNICORN, PROCESSORS, ServedWiki
from benchmarks.support.wikis import generated, scratch

_PAUSE_SECONDS = 0.03
_VIEWS_A_LOOK = 20
_IDLE_VIEWS = 400
_VIEWED = 7
"""The number of the page that is looked at, one of middle length."""


@dataclass(frozen=True, slots=True)
class Views:
    """Milliseconds of page views during a first build and after it, and how long the build took (seconds)."""

    building: list[float]
    idle: list[float]
    build_seconds: float
    chunks: int


def measure(options: Options) -> list[Figure]:
    """Return the time of page views during a first build and at rest; the reader is on any core, the wiki on so many."""
    figures: list[Figure] = []
    for cores in range(1, min(2, len(PROCESSORS)) + 1):
        say(f"page views during a first build, {cores} cores")
        views = _views(options.small_pages, frozenset(sorted(PROCESSORS)[:cores]))
        case = f"{cores} core{'s' if cores > 1 else ''}, {views.chunks:,} chunks, {GUNICORN.name}"
        build = f"{len(views.building)} views in a build of {views.build_seconds:.0f} s"
        for percentile in (p50, p95):
            during, idle = percentile(views.building), percentile(views.idle)
            name = f"page view during a first build, {percentile.__name__}, {case}"
            figures.append(Figure(name, during, "ms", note=f"{idle:.1f} ms at rest; {build}"))
    return figures


def _views(pages: int, processors: frozenset[int]) -> Views:
    with scratch() as place:
        repository = place / "repository"
        shutil.copytree(generated(pages), repository, symlinks=True)
        with ServedWiki(repository, place / "index", processors=processors) as wiki, wiki.client() as reader:
            start = time.perf_counter()
            building = _view_while(reader, lambda: reader.status()["indexed_commit"] is None)
            build_seconds = time.perf_counter() - start
            wiki.wait_until_open()
            rest = iter(range(_IDLE_VIEWS // _VIEWS_A_LOOK))
            idle = _view_while(reader, lambda: next(rest, None) is not None)
            return Views(building, idle, build_seconds, wiki.status()["chunks"])


def _view_while(reader: Client, goes_on: Callable[[], bool]) -> list[float]:
    """Return the milliseconds of one page view after another, with a pause before each, for as long as this goes on."""
    times: list[float] = []
    while goes_on():
        for _ in range(_VIEWS_A_LOOK):
            time.sleep(_PAUSE_SECONDS)
            answer = reader.get(f"/{path_of(_VIEWED)}")
            assert answer.status == 200, answer.status
            times.append(1e3 * answer.seconds)
    return times
