"""``otterwiki-semantic eval``: evaluate the ranking with judged queries, and draft such queries from links."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from otterwiki_semantic.cli.common import (
    DIRECTORY,
    equals_head,
    follow,
    index_options,
    open_index,
    repository_from_option,
    settings_from_options,
    wait_for_reranker,
)
from otterwiki_semantic.cli.evaluate.answers import answers_table, measure_answers, read_questions
from otterwiki_semantic.cli.evaluate.drafts import draft_questions
from otterwiki_semantic.cli.evaluate.runs import (
    QUESTIONS,
    Run,
    comparison,
    failures,
    measure,
    plotter,
    read_run,
    table,
)
from otterwiki_semantic.content.chunking import profile_named
from otterwiki_semantic.content.markdown import parse_markdown
from otterwiki_semantic.content.pages import page_indexing
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.records import MAX_RESULTS, Fusion, Indexed, Mode, SearchOptions
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.search.evaluation import GAINS, QUESTION_LOSSES, QUESTION_METRICS, JudgedQuery, read_query_file

_RANKED = 20
_POLL_SECONDS = 0.1
_MINIMA = (*GAINS, *(f"{QUESTIONS}{metric}" for metric in QUESTION_METRICS if metric not in QUESTION_LOSSES))
"""Metrics of which --fail-under takes a minimum."""
_file = click.Path(dir_okay=False, path_type=Path)


class _Minimum(click.ParamType[tuple[str, float]]):
    name = "METRIC=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        metric, _, least = str(value).partition("=")
        try:
            if metric in _MINIMA and 0 <= float(least) <= 1:
                return metric, float(least)
        except ValueError:
            pass
        return self.fail(
            f"{value!r} is not METRIC=VALUE with a value from 0 to 1 and one of the metrics {', '.join(_MINIMA)}", param, ctx
        )


class _ChunkProfile(click.ParamType[str]):
    name = "PROFILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            profile_named(str(value), window=1)
        except ConfigError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class _EvalGroup(click.Group):
    """A group with the default command `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_run = args and args[0] not in {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, ["run", *args] if is_run else args)


@click.group("eval", cls=_EvalGroup)
def evaluate() -> None:
    """Evaluate the ranking with judged queries: eval QUERIES.json; answers: eval answers; or draft such queries: eval make."""


@evaluate.command("run")
@index_options
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice([mode.value for mode in Mode]),
    help="Search mode; repeat to compare modes.",
)
@click.option(
    "--fusion",
    "fusions",
    multiple=True,
    type=click.Choice([fusion.value for fusion in Fusion]),
    help="How hybrid rankings are fused; repeat to compare both. [default: sum]",
)
@click.option("--rerank", is_flag=True, help="Rerank the best passages of each query.")
@click.option(
    "--chunks",
    "profiles",
    multiple=True,
    type=_ChunkProfile(),
    help="Build an index with this chunk profile, such as long or long:target=400, and use it; repeat to compare profiles.",
)
@click.option("--compare", type=_file, help="Compare with an earlier run's file (see --output).")
@click.option(
    "--fail-under",
    "least",
    multiple=True,
    type=_Minimum(),
    help="Fail if the mean of a metric is lower, such as ndcg=0.85 or questions.r5=0.8.",
)
@click.option("--output", type=_file, help="Write the run to a file, to compare others with it.")
@click.option("--plot", type=_file, help="Plot the metrics to a .png or .svg file.")
@click.argument("queries", type=_file)
def run_command(
    repository: Path | None,
    data_dir: Path | None,
    queries: Path,
    modes: tuple[str, ...],
    fusions: tuple[str, ...],
    profiles: tuple[str, ...],
    compare: Path | None,
    least: tuple[tuple[str, float], ...],
    output: Path | None,
    plot: Path | None,
    *,
    rerank: bool,
    as_json: bool,
) -> None:
    """Search for the judged queries in the file QUERIES and show how well the relevant pages are ranked.

    QUERIES is a list of {"query": "…", "relevant": ["page", …], "exclude": ["page", …]}. Questions as readers type them
    also have a "kind" (question, keywords, situation or unanswerable), and may have the "page", "section" and "answer" that
    results are compared with. --chunks builds a temporary index for each profile.
    """
    if profiles and data_dir:
        raise click.UsageError("--chunks and --data-dir cannot be combined: --chunks builds its own indexes")
    judged, rankings = read_query_file(queries), _rankings(modes, fusions)
    indexes: list[str | None] = [*dict.fromkeys(profiles)] or [None]
    names = {(chunks, label): _run_name(chunks, label, len(rankings)) for chunks in indexes for label in rankings}
    earlier = {name: read_run(compare, name) for name in names.values()} if compare else {}
    draw = plotter(plot) if plot else None
    for path in filter(None, (output, plot)):
        _check_writable(path)
    runs: list[Run] = []
    for chunks in indexes:
        with _index_to_evaluate(repository, data_dir, chunks) as (index, facts):
            own = {names[chunks, label]: ranking for label, ranking in rankings.items()}
            runs += [run | facts for run in _measure_rankings(index, own, judged, rerank=rerank)]
    _report(runs, earlier, output, as_json=as_json)
    if draw:
        draw(runs)
    if failed := failures(runs, dict(least)):
        raise click.ClickException("; ".join(failed))


def _measure_rankings(
    index: IndexService, rankings: Mapping[str, tuple[Mode, Fusion]], judged: Sequence[JudgedQuery], *, rerank: bool
) -> Iterator[Run]:
    """Yield the run of each ranking by name."""
    if rerank:
        wait_for_reranker(index)
    ranked = min(MAX_RESULTS, _RANKED + max(len(query.exclude) for query in judged))
    for name, (mode, fusion) in rankings.items():
        yield measure(index, name, judged, SearchOptions(ranked, 1, mode, fusion=fusion, rerank=rerank))


def _report(runs: Sequence[Run], earlier: Mapping[str, Run], output: Path | None, *, as_json: bool) -> None:
    """Show and write runs, and compare them with those that are `earlier`, by name."""
    _warn_of_degraded(runs)
    written = json.dumps({"runs": runs}, ensure_ascii=False, indent=1)
    click.echo(written if as_json else table(runs))
    for run in runs:
        if run["name"] in earlier:
            click.echo(comparison(earlier[run["name"]], run), err=as_json)
    if output:
        _write(output, written)


@evaluate.command("answers")
@index_options
@click.option("--unanswerable", type=_file, help="Questions that the wiki does not answer, one on each line.")
@click.option("--output", type=_file, help="Write the run to a file.")
@click.argument("queries", type=_file)
def answers_command(
    repository: Path | None,
    data_dir: Path | None,
    unanswerable: Path | None,
    output: Path | None,
    queries: Path,
    *,
    as_json: bool,
) -> None:
    """Ask for answers to the judged queries in QUERIES, and show how many rest on the relevant pages.

    Its unanswerable questions are to be refused, as those of --unanswerable.

    SEMANTIC_ANSWERS names what writes the answers.
    """
    entries, others = read_query_file(queries), read_questions(unanswerable) if unanswerable else []
    judged = [each for each in entries if each.relevant]
    others += [each.query for each in entries if not each.relevant]
    if output:
        _check_writable(output)
    with open_index(repository, data_dir) as index:
        _wait_until_ready(index)
        run = measure_answers(index, judged, others)
    written = json.dumps(run, ensure_ascii=False, indent=1)
    click.echo(written if as_json else answers_table(run))
    if output:
        _write(output, written)


@evaluate.command("make")
@click.option("--repository", type=DIRECTORY, help="Git repository of Markdown pages. [default: the wiki's REPOSITORY]")
@click.option("--output", type=_file, help="File to write; it must not exist yet.  [default: standard output]")
def make_command(repository: Path | None, output: Path | None) -> None:
    """Draft judged queries from the link texts of the wiki; review them before use.

    The text of a link is the query, its target the relevant page; the page with the link is excluded from the ranking.
    """
    if output:
        _check_writable(output)
        if output.exists():
            raise click.UsageError(f"{output} exists already; remove it or name another file")
    git = repository_from_option(repository)
    head = git.head()
    files = git.pages(head) if head else {}
    contents = git.read_blobs(file.blob for file in files.values())
    pages = zip(files, contents, strict=True)
    documents = ((path, parse_markdown(content.decode("utf-8", errors="replace"))) for path, content in pages)
    indexed = ((path, page) for path, page in documents if page_indexing(page.front_matter) is not Indexed.NOT)
    drafts = draft_questions({path: page.links for path, page in indexed})
    written = json.dumps(drafts, ensure_ascii=False, indent=1)
    if output:
        _write(output, written)
    else:
        click.echo(written)
    click.echo(f"{len(drafts)} queries from the links of {len(files)} pages", err=True)


def _check_writable(path: Path) -> None:
    """Fail before the work, not after it, if a file cannot be written."""
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise click.UsageError(f"{path} cannot be written")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error}") from error


def _warn_of_degraded(runs: Sequence[Run]) -> None:
    """Warn of degraded answers: their run measures something else."""
    for run in runs:
        if reasons := [row["degraded"] for row in run["queries"] if "degraded" in row]:
            count = f"{len(reasons)} of {len(run['queries'])}"
            click.echo(f"{run['name']}: {count} answers are degraded: {reasons[0]}", err=True)


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


def _run_name(chunks: str | None, ranking: str, rankings: int) -> str:
    """Return the name of a run: its ranking, its chunk profile, or both if several of both are compared."""
    if chunks is None:
        return ranking
    return chunks if rankings == 1 else f"{chunks} {ranking}"


@contextmanager
def _index_to_evaluate(
    repository: Path | None, data_dir: Path | None, chunks: str | None
) -> Iterator[tuple[IndexService, dict[str, Any]]]:
    """Yield the configured index, or a scratch index with a chunk profile, and what a run records about it."""
    if chunks is None:
        with open_index(repository, data_dir) as opened:
            _wait_until_ready(opened)
            yield opened, {}
        return
    from otterwiki_semantic.cli.evaluate.scratch_index import scratch_index  # imports all that an index needs

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the scratch index has the wiki's text, so remove it
    wait = partial(follow, label=f"building ({chunks})", part=lambda status: status.progress, is_done=equals_head)
    with scratch_index(settings_from_options(repository, None), chunks, wait) as (index, facts):
        for problem in index.status().problems:
            click.echo(f"problem with {chunks}: {problem.message}", err=True)
        yield index, {"index": facts}


def _wait_until_ready(index: IndexService) -> None:
    while (status := index.status()).index.commit != status.index.head or status.generation is None:
        if status.last_error:
            raise click.ClickException(status.last_error)
        time.sleep(_POLL_SECONDS)
