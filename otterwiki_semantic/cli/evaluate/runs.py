"""Evaluation runs: measure a ranking with judged queries, and compare two runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, defstruct

from otterwiki_semantic.cli.common import progress_bar
from otterwiki_semantic.core.errors import ConfigError, ParameterError
from otterwiki_semantic.core.records import SearchContext, SearchOptions
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.search import SearchResult
from otterwiki_semantic.search.evaluation import (
    JUDGEMENTS,
    LOSSES,
    QUESTION_LOSSES,
    QUESTION_METRICS,
    JudgedQuery,
    Run,
    difference,
    judge,
    overlap,
    read_json,
)

SHOWN = ("ndcg", "mrr", "recall@1", "recall@5", "recall@10", "precision@5", *LOSSES)
_WARM_UP = 3
_INDEX = {"chunks": "chunks", "words_per_chunk": "words/chunk", "build_seconds": "build s"}
_PLOT_TYPES = (".png", ".svg")
QUESTIONS = "questions."
"""The prefix of the metrics of questions, for `failures`."""
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

_Share = Annotated[float, Meta(ge=0, le=1)]
_NAMES = {metric.replace("@", "_at_"): metric for metric in SHOWN}
_PATHS = [("relevant", list[str]), ("exclude", list[str])]
_Row = defstruct("Row", [("query", str), *_PATHS, *((name, _Share) for name in _NAMES)], rename=_NAMES)
_Asked = defstruct("Asked", [("query", str), ("pages", list[str]), ("ms", float), ("relevant", bool)])
_Question = defstruct(
    "Question", [*((name, str | None) for name in JUDGEMENTS), *((metric, _Share | None) for metric in QUESTION_METRICS)]
)


class _Questions(Struct):
    rows: list[_Question]  # type: ignore[valid-type]


class _Run(Struct):
    name: str
    queries: list[_Row]  # type: ignore[valid-type]
    asked: list[_Asked] = []  # type: ignore[valid-type]
    questions: _Questions | UnsetType = UNSET


class _File(Struct):
    """What `--output` writes, as far as `--compare` reads it."""

    runs: list[_Run]


def measure(index: IndexService, queries: Sequence[JudgedQuery], rankings: Mapping[str, SearchOptions]) -> list[Run]:
    """Return the run of each ranking, with a progress bar on a terminal. Evaluation queries are not logged."""

    def ask(query: str, options: SearchOptions) -> SearchResult:
        answer = index.search([query], options, context=SearchContext(is_logged=False))[0]
        return SearchResult(answer.results, answer.confident, answer.degraded, answer.facets, answer.total_hits)

    for judged in queries[:_WARM_UP]:
        for options in rankings.values():
            ask(judged.query, options)
    with progress_bar("searching", queries) as bar:
        return judge(ask, bar, rankings)


def table(runs: Sequence[Run]) -> str:
    """Return the runs as a table, one per line, with the facts of scratch indexes."""
    width = max(len(run["name"]) for run in runs)
    has_index = all("index" in run for run in runs)
    judged = len(runs[0]["queries"])
    columns = [*(SHOWN if judged else ("relevant",)), "p50 ms", "p95 ms", "p99 ms", *(_INDEX.values() if has_index else ())]
    title = f"{judged} questions, pages ranked" if judged else f"{len(runs[0]['asked'])} queries of the search log"
    lines = [title, f"{'':{width}} {_row(columns)}"]
    for run in runs:
        means = run["metrics"] if judged else {"relevant": fmean(row["relevant"] for row in run["asked"])}
        values = [f"{means[metric]:.3f}" for metric in (SHOWN if judged else means)]
        values += [f"{value:.1f}" for value in run["latency_ms"].values()]
        values += [str(run["index"][fact]) for fact in _INDEX] if has_index else []
        lines.append(f"{run['name']:{width}} {_row(values)}")
    return "\n".join([*lines, *_question_table(runs)])


def _question_table(runs: Sequence[Run]) -> list[str]:
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
    """Describe the differences of two runs; `ParameterError` if their queries or judgements differ."""
    asked = [[row["query"] for row in run.get("asked") or after["asked"]] for run in (before, after)]
    if _questions_of(before) != _questions_of(after) or asked[0] != asked[1]:
        raise ParameterError("the earlier run has other queries; only runs of the same queries can be compared")
    lines = [f"{after['name']} against {before['name']} before (difference, 95 % interval):"]
    lines += _changes(dict(zip(SHOWN, SHOWN, strict=True)), before["queries"], after["queries"])
    if "asked" in before:  # missing in files of the previous version
        lines += _answers_compared(before["asked"], after["asked"])
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


def _answers_compared(before: Sequence[Run], after: Sequence[Run]) -> list[str]:
    pairs = list(zip(before, after, strict=True))
    shares = [overlap(old["pages"], new["pages"]) for old, new in pairs]
    of_all = difference([0.0] * len(shares), shares)
    slower = difference([old["ms"] for old, _ in pairs], [new["ms"] for _, new in pairs])
    relevant = difference([old["relevant"] for old, _ in pairs], [new["relevant"] for _, new in pairs])
    return [
        f"  first ten pages that both have: {of_all.mean:.1%}  [{of_all.low:.1%}, {of_all.high:.1%}]",
        f"  queries with a relevant result: {relevant.mean:+.1%}  [{relevant.low:+.1%}, {relevant.high:+.1%}]",
        f"  milliseconds of a query: {slower.mean:+.1f}  [{slower.low:+.1f}, {slower.high:+.1f}]",
    ]


def _questions_of(run: Run) -> list[tuple[Any, ...]]:
    judged = [(row["query"], set(row["relevant"]), set(row["exclude"])) for row in run["queries"]]
    rows = run["questions"]["rows"] if "questions" in run else []
    return [*judged, *(tuple(row[name] for name in JUDGEMENTS) for row in rows)]


def failures(runs: Sequence[Run], least: Mapping[str, float]) -> list[str]:
    """Return a message for each metric of a run that is below its minimum or was not measured."""
    return [
        f"{run['name']}: {metric} {'was not measured' if found is None else f'is {found:.3f}, which is below {value}'}"
        for run in runs
        for metric, value in least.items()
        if (found := _mean(run, metric)) is None or found < value
    ]


def _mean(run: Run, metric: str) -> float | None:
    if not metric.startswith(QUESTIONS):
        found: float | None = run["metrics"].get(metric)
        return found
    means_of: Mapping[str, float | None] = run["questions"]["metrics"] if "questions" in run else {}
    return means_of.get(metric.removeprefix(QUESTIONS))


def read_run(path: Path, name: str) -> Run:
    """Read the run of this name, or the only one, from a file; `ParameterError` if there is none."""
    content = read_json(path)
    try:
        convert(content, _File)
    except ValidationError:
        raise ParameterError(f"{path} was not written by --output") from None
    runs: list[Run] = content["runs"]
    fitting = [run for run in runs if run["name"] == name] or (runs if len(runs) == 1 else [])
    if not fitting:
        raise ParameterError(f"{path} has no run {name!r}; its runs: {', '.join(run['name'] for run in runs) or 'none'}")
    return fitting[0]


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
