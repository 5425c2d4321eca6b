"""The command line: index any git repository of Markdown pages, search it, show its state.

Exit codes: 0 success; 1 failure, with the reason on standard error; 2 usage error.
"""

from __future__ import annotations

import json
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click

from otterwiki_semantic import __version__
from otterwiki_semantic.cli.ask import ask_command
from otterwiki_semantic.cli.chroma import chroma_command
from otterwiki_semantic.cli.common import NO_COMMIT, equals_head, follow, index_options, open_index, wait_for_reranker
from otterwiki_semantic.cli.doctor.command import doctor_command
from otterwiki_semantic.cli.health import health_command
from otterwiki_semantic.cli.mcp import mcp_command
from otterwiki_semantic.cli.options import parameter_options
from otterwiki_semantic.core.errors import IndexUnavailableError, ParameterError, SemanticError
from otterwiki_semantic.core.parameters import QueryText, parse_parameters
from otterwiki_semantic.core.records import Answer, Hit, IndexStatus, Progress, RebuildState, SearchOptions
from otterwiki_semantic.core.serialization import to_builtins

_LAZY = {"chunks": "otterwiki_semantic.cli.chunks:chunks_command", "eval": "otterwiki_semantic.cli.evaluate.command:evaluate"}


class _Commands(click.Group):
    """Prints errors of this package as one line, and exits with code 1.

    The dependencies of some commands are imported on use, because `doctor` must work if a package is missing.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_LAZY])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _LAZY:
            command: click.Command = resolve_name(_LAZY[cmd_name])
            return command
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ParameterError as error:
            raise click.UsageError(str(error)) from error
        except SemanticError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Search by meaning in An Otter Wiki, or in any git repository of markdown."""


@main.command("index")
@index_options
def index_command(repository: Path | None, data_dir: Path | None, *, as_json: bool) -> None:
    """Bring the index up to date with the repository's HEAD, and wait for it.

    The exit status is 1 if pages remain that are found by keywords only, because the model failed.
    """
    with open_index(repository, data_dir) as index:
        index.notify()
        known_error = index.status().last_error
        status = follow(index, "indexing", _progress, lambda status: equals_head(status, known_error))
    _print_status(status, as_json=as_json)
    if status.index.pending_pages or status.is_outdated:
        raise SystemExit(1)


@main.command("reindex")
@index_options
@click.option("--full", is_flag=True, help="Read and divide all pages again, including unchanged ones.")
def reindex_command(repository: Path | None, data_dir: Path | None, *, as_json: bool, full: bool) -> None:
    """Build a new index next to the serving one, then switch to it. Unchanged text is not embedded again.

    Unchanged pages are checked and copied, unless settings that affect the index have changed.
    """
    with open_index(repository, data_dir) as index:
        estimate = index.reindex(full=full).estimate
        if estimate is not None:
            size, seconds = estimate.disk_bytes / 1e6, estimate.seconds
            click.echo(f"embedding {estimate.texts} passages; about {size:.0f} MB and {seconds:.0f} s", err=True)
        follow(index, "rebuilding", lambda status: status.rebuild, _rebuild_is_done)
        status = follow(index, "filling ChromaDB", _progress, equals_head)
    _print_status(status, as_json=as_json)


@main.command("rollback")
@index_options
def rollback_command(repository: Path | None, data_dir: Path | None, *, as_json: bool) -> None:
    """Return to the index that the last change of model, chunk profile or languages replaced, with its settings.

    Nothing is embedded but what has changed since. The settings stay in force until others are configured; another rollback
    returns to the newer index.
    """
    with open_index(repository, data_dir) as index:
        wanted = index.roll_back().generation

        def is_back(status: IndexStatus) -> bool:
            return status.generation == wanted and equals_head(status)

        status = follow(index, "returning", _progress, is_back)
    _print_status(status, as_json=as_json)


@main.command("status")
@index_options
def status_command(repository: Path | None, data_dir: Path | None, *, as_json: bool) -> None:
    """Show the content of the index, and the commit that it equals."""
    with open_index(repository, data_dir) as index:
        _print_status(index.status(), as_json=as_json)


