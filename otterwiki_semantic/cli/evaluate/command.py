"""``otterwiki-semantic eval``: evaluate the ranking with judged queries, and draft such queries from links."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import click

from otterwiki_semantic.cli.common import (
    DIRECTORY,
    FOLDER_HELP,
    IndexPlace,
    equals_head,
    follow,
    index_options,
    is_at_head,
    wait_for_reranker,
)
from otterwiki_semantic.cli.evaluate.answers import answers_table, measure_answers, read_unanswerable
from otterwiki_semantic.cli.evaluate.drafts import draft_questions
from otterwiki_semantic.cli.evaluate.runs import QUESTIONS, comparison, failures, measure, plotter, read_run, table
from otterwiki_semantic.content.markdown import parse_markdown
from otterwiki_semantic.content.pages import as_wiki_text, page_indexing
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.records import MAX_RESULTS, Fusion, Indexed, IndexStatus, Mode, SearchOptions
from otterwiki_semantic.core.settings import SETTINGS
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.search.evaluation import GAINS, QUESTION_LOSSES, QUESTION_METRICS, JudgedQuery, Run, read_query_file

_RANKED = 20
_MINIMA = (*GAINS, *(f"{QUESTIONS}{metric}" for metric in QUESTION_METRICS if metric not in QUESTION_LOSSES))
"""Metrics that --fail-under accepts."""
_Index = tuple[str | None, str | None]
"""The model and the chunk profile of a temporary index; None for the configured ones."""
_file = click.Path(dir_okay=False, path_type=Path)


class _Output(click.Path):
    """A file to write: fails before the work instead of after it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            self.fail(f"{path} cannot be written", param, ctx)
        return path


_output = _Output(dir_okay=False)


def _minimum(value: str) -> tuple[str, float]:
    metric, _, least = value.partition("=")
    with suppress(ValueError):
        if metric in _MINIMA and 0 <= float(least) <= 1:
            return metric, float(least)
    metrics = ", ".join(_MINIMA)
    raise click.BadParameter(f"{value!r} is not METRIC=VALUE with a value from 0 to 1 and one of the metrics {metrics}")


def _as_setting(setting: str, name: str) -> Callable[[str], str]:
    """Return a function that reads an option as a setting is read."""

    def read(value: str) -> str:
        try:
            return str(SETTINGS[setting].read(name, value))
        except ConfigError as error:
            raise click.BadParameter(str(error)) from None

    return read


class _EvalGroup(click.Group):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_run = args and args[0] not in {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, ["run", *args] if is_run else args)


@click.group("eval", cls=_EvalGroup)
def evaluate() -> None:
    """Measure how well searches rank the relevant pages (eval QUERIES), or evaluate answers, or draft judged queries."""


