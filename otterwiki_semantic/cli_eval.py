"""``otterwiki-semantic eval``: measure the ranking with questions whose answers are known, and draft such questions."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from otterwiki_semantic.cli_index import index_options, lend_index, named_repository, wait_for_reranker
from otterwiki_semantic.drafting import draft_questions
from otterwiki_semantic.evaluation import GAINS, Judged
from otterwiki_semantic.markdown import parse
from otterwiki_semantic.measuring import Run, comparison, drawer, failures, measure, read_questions, read_run, table
from otterwiki_semantic.parameters import MAX_RESULTS
from otterwiki_semantic.records import Mode, SearchOptions
from otterwiki_semantic.service import IndexService

_RANKED = 20
_POLL_SECONDS = 0.1
_file = click.Path(dir_okay=False, path_type=Path)
_directory = click.Path(file_okay=False, path_type=Path)


class _Minimum(click.ParamType[tuple[str, float]]):
    name = "METRIC=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        metric, _, least = str(value).partition("=")
        try:
            if metric in GAINS and 0 <= float(least) <= 1:
                return metric, float(least)
        except ValueError:
            pass
        return self.fail(f"{value!r} is no METRIC=VALUE with a value from 0 to 1 and one of {', '.join(GAINS)}", param, ctx)


class _EvalGroup(click.Group):
    """A group whose command `run` need not be named."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, args if args and args[0] in self.commands else ["run", *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named or not args else ["run", *args])


@click.group("eval", cls=_EvalGroup)
def evaluate() -> None:
    """Measure the ranking with judged questions: eval QUERIES.json; or draft such questions: eval make."""


@evaluate.command("run")
@index_options
@click.option(
    "--mode", "modes", multiple=True, type=click.Choice([mode.value for mode in Mode]), help="Give it again to compare modes."
)
@click.option("--rerank", is_flag=True, help="Let the reranker order the best passages of each question.")
@click.option("--compare", type=_file, help="Compare with an earlier run's file (see --output).")
@click.option("--fail-under", "least", multiple=True, type=_Minimum(), help="Fail if a mean is below, such as ndcg=0.85.")
@click.option("--output", type=_file, help="Write the run to a file, to compare others with it.")
@click.option("--plot", type=_file, help="Draw a picture; FILE ends in .png or .svg.")
@click.argument("queries", type=_file)
def run_command(
    repository: Path | None,
    data_dir: Path | None,
    queries: Path,
    modes: tuple[str, ...],
    compare: Path | None,
    least: tuple[tuple[str, float], ...],
    output: Path | None,
    plot: Path | None,
    *,
    rerank: bool,
    as_json: bool,
) -> None:
    """Ask the judged questions of the file QUERIES and show how good the ranking of pages is.

    QUERIES is a list of {"query": "…", "relevant": ["page", …], "exclude": ["page", …]}.
    """
    questions = read_questions(queries)
    names = list(dict.fromkeys(modes)) or [Mode.HYBRID.value]
    earlier = {name: read_run(compare, name) for name in names} if compare else {}
    draw = drawer(plot) if plot else None
    for path in filter(None, (output, plot)):
        _check_writable(path)
    ranked = min(MAX_RESULTS, _RANKED + max(len(judged.exclude) for judged in questions))
    runs = []
    with lend_index(repository, data_dir) as index:
        _wait_until_ready(index)
        if rerank:
            wait_for_reranker(index)
        for name in names:
            options = SearchOptions(ranked, 1, Mode(name), rerank=rerank)
            runs.append(measure(index, name, questions, options, _shown(f"asking ({name})")))
    for run in runs:
        _warn_of_lacks(run)
    written = json.dumps({"runs": runs}, ensure_ascii=False, indent=1)
    click.echo(written if as_json else table(runs))
    for run in runs if compare else ():
        click.echo(comparison(earlier[run["name"]], run), err=as_json)
    if output:
        _write(output, written)
    if draw:
        draw(runs)
    if failed := failures(runs, dict(least)):
        raise click.ClickException("; ".join(failed))


@evaluate.command("make")
@click.option("--repository", type=_directory, help="Git repository of markdown. [default: the wiki's REPOSITORY]")
@click.option("--output", type=_file, help="Where to write the file; it must not be there yet.  [default: standard output]")
def make_command(repository: Path | None, output: Path | None) -> None:
    """Draft a query file from the wiki's own link texts; look through it before you trust it.

    A link's text is the question, the page it leads to the answer; the page it stands on is left out of the ranking.
    """
    if output:
        _check_writable(output)
        if output.exists():
            raise click.UsageError(f"{output} is there already; remove it, or name another file")
    git = named_repository(repository)
    head = git.head()
    files = git.pages(head) if head else {}
    contents = git.read(file.blob for file in files.values())
    pages = zip(files, contents, strict=True)
    drafts = draft_questions({path: parse(content.decode("utf-8", errors="replace")).links for path, content in pages})
    written = json.dumps(drafts, ensure_ascii=False, indent=1)
    if output:
        _write(output, written)
    else:
        click.echo(written)
    click.echo(f"{len(drafts)} questions from the links of {len(files)} pages", err=True)


def _check_writable(path: Path) -> None:
    """Say at once, not after the work, that a file cannot be written."""
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise click.UsageError(f"{path} cannot be written")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error}") from error


def _shown(label: str) -> Callable[[Sequence[Judged]], Iterable[Judged]]:
    """Give what goes through questions with a progress bar on a terminal."""

    def through(questions: Sequence[Judged]) -> Iterator[Judged]:
        with click.progressbar(questions, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
            yield from bar

    return through


def _warn_of_lacks(run: Run) -> None:
    """Say which answers of a run had to do without a part of the search, since the run then measures something else."""
    if lacks := [row["degraded"] for row in run["queries"] if "degraded" in row]:
        click.echo(
            f"{run['name']}: {len(lacks)} of {len(run['queries'])} answers are not all they could be: {lacks[0]}", err=True
        )


def _wait_until_ready(index: IndexService) -> None:
    while (status := index.status()).index.commit != status.index.head or status.generation is None:
        if status.last_error:
            raise click.ClickException(status.last_error)
        time.sleep(_POLL_SECONDS)