@main.command("search")
@index_options
@parameter_options(SearchOptions, without=("draft",))
@click.argument("query", nargs=-1, required=True)
def search_command(
    repository: Path | None, data_dir: Path | None, query: tuple[str, ...], *, as_json: bool, **values: Any
) -> None:
    """Find the passages that answer QUERY.

    In QUERY, "exact words" must occur in a passage, a -word must not. Put two dashes before a query that begins with a minus:
    search -- -word other
    """
    text = QueryText().parse(" ".join(query), "QUERY")
    options = parse_parameters(SearchOptions, values)
    with open_index(repository, data_dir) as index:
        if options.rerank:
            wait_for_reranker(index)
        answer = index.search([text], options)[0]
    if as_json:
        click.echo(json.dumps(to_builtins(answer), ensure_ascii=False, indent=2))
    else:
        _print_answer(answer)


main.add_command(ask_command)
main.add_command(chroma_command)
main.add_command(doctor_command)
main.add_command(health_command)
main.add_command(mcp_command)


def _progress(status: IndexStatus) -> Progress:
    return status.rebuild if status.rebuild.state is RebuildState.RUNNING else status.progress


def _rebuild_is_done(status: IndexStatus) -> bool:
    if status.rebuild.state in {RebuildState.FAILED, RebuildState.IDLE}:
        raise IndexUnavailableError(status.rebuild.error or "the index daemon was restarted, and the rebuild is lost")
    return status.rebuild.state is RebuildState.DONE


def _print_status(status: IndexStatus, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(to_builtins(status), indent=2))
        return
    index = status.index
    if index.head is None and index.commit is None:
        click.echo(NO_COMMIT)
        return
    commit = (index.commit or "nothing yet")[:12]
    head = (
        "HEAD"
        if index.commit == index.head
        else f"HEAD is {(index.head or 'unborn')[:12]}, {index.pending_pages} pages pending"
    )
    head += f": {index.progress.describe()}" if index.progress else ""
    model = status.model + (f", reranker {status.reranker}" if status.reranker else "")
    excluded = f" ({status.excluded_pages} excluded)" if status.excluded_pages else ""
    click.echo(f"{status.status}: {status.pages} pages{excluded}, {status.chunks} chunks, at {commit} ({head}), model {model}")
    if status.last_error:
        click.echo(f"last error: {status.last_error}")
    for problem in status.problems:
        click.echo(f"problem: {problem.message}\n   hint: {problem.hint}")


def _print_answer(answer: Answer) -> None:
    for hit in answer.results:
        _print_hit(hit)
    for each in answer.corrections:
        click.echo(f"Also searched for {each.corrected}: no page has {each.typed}.", err=True)
    if answer.degraded:
        click.echo(answer.degraded, err=True)
    if answer.index.commit != answer.index.head:
        pending = answer.index.pending_pages
        how_far = f" ({answer.index.progress.describe()})" if answer.index.progress else ""
        click.echo(f"The index is behind by {pending} pages{how_far}. To wait for it: otterwiki-semantic index", err=True)
    elif not answer.results:
        click.echo("Nothing was found." if answer.index.head else NO_COMMIT, err=True)
    elif not answer.confident:
        click.echo("Nothing relevant was found; these are the nearest passages.", err=True)


def _print_hit(hit: Hit) -> None:
    trail = " > ".join(hit.section_path)
    click.secho(f"{hit.path}:{hit.start_line}", fg="green", nl=False)
    click.echo(f"  {_number(None if hit.distance is None else 1 - hit.distance)}  {trail}")
    for part in (hit.context_before, hit.snippet[hit.prefix_length :], hit.context_after):
        for line in (part or "").splitlines():
            click.echo(click.wrap_text(line, 100, "    ", "    "))
    if hit.also_on:
        click.echo(f"    (nearly the same on {', '.join(hit.also_on)})")
    if hit.explain:
        why = hit.explain
        both = (("meaning", why.semantic), ("words", why.keyword))
        sides = (f"{name} {_number(side.score)} (rank {side.rank or '-'})" for name, side in both)
        read = f", reranked {_number(why.rerank.score)} (rank {why.rerank.rank} before)" if why.rerank.rank else ""
        parts = (("page", why.page_credit), ("names", why.names), ("links", why.links), ("recency", why.recency))
        more = "".join(f" + {name} {points:.2f}" for name, points in parts if points or name == "page")
        click.echo(f"    {why.rule}: {', '.join(sides)}, fused {why.fused:.4g}{more}{read}")
    click.echo()


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
