"""Evaluation runs: measure the ranking with judged queries, and compare two runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from otterwiki_semantic.core.errors import ConfigError, ParameterError
from otterwiki_semantic.core.records import MAX_RESULTS, SearchOptions
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.search.evaluation import (
    LOSSES,
    PASSAGES,
    QUESTION_LOSSES,
    QUESTION_METRICS,
    JudgedQuery,
    difference,
    means,
    means_by_kind,
    percentiles,
    question_means,
    read_json,
    score,
    score_question,
)

SHOWN = ("ndcg", "mrr", "recall@1", "recall@5", "recall@10", "precision@5", *LOSSES)
_WARM_UP = 3
_INDEX = {"chunks": "chunks", "words_per_chunk": "words/chunk", "build_seconds": "build s"}
_PLOT_TYPES = (".png", ".svg")
QUESTIONS = "questions."
"""What the names of the metrics of questions begin with, for `failures`."""
_QUESTION_LABELS = {
    "r1": "page first",
    "r5": "page in 5",
    "ndcg": "page's rank in 10 (nDCG)",
    "s1": "section first",
    "s5": "section in 5",
    "a1": "answer in 1 passage",
    "a3": "answer in 3 passages",
    "a5": "answer in 5 passages",
    "labelled": "heading right",
    "unit": "unit right",
    "silent": "silent: unanswerable",
    "wrongly_silent": "silent: answerable",
}
_JUDGEMENTS = ("query", "kind", "page", "section", "answer")
"""What a question's row repeats of its entry in the query file."""

Run = dict[str, Any]
"""``{"name", "metrics", "latency_ms", "queries": [{"query", metric: value, …}, …]}``: the result of one configuration.

A row has `degraded` if its answer was. With a scratch index: ``"index": {"chunks", "words_per_chunk", "build_seconds"}``.
With questions: ``"questions": {"metrics", "by_kind", "rows": [{"query", "kind", …, metric: value, …}, …]}``.
"""


