"""Measures a ranking with judged questions, and compares what two runs reached."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from otterwiki_semantic.errors import ConfigError, ParameterError
from otterwiki_semantic.evaluation import Judged, difference, means, percentiles, read_judged, score
from otterwiki_semantic.records import SearchOptions
from otterwiki_semantic.service import IndexService

SHOWN = ("ndcg", "mrr", "recall@1", "recall@5", "recall@10", "precision@5", "zero")
_WARM_UP = 3
_PICTURES = (".png", ".svg")

Run = dict[str, Any]
"""``{"name", "metrics", "latency_ms", "queries": [{"query", metric: value, …}, …]}``: what one configuration reached."""


def measure(
    index: IndexService,
    name: str,
    questions: Sequence[Judged],
    options: SearchOptions,
    progress: Callable[[Sequence[Judged]], Iterable[Judged]] = iter,
) -> Run:
    """Ask every question once and give what the ranking of pages reached; `progress` goes through them and may show it."""
    for judged in questions[:_WARM_UP]:
        index.search([judged.query], options)
    rows: list[dict[str, Any]] = []
    latencies: list[float] = []
    for judged in progress(questions):
        start = time.perf_counter()
        answer = index.search([judged.query], options)[0]
        latencies.append((time.perf_counter() - start) * 1000)
        rows.append({"query": judged.query, **score(judged, (hit.path for hit in answer.hits))})
    return {"name": name, "metrics": means(rows), "latency_ms": percentiles(latencies), "queries": rows}


def table(runs: Sequence[Run]) -> str:
    """Give the runs as a table, one a line."""
    width = max(len(run["name"]) for run in runs)
    head = " ".join(f"{metric:>11}" for metric in (*SHOWN, "p50 ms", "p95 ms", "p99 ms"))
    lines = [f"{'':{width}} {head}"]
    for run in runs:
        values = [f"{run['metrics'][metric]:11.3f}" for metric in SHOWN]
        values += [f"{value:11.1f}" for value in run["latency_ms"].values()]
        lines.append(f"{run['name']:{width}} {' '.join(values)}")
    return "\n".join(lines)


def comparison(before: Run, after: Run) -> str:
    """Say how two runs over the same questions differ; `ParameterError` if the questions are others."""
    if [row["query"] for row in before["queries"]] != [row["query"] for row in after["queries"]]:
        raise ParameterError("the earlier run asked other questions; runs can be compared only over the same ones")
    lines = [f"{after['name']} against {before['name']} before (difference, 95 % interval):"]
    for metric in SHOWN:
        change = difference([row[metric] for row in before["queries"]], [row[metric] for row in after["queries"]])
        verdict = "no difference that is more than noise" if change.is_noise else "better" if change.mean > 0 else "worse"
        if metric == "zero" and not change.is_noise:
            verdict = "worse" if change.mean > 0 else "better"
        lines.append(f"  {metric:11} {change.mean:+.3f}  [{change.low:+.3f}, {change.high:+.3f}]  {verdict}")
    return "\n".join(lines)


def failures(runs: Sequence[Run], least: Mapping[str, float]) -> list[str]:
    """Name every metric of a run that is below what it has to be."""
    return [
        f"{run['name']}: {metric} is {run['metrics'][metric]:.3f}, which is below {value}"
        for run in runs
        for metric, value in least.items()
        if run["metrics"][metric] < value
    ]


def read_run(path: Path, name: str) -> Run:
    """Give the run of this name from an earlier run's file, or its only one; `ParameterError` if there is none."""
    runs = _read_json(path)
    runs = runs.get("runs") if isinstance(runs, dict) else None
    known = [run for run in runs or () if isinstance(run, dict) and {"name", "queries"} <= run.keys()]
    fitting = [run for run in known if run["name"] == name] or (known if len(known) == 1 else [])
    if not fitting:
        raise ParameterError(f"{path} has no run {name!r}; it has {', '.join(run['name'] for run in known) or 'none at all'}")
    return dict(fitting[0])


def read_questions(path: Path) -> list[Judged]:
    """Give the judged questions of a file; `ParameterError` if it holds none."""
    return read_judged(_read_json(path))


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ParameterError(f"{path} cannot be read as JSON: {error}") from error


def drawer(path: Path) -> Callable[[Sequence[Run]], None]:
    """Give what draws the runs' metrics side by side into a file, as PNG or SVG by its name.

    Errors: `ConfigError` without matplotlib, `ParameterError` for another kind of file.
    """
    if path.suffix.lower() not in _PICTURES:
        raise ParameterError(f"a picture's name ends in {' or '.join(_PICTURES)}, not as {path.name!r}")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("a picture needs matplotlib: pip install 'otterwiki-semantic[eval]'") from None

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
        axes.set_ylabel("mean over the questions")
        axes.set_title(f"{len(runs[0]['queries'])} questions, pages ranked")
        axes.legend(loc="upper right", ncols=len(runs))
        figure.savefig(path)

    return draw
