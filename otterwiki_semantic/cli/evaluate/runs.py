"""Evaluation runs: measure the ranking with judged queries, and compare two runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from otterwiki_semantic.core.errors import ConfigError, ParameterError
from otterwiki_semantic.core.records import ModelComparison, SearchOptions
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.search.evaluation import LOSSES, JudgedQuery, difference, means, percentiles, read_json, score

SHOWN = ("ndcg", "mrr", "recall@1", "recall@5", "recall@10", "precision@5", *LOSSES)
_WARM_UP = 3
_INDEX = {"chunks": "chunks", "words_per_chunk": "words/chunk", "build_seconds": "build s"}
_PLOT_TYPES = (".png", ".svg")

Run = dict[str, Any]
"""``{"name", "metrics", "latency_ms", "queries": [{"query", metric: value, …}, …]}``: the result of one configuration.

A row has `degraded` if its answer was. With a scratch index: ``"index": {"chunks", "words_per_chunk", "build_seconds"}``.
"""


def measure(index: IndexService, name: str, queries: Sequence[JudgedQuery], options: SearchOptions) -> Run:
    """Search once for every query and score the ranking of pages; a progress bar is shown on a terminal."""
    options = replace(options, is_logged=False)  # keep evaluation queries out of the search log
    for judged in queries[:_WARM_UP]:
        index.search([judged.query], options)
    rows: list[dict[str, Any]] = []
    latencies: list[float] = []
    with click.progressbar(queries, label=f"searching ({name})", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for judged in bar:
            start = time.perf_counter()
            answer = index.search([judged.query], options)[0]
            latencies.append((time.perf_counter() - start) * 1000)
            facts: dict[str, Any] = {"query": judged.query, "relevant": list(judged.relevant), "exclude": list(judged.exclude)}
            facts |= {"degraded": answer.degraded} if answer.degraded else {}
            rows.append(facts | score(judged, (hit.path for hit in answer.results), confident=answer.confident))
    return {"name": name, "metrics": means(rows), "latency_ms": percentiles(latencies), "queries": rows}


def table(runs: Sequence[Run]) -> str:
    """Return the runs as a table, one per line, with the facts of scratch indexes."""
    width = max(len(run["name"]) for run in runs)
    has_index = all("index" in run for run in runs)
    columns = (*SHOWN, "p50 ms", "p95 ms", "p99 ms", *(_INDEX.values() if has_index else ()))
    lines = [f"{len(runs[0]['queries'])} questions, pages ranked", f"{'':{width}} {_row(columns)}"]
    for run in runs:
        values = [f"{run['metrics'][metric]:.3f}" for metric in SHOWN]
        values += [f"{value:.1f}" for value in run["latency_ms"].values()]
        values += [str(run["index"][fact]) for fact in _INDEX] if has_index else []
        lines.append(f"{run['name']:{width}} {_row(values)}")
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return " ".join(f"{cell:>11}" for cell in cells)


def comparison(before: Run, after: Run) -> str:
    """Describe how two runs differ; `ParameterError` if their queries or judgements differ."""
    if _questions_of(before) != _questions_of(after):
        raise ParameterError("the earlier run has other queries; only runs of the same queries can be compared")
    lines = [f"{after['name']} against {before['name']} before (difference, 95 % interval):"]
    for metric in SHOWN:
        change = difference([row[metric] for row in before["queries"]], [row[metric] for row in after["queries"]])
        is_better = change.mean < 0 if metric in LOSSES else change.mean > 0
        verdict = "no difference that is more than noise" if change.is_noise else "better" if is_better else "worse"
        lines.append(f"  {metric:11} {change.mean:+.3f}  [{change.low:+.3f}, {change.high:+.3f}]  {verdict}")
    return "\n".join(lines)


def live_comparison(found: ModelComparison) -> str:
    """Describe how two models answered users' searches and the configured judged queries, as a table of the two."""
    if not found.is_ready:
        done = f": {found.progress.pages_done:,} of {found.progress.pages_total:,} pages" if found.progress else ""
        return f"the index of {found.shadow.model} is being built{done}"
    models = {"serving": found.serving, "shadow": found.shadow}
    names = [f"{kind}: {each.model}" for kind, each in models.items()]
    width = max(map(len, names))
    overlap = "" if found.overlap_at_10 is None else f"; of the first 10 pages both have {found.overlap_at_10:.0%}"
    judged = "" if not found.judged_queries else f"; judged queries: {found.judged_queries}"
    lines = [
        f"{found.searches:,} searches since {found.since}{overlap}{judged}",
        f"{'':{width}} {_row(('p50 ms', 'p95 ms', 'recall@10', 'precision@10', 'mrr'))}",
    ]
    for name, each in zip(names, models.values(), strict=True):
        times = ["-" if value is None else f"{value:.1f}" for value in (each.p50_ms, each.p95_ms)]
        figures = ["-" if value is None else f"{value:.3f}" for value in (each.recall_at_10, each.precision_at_10, each.mrr)]
        lines.append(f"{name:{width}} {_row(times + figures)}")
    return "\n".join(lines)