def measure(index: IndexService, name: str, queries: Sequence[JudgedQuery], options: SearchOptions) -> Run:
    """Search once for every query and score the ranking of pages; a progress bar is shown on a terminal.

    For a question, search again for the passages that a user sees.
    """
    options = structs.replace(options, is_logged=False)  # keep evaluation queries out of the search log
    for judged in queries[:_WARM_UP]:
        index.search([judged.query], options)
    rows: list[dict[str, Any]] = []
    questions: list[dict[str, Any]] = []
    latencies: list[float] = []
    with click.progressbar(queries, label=f"searching ({name})", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for judged in bar:
            start = time.perf_counter()
            answer = index.search([judged.query], options)[0]
            latencies.append((time.perf_counter() - start) * 1000)
            ranking = [hit.path for hit in answer.results]
            if judged.relevant:
                facts: dict[str, Any] = {part: getattr(judged, part) for part in ("query", "relevant", "exclude")}
                facts |= {"degraded": answer.degraded} if answer.degraded else {}
                rows.append(facts | score(judged, ranking, confident=answer.confident))
            if judged.kind:
                as_shown = _as_shown(options, judged)
                searches = (as_shown, structs.replace(as_shown, best_sentence=True))
                shown, marked = (index.search([judged.query], each)[0].results for each in searches)
                facts = {part: getattr(judged, part) for part in _JUDGEMENTS}
                questions.append(facts | score_question(judged, ranking, shown, marked))
    run: Run = {"name": name, "metrics": means(rows), "latency_ms": percentiles(latencies), "queries": rows}
    if questions:
        run["questions"] = {"metrics": question_means(questions), "by_kind": means_by_kind(questions), "rows": questions}
    return run


def _as_shown(options: SearchOptions, judged: JudgedQuery) -> SearchOptions:
    """Return the options of a search by default, with enough results to leave out excluded pages."""
    default = SearchOptions()
    per_page = default.max_chunks_per_page
    wanted = min(MAX_RESULTS, PASSAGES + per_page * len(judged.exclude))
    return structs.replace(options, n=wanted, limit=None, max_chunks_per_page=per_page)


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
    return "\n".join([*lines, *_question_table(runs)])


def _question_table(runs: Sequence[Run]) -> list[str]:
    """Return the metrics of questions as the lines of a table, one column per run."""
    if "questions" not in runs[0]:
        return []
    found = [run["questions"] for run in runs]
    rows = {label: [each["metrics"][metric] for each in found] for metric, label in _QUESTION_LABELS.items()}
    for kind, metrics in found[0]["by_kind"].items():
        rows |= {f"{kind}: {_QUESTION_LABELS[metric]}": [each["by_kind"][kind][metric] for each in found] for metric in metrics}
    label_width, width = max(map(len, rows)), max(11, *(len(run["name"]) for run in runs))
    lines = [f"{len(found[0]['rows'])} questions as readers type them, passages compared with the answers"]
    lines.append(" ".join([f"{'':{label_width}}", *(f"{run['name']:>{width}}" for run in runs)]))
    for label, values in rows.items():
        cells = ("-" if value is None else f"{value:.3f}" for value in values)
        lines.append(" ".join([f"{label:{label_width}}", *(f"{cell:>{width}}" for cell in cells)]))
    return ["", *lines]


def _row(cells: Iterable[str]) -> str:
    return " ".join(f"{cell:>11}" for cell in cells)


def comparison(before: Run, after: Run) -> str:
    """Describe how two runs differ; `ParameterError` if their queries or judgements differ."""
    if _questions_of(before) != _questions_of(after):
        raise ParameterError("the earlier run has other queries; only runs of the same queries can be compared")
    lines = [f"{after['name']} against {before['name']} before (difference, 95 % interval):"]
    lines += _changes(dict(zip(SHOWN, SHOWN, strict=True)), before["queries"], after["queries"])
    if "questions" in after:
        lines += _changes(_QUESTION_LABELS, before["questions"]["rows"], after["questions"]["rows"])
    return "\n".join(lines)


def _changes(labels: Mapping[str, str], before: Sequence[Run], after: Sequence[Run]) -> list[str]:
    """Return a line for each metric, by name, that any query has in both runs; their rows are in the same order."""
    lines = []
    width = max(map(len, labels.values()))
    for metric, label in labels.items():
        both = [(row[metric], other[metric]) for row, other in zip(before, after, strict=True)]
        known = [pair for pair in both if None not in pair]
        if not known:
            continue
        change = difference([old for old, _ in known], [new for _, new in known])
        is_better = change.mean < 0 if metric in {*LOSSES, *QUESTION_LOSSES} else change.mean > 0
        verdict = "no difference that is more than noise" if change.is_noise else "better" if is_better else "worse"
        lines.append(f"  {label:{width}} {change.mean:+.3f}  [{change.low:+.3f}, {change.high:+.3f}]  {verdict}")
    return lines


def _questions_of(run: Run) -> list[tuple[Any, ...]]:
    judged = [(row["query"], set(row["relevant"]), set(row["exclude"])) for row in run["queries"]]
    return [*judged, *(tuple(row[name] for name in _JUDGEMENTS) for row in _question_rows(run))]


def _question_rows(run: Run) -> list[Any]:
    rows: list[Any] = run["questions"]["rows"] if "questions" in run else []
    return rows


def failures(runs: Sequence[Run], least: Mapping[str, float]) -> list[str]:
    """Return a message for every metric of a run that is below its minimum, or that was not measured."""
    return [
        f"{run['name']}: {metric} {'was not measured' if found is None else f'is {found:.3f}, which is below {value}'}"
        for run in runs
        for metric, value in least.items()
        if (found := _mean(run, metric)) is None or found < value
    ]


def _mean(run: Run, metric: str) -> float | None:
    if not metric.startswith(QUESTIONS):
        return float(run["metrics"][metric])
    means_of: Mapping[str, float | None] = run["questions"]["metrics"] if "questions" in run else {}
    return means_of.get(metric.removeprefix(QUESTIONS))


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
    questions = value.get("questions", {"rows": []})
    if not isinstance(questions, dict) or not isinstance(questions.get("rows"), list):
        return False
    return all(map(_is_row, value["queries"])) and all(map(_is_question, questions["rows"]))


def _is_row(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("query"), str):
        return False
    paths = (value.get("relevant"), value.get("exclude"))
    is_judged = all(isinstance(part, list) and all(isinstance(path, str) for path in part) for part in paths)
    return is_judged and all(_is_share(value.get(metric)) for metric in SHOWN)


def _is_question(value: object) -> bool:
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str | None) for name in _JUDGEMENTS):
        return False
    return all(metric in value and (value[metric] is None or _is_share(value[metric])) for metric in QUESTION_METRICS)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


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