@evaluate.command("run")
@index_options
@click.option(
    "--mode", "modes", multiple=True, type=click.Choice([*map(str, Mode)]), help="Search mode; repeat to compare modes."
)
@click.option(
    "--fusion",
    "fusions",
    multiple=True,
    type=click.Choice([*map(str, Fusion)]),
    help="How hybrid rankings are fused; repeat to compare both. [default: sum]",
)
@click.option("--rerank", is_flag=True, help="Rerank the best passages of each query.")
@click.option(
    "--chunks",
    "profiles",
    multiple=True,
    type=_as_setting("SEMANTIC_CHUNKS", "the profile"),
    metavar="PROFILE",
    help="Build an index with this chunk profile, such as long or long:target=400, and use it; repeat to compare profiles.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    type=_as_setting("SEMANTIC_MODEL", "the model"),
    metavar="MODEL",
    help="Build an index with this embedding model, named as in SEMANTIC_MODEL, and use it; repeat to compare models.",
)
@click.option("--compare", type=_file, help="Compare with an earlier run's file (see --output).")
@click.option(
    "--fail-under",
    "least",
    multiple=True,
    type=_minimum,
    metavar="METRIC=VALUE",
    help="Fail if the mean of a metric is lower, such as ndcg=0.85 or questions.r5=0.8.",
)
@click.option("--output", type=_output, help="Write the run to a file, to compare others with it.")
@click.option("--plot", type=_output, help="Plot the metrics to a .png or .svg file.")
@click.argument("queries", type=_file, required=False)
def run_command(
    place: IndexPlace,
    queries: Path | None,
    modes: tuple[str, ...],
    fusions: tuple[str, ...],
    profiles: tuple[str, ...],
    models: tuple[str, ...],
    compare: Path | None,
    least: tuple[tuple[str, float], ...],
    output: Path | None,
    plot: Path | None,
    *,
    rerank: bool,
    as_json: bool,
) -> None:
    """Search for each judged query in the file QUERIES and show how well the relevant pages are ranked.

    QUERIES is a list of {"query": "…", "relevant": ["page", …], "exclude": ["page", …]}. Questions as readers type them
    also have a "kind" (question, keywords, situation or unanswerable), and may have the "page", "section" and "answer" that
    results are compared with.

    --chunks and --model build a temporary index for each profile and model; all models are compared with the first one. A
    model of the configured provider uses the configured address and key; other models use their provider's defaults.

    With --model and without QUERIES, the logged queries that found nothing relevant are searched for; --data-dir selects
    the log.
    """
    if queries is None and not models:
        raise click.UsageError("Missing argument 'QUERIES'.")
    if queries is None and plot:
        raise click.UsageError("--plot needs QUERIES: the search log has no judgements")
    if (profiles or models) and place.data_dir and queries:
        raise click.UsageError("--chunks and --model build their own indexes, and cannot be combined with --data-dir")
    judged = read_query_file(queries) if queries else _logged_queries(place)
    rankings = _rankings(modes, fusions)
    indexes = list(product(dict.fromkeys(models) or [None], dict.fromkeys(profiles) or [None]))
    names = {(each, label): _run_name(each, label, len(rankings)) for each in indexes for label in rankings}
    earlier = {name: read_run(compare, name) for name in names.values()} if compare else {}
    draw = plotter(plot) if plot else None
    runs: list[Run] = []
    for each in indexes:
        with _index_to_evaluate(place, *each) as (index, facts):
            own = {names[each, label]: ranking for label, ranking in rankings.items()}
            runs += [run | facts for run in _measure_rankings(index, own, judged, rerank=rerank)]
    _report(runs, earlier or _first_models_runs(runs, names), output, as_json=as_json)
    if draw:
        draw(runs)
    if failed := failures(runs, dict(least)):
        raise click.ClickException("; ".join(failed))


def _first_models_runs(runs: Sequence[Run], names: Mapping[tuple[_Index, str], str]) -> dict[str, Run]:
    """Return the baselines of other models: the run of the first model with the same profile and ranking."""
    by_name = {run["name"]: run for run in runs}
    (first, _), _ = next(iter(names))
    others = {name: names[(first, chunks), label] for ((model, chunks), label), name in names.items() if model != first}
    return {name: by_name[before] for name, before in others.items()}


def _logged_queries(place: IndexPlace) -> list[JudgedQuery]:
    with place.open() as index:
        insight = index.insight()
    if not insight.keeps_searches:
        raise click.ClickException("searches are not logged; name a file of judged QUERIES, or set SEMANTIC_SEARCH_LOG=true")
    if not insight.unanswered:
        raise click.ClickException("the search log has no query that found nothing relevant; name a file of judged QUERIES")
    return [JudgedQuery(each.query, ()) for each in insight.unanswered]


def _measure_rankings(
    index: IndexService, rankings: Mapping[str, tuple[Mode, Fusion]], judged: Sequence[JudgedQuery], *, rerank: bool
) -> list[Run]:
    if rerank:
        wait_for_reranker(index)
    ranked = min(MAX_RESULTS, _RANKED + max(len(query.exclude) for query in judged))
    options = {name: SearchOptions(ranked, 1, mode, fusion=fusion, rerank=rerank) for name, (mode, fusion) in rankings.items()}
    return measure(index, judged, options)


def _report(runs: Sequence[Run], earlier: Mapping[str, Run], output: Path | None, *, as_json: bool) -> None:
    for run in runs:  # degraded answers are not comparable
        if reasons := [row["degraded"] for row in run["queries"] if "degraded" in row]:
            count = f"{len(reasons)} of {len(run['queries'])}"
            click.echo(f"{run['name']}: {count} answers are degraded: {reasons[0]}", err=True)
    written = json.dumps({"runs": runs}, ensure_ascii=False, indent=1)
    click.echo(written if as_json else table(runs))
    for run in runs:
        if run["name"] in earlier:
            click.echo(comparison(earlier[run["name"]], run), err=as_json)
    if output:
        _write(output, written)


