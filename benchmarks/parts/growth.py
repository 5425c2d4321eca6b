"""How building, memory and searching grow with the wiki, at three sizes; and a picture of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.support.corpus import questions
from benchmarks.support.local import opened, wait_until_settled
from benchmarks.support.options import Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.processes import in_fresh_process, resident
from benchmarks.support.report import Figure, missing, say
from benchmarks.support.wikis import BuiltWiki, built
from otterwiki_semantic.core.records import SearchOptions

_QUESTIONS = 100
_WARM_UP = 10
_SEED = 21
_MANY = 100
_BLUE, _ORANGE = "#0072b2", "#d55e00"
"""Told apart by readers who do not see all colours, too (Okabe and Ito, 2008)."""


@dataclass(frozen=True, slots=True)
class _Size:
    """A wiki, the resident memory (MB) of a process that opened its index and searched, and milliseconds of each search."""

    wiki: BuiltWiki
    memory: float
    searches: list[float]


def measure(options: Options) -> list[Figure]:
    """Return build time, memory and search time at three sizes; draws them if the options say where to."""
    largest = options.sizes[-1]
    sizes = []
    for pages in dict.fromkeys((max(largest // 80, 8), max(largest // 8, 8), largest)):
        wiki = built(pages, fresh=options.fresh)
        if wiki.build_seconds is None and pages < largest:
            wiki = built(pages, fresh=True)
        say(f"{_QUESTIONS} searches, {wiki.chunks:,} chunks")
        memory, searches = in_fresh_process(_search, wiki)
        sizes.append(_Size(wiki, memory, searches))
    if options.picture is not None:
        _draw(sizes, options.picture)
    return [figure for size in sizes for figure in _figures(size)]


def _figures(size: _Size) -> list[Figure]:
    wiki, name = size.wiki, f"{size.wiki.chunks:,} chunks"
    seconds = f"first build, {name}"
    if wiki.build_seconds is None:
        build = missing(seconds, "s", "the kept index was not built in one go; FRESH=1 builds it again")
    else:
        pace = f"{wiki.chunks / wiki.build_seconds:.1f} chunks/s, built on {wiki.built_on}"
        build = Figure(seconds, wiki.build_seconds, "s", note=pace)
    return [
        build,
        Figure(f"memory after {_QUESTIONS} searches, {name}", size.memory, "MB", note="resident; model, catalog and ChromaDB"),
        Figure(f"search, p50, {name}", p50(size.searches), "ms", note="in the process that owns the index"),
        Figure(f"search, p95, {name}", p95(size.searches), "ms"),
    ]


def _search(wiki: BuiltWiki) -> tuple[float, list[float]]:
    """Return the memory of this process (MB) and the milliseconds of each search, no question asked twice."""
    times = []
    with opened(wiki.repository, wiki.data_dir) as index:
        wait_until_settled(index)
        for question in questions(_WARM_UP + _QUESTIONS, wiki.pages, _SEED):
            start = time.perf_counter()
            (answer,) = index.search([question], SearchOptions())
            times.append((time.perf_counter() - start) * 1e3)
            assert answer.results
        return resident(), times[_WARM_UP:]


def _draw(sizes: Sequence[_Size], directory: Path) -> None:
    """Write ``growth.png`` and ``growth.svg``."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "growth"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    _panel(axes[0], sizes, "first build", "seconds", [("", lambda size: size.wiki.build_seconds)])
    _panel(axes[1], sizes, "memory of the index's process", "MB", [("", lambda size: size.memory)])
    _panel(axes[2], sizes, "search", "ms", [("p95", lambda size: p95(size.searches)), ("p50", lambda size: p50(size.searches))])
    directory.mkdir(parents=True, exist_ok=True)
    figure.savefig(directory / "growth.png", dpi=160)
    figure.savefig(directory / "growth.svg", metadata={"Date": None})
    say(f"drew {directory / 'growth.png'} and growth.svg")


def _panel(
    axes: Any, sizes: Sequence[_Size], title: str, unit: str, lines: Sequence[tuple[str, Callable[[_Size], float | None]]]
) -> None:
    for colour, above, (name, value_of) in zip((_BLUE, _ORANGE), (7, -14), lines, strict=False):
        points = [(size.wiki.chunks, value) for size in sizes if (value := value_of(size)) is not None]
        axes.plot([chunks for chunks, _ in points], [value for _, value in points], marker="o", color=colour, label=name)
        for chunks, value in points:
            shown = f"{value:,.0f}" if value >= _MANY else f"{value:.3g}"
            axes.annotate(shown, (chunks, value), textcoords="offset points", xytext=(0, above), ha="center", fontsize=8)
    axes.set(xscale="log", yscale="log", title=title, xlabel="chunks", ylabel=unit)
    axes.set_xlim(min(size.wiki.chunks for size in sizes) / 2, max(size.wiki.chunks for size in sizes) * 2)
    axes.set_ylim(_decades([value for size in sizes for _, value_of in lines if (value := value_of(size)) is not None]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _position: f"{value:,.12g}")
        axis.set_minor_formatter("")
    axes.grid(visible=True, which="both", alpha=0.25)
    if any(name for name, _ in lines):
        axes.legend(frameon=False)


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Return the powers of ten between which values lie, with some room above for their labels."""
    low, high = (min(values, default=1.0), max(values, default=1.0))
    return 10.0 ** math.floor(math.log10(low / 1.1)), 10.0 ** math.ceil(math.log10(high * 1.3))