def _questions_of(run: Run) -> list[tuple[str, set[str], set[str]]]:
    return [(row["query"], set(row["relevant"]), set(row["exclude"])) for row in run["queries"]]


def failures(runs: Sequence[Run], least: Mapping[str, float]) -> list[str]:
    """Return a message for every metric of a run that is below its minimum."""
    return [
        f"{run['name']}: {metric} is {run['metrics'][metric]:.3f}, which is below {value}"
        for run in runs
        for metric, value in least.items()
        if run["metrics"][metric] < value
    ]


def read_run(path: Path, name: str) -> Run:
    """Read the run of this name, or the only one, from a file; `ParameterError` if there is none."""
    content = read_json(path)
    runs = content.get("runs") if isinstance(content, dict) else None
    if not isinstance(runs, list) or not all(map(_is_run, runs)):
        raise ParameterError(f"{path} was not written by --output")
    fitting = [run for run in runs if run["name"] == name] or (runs if len(runs) == 1 else [])
    if not fitting:
        raise ParameterError(f"{path} has no run {name!r}; its runs: {', '.join(run['name'] for run in runs) or 'none'}")
    return dict(fitting[0])


def _is_run(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not isinstance(value.get("queries"), list):
        return False
    return all(map(_is_row, value["queries"]))


def _is_row(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("query"), str):
        return False
    paths = (value.get("relevant"), value.get("exclude"))
    is_judged = all(isinstance(part, list) and all(isinstance(path, str) for path in part) for part in paths)
    return is_judged and all(isinstance(value.get(metric), int | float) and 0 <= value[metric] <= 1 for metric in SHOWN)


def plotter(path: Path) -> Callable[[Sequence[Run]], None]:
    """Return a function that plots the metrics of runs to a PNG or SVG file.

    Errors: `ConfigError` without matplotlib, `ParameterError` for another type of file.
    """
    if path.suffix.lower() not in _PLOT_TYPES:
        raise ParameterError(f"the plot {path.name!r} must end in {' or '.join(_PLOT_TYPES)}")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("matplotlib is not installed: pip install matplotlib") from None

    def draw(runs: Sequence[Run]) -> None:
        figure = Figure(figsize=(9, 4), layout="constrained")
        axes = figure.subplots()
        width = 0.8 / len(runs)
        for position, run in enumerate(runs):
            places = [place + position * width for place in range(len(SHOWN))]
            bars = axes.bar(places, [run["metrics"][metric] for metric in SHOWN], width, label=run["name"])
            axes.bar_label(bars, fmt="%.2f", fontsize=7, rotation=90, padding=2)
        axes.set_xticks([place + 0.4 - width / 2 for place in range(len(SHOWN))], SHOWN)
        axes.set_ylim(0, 1.25)
        axes.set_ylabel("mean over the queries")
        axes.set_title(f"{len(runs[0]['queries'])} questions, pages ranked")
        axes.legend(loc="upper right", ncols=len(runs))
        figure.savefig(path)

    return draw