@evaluate.command("answers")
@index_options
@click.option("--unanswerable", type=_file, help="File of questions that the wiki does not answer, one per line.")
@click.option("--output", type=_output, help="Write the run to a file.")
@click.argument("queries", type=_file)
def answers_command(place: IndexPlace, unanswerable: Path | None, output: Path | None, queries: Path, *, as_json: bool) -> None:
    """Ask each question in the file QUERIES, and show how many answers are based on the relevant pages.

    Unanswerable questions, in QUERIES or in the --unanswerable file, should get no answer. Set SEMANTIC_ANSWERS to choose what
    writes the answers.
    """
    questions = [*(read_unanswerable(unanswerable) if unanswerable else ()), *read_query_file(queries)]
    questions.sort(key=lambda each: not each.relevant)
    with place.open() as index:
        follow(index, "indexing", _is_ready)
        run = measure_answers(index, questions)
    written = json.dumps(run, ensure_ascii=False, indent=1)
    click.echo(written if as_json else answers_table(run))
    if output:
        _write(output, written)


@evaluate.command("make")
@click.option("--repository", type=DIRECTORY, help="Git repository of Markdown pages. [default: the wiki's REPOSITORY]")
@click.option("--folder", type=DIRECTORY, help=FOLDER_HELP)
@click.option("--output", type=_output, help="File to write; it must not exist yet.  [default: standard output]")
def make_command(repository: Path | None, folder: Path | None, output: Path | None) -> None:
    """Draft judged queries from the wiki's links. Review them before use.

    Each link text becomes a query, and its target the relevant page. The page with the link is excluded from the ranking.
    """
    if output and output.exists():
        raise click.UsageError(f"{output} exists already; remove it or name another file")
    git = IndexPlace.of(repository, folder, None).git()
    head, notation = git.head(), git.notation
    files = git.pages(head) if head else {}
    contents = git.read_blobs(file.blob for file in files.values())
    pages = zip(files, contents, strict=True)
    texts = ((path, as_wiki_text(content.decode("utf-8", errors="replace"), notation)) for path, content in pages)
    documents = ((path, parse_markdown(text, page_first=notation.is_page_first)) for path, text in texts)
    indexed = ((path, page) for path, page in documents if page_indexing(page.front_matter) is not Indexed.NOT)
    drafts = draft_questions({path: page.links for path, page in indexed})
    written = json.dumps(drafts, ensure_ascii=False, indent=1)
    if output:
        _write(output, written)
    else:
        click.echo(written)
    click.echo(f"{len(drafts)} queries from the links of {len(files)} pages", err=True)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error}") from error


def _rankings(modes: Sequence[str], fusions: Sequence[str]) -> dict[str, tuple[Mode, Fusion]]:
    """Return the rankings to measure by name; only a hybrid one is fused, and named after its fusion if there are several."""
    wanted = [Fusion(fusion) for fusion in dict.fromkeys(fusions)] or [Fusion.SUM]
    rankings = {}
    for mode in [Mode(mode) for mode in dict.fromkeys(modes)] or [Mode.HYBRID]:
        if mode is not Mode.HYBRID or len(wanted) == 1:
            rankings[mode.value] = mode, wanted[0]
        else:
            rankings |= {f"{mode} {fusion}": (mode, fusion) for fusion in wanted}
    return rankings


def _run_name(index: _Index, ranking: str, rankings: int) -> str:
    """Return the name of a run: its model, its chunk profile, and its ranking if there are several or no other part."""
    named = [part for part in index if part]
    return " ".join([*named, ranking] if rankings > 1 or not named else named)


@contextmanager
def _index_to_evaluate(
    place: IndexPlace, model: str | None, chunks: str | None
) -> Iterator[tuple[IndexService, dict[str, Any]]]:
    if model is None and chunks is None:
        with place.open() as opened:
            follow(opened, "indexing", _is_ready)
            yield opened, {}
        return
    from otterwiki_semantic.cli.evaluate.scratch_index import interruptible, scratch_index  # imports the index's dependencies

    name = " ".join(filter(None, (model, chunks)))
    wait = partial(follow, label=f"building ({name})", is_done=equals_head)
    settings = replace(place, data_dir=None).settings(model)
    with interruptible(), scratch_index(settings, chunks or settings.chunks, wait) as (index, facts):
        for problem in index.status().problems:
            click.echo(f"problem with {name}: {problem.message}", err=True)
        yield index, {"index": facts}


def _is_ready(status: IndexStatus) -> bool:
    """Whether the index equals HEAD; then an earlier error does not matter. Raises errors as `is_at_head` does."""
    return (not status.is_outdated and is_at_head(status, status.last_error)) or is_at_head(status)
