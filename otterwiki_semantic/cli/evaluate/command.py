"""``otterwiki-semantic eval``: measure the ranking with questions whose answers are known, and draft such questions."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from otterwiki_semantic.cli.common import (
    equals_head,
    follow,
    index_options,
    lend_index,
    named_repository,
    named_settings,
    wait_for_reranker,
)
from otterwiki_semantic.cli.evaluate.drafts import draft_questions
from otterwiki_semantic.cli.evaluate.runs import Run, comparison, drawer, failures, measure, read_run, table
from otterwiki_semantic.content.chunking import PROFILES
from otterwiki_semantic.content.markdown import parse
from otterwiki_semantic.core.records import MAX_RESULTS, Mode, SearchOptions
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.search.evaluation import GAINS, JudgedQuery, read_judged_queries

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
@click.option(
    "--chunks",
    "profiles",
    multiple=True,
    type=click.Choice(list(PROFILES)),
    help="Ask an index with this chunk profile, built for it; give it again to compare profiles.",
)
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
    profiles: tuple[str, ...],
    compare: Path | None,
    least: tuple[tuple[str, float], ...],
    output: Path | None,
    plot: Path | None,
    *,
    rerank: bool,
    as_json: bool,
) -> None:
    """Ask the judged questions of the file QUERIES and show how good the ranking of pages is.

    QUERIES is a list of {"query": "…", "relevant": ["page", …], "exclude": ["page", …]}. --chunks builds an
    index for each profile, in the directory for temporary files, and removes it afterwards.
    """
    if profiles and data_dir:
        raise click.UsageError("--chunks builds indexes of its own and asks none in --data-dir; give one of the two")
    questions = read_judged_queries(queries)
    wanted = [Mode(mode) for mode in dict.fromkeys(modes)] or [Mode.HYBRID]
    indexes: list[str | None] = [*dict.fromkeys(profiles)] or [None]
    names = [_run_name(chunks, mode, wanted) for chunks in indexes for mode in wanted]
    earlier = {name: read_run(compare, name) for name in names} if compare else {}
    draw = drawer(plot) if plot else None
    for path in filter(None, (output, plot)):
        _check_writable(path)
    ranked = min(MAX_RESULTS, _RANKED + max(len(judged.exclude) for judged in questions))
    runs: list[Run] = []
    for chunks in indexes:
        with _asked_index(repository, data_dir, chunks) as (index, facts):
            if rerank:
                wait_for_reranker(index)
            for mode in wanted:
                name, options = _run_name(chunks, mode, wanted), SearchOptions(ranked, 1, mode, rerank=rerank)
                runs.append(measure(index, name, questions, options, _shown(f"asking ({name})")) | facts)
    _warn_of_lacks(runs)
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


def _shown(label: str) -> Callable[[Sequence[JudgedQuery]], Iterable[JudgedQuery]]:
    """Give what goes through questions with a progress bar on a terminal."""

    def through(questions: Sequence[JudgedQuery]) -> Iterator[JudgedQuery]:
        with click.progressbar(questions, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
            yield from bar

    return through


def _warn_of_lacks(runs: Sequence[Run]) -> None:
    """Say which answers had to do without a part of the search, since their run then measures something else."""
    for run in runs:
        if lacks := [row["degraded"] for row in run["queries"] if "degraded" in row]:
            count = f"{len(lacks)} of {len(run['queries'])}"
            click.echo(f"{run['name']}: {count} answers are not all they could be: {lacks[0]}", err=True)


def _run_name(chunks: str | None, mode: Mode, modes: Sequence[Mode]) -> str:
    """Give what a run is called: by its mode, its chunk profile, or both if several of both are compared."""
    if chunks is None:
        return mode.value
    return chunks if len(modes) == 1 else f"{chunks} {mode}"


@contextmanager
def _asked_index(
    repository: Path | None, data_dir: Path | None, chunks: str | None
) -> Iterator[tuple[IndexService, dict[str, Any]]]:
    """Lend the index that is asked, and what a run tells of it: the configured one, or one built for a chunk profile."""
    if chunks is None:
        with lend_index(repository, data_dir) as lent:
            _wait_until_ready(lent)
            yield lent, {}
        return
    from otterwiki_semantic.cli.evaluate.scratch_index import built_index  # with it comes all that an index needs

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the index has the wiki's text, and goes

    wait = partial(follow, label=f"building ({chunks})", part=lambda status: status.progress, is_done=equals_head)
    with built_index(named_settings(repository, None), chunks, wait) as (index, facts):
        for problem in index.status().problems:
            click.echo(f"problem with {chunks}: {problem.message}", err=True)
        yield index, {"index": facts}


def _wait_until_ready(index: IndexService) -> None:
    while (status := index.status()).index.commit != status.index.head or status.generation is None:
        if status.last_error:
            raise click.ClickException(status.last_error)
        time.sleep(_POLL_SECONDS)
