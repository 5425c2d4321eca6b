"""The command line: index any git repository or folder of Markdown pages, search it, show its state.

Exit codes: 0 success; 1 failure, with the reason on standard error; 2 usage error.
"""

from __future__ import annotations

import os
from pkgutil import resolve_name
from typing import Any

import click
from click.shell_completion import get_completion_class
from msgspec import structs

from otterwiki_semantic import __version__
from otterwiki_semantic.cli.ask import ask_command
from otterwiki_semantic.cli.chroma import chroma_command
from otterwiki_semantic.cli.common import (
    NO_COMMIT,
    IndexPlace,
    equals_head,
    follow,
    index_options,
    indexed,
    parameter_options,
    print_json,
    wait_for_reranker,
)
from otterwiki_semantic.cli.doctor.command import doctor_command
from otterwiki_semantic.cli.health import health_command
from otterwiki_semantic.cli.mcp import mcp_command
from otterwiki_semantic.cli.results import CROP_WORDS, print_answer, url_option, urls_of
from otterwiki_semantic.core.errors import IndexUnavailableError, ParameterError, SemanticError
from otterwiki_semantic.core.humanize import count
from otterwiki_semantic.core.parameter_parsing import parse_parameters
from otterwiki_semantic.core.records import Highlight, IndexStatus, RebuildState, SearchOptions, query_text

_NAME = "otterwiki-semantic"
_LAZY = {"chunks": "otterwiki_semantic.cli.chunks:chunks_command", "eval": "otterwiki_semantic.cli.evaluate.command:evaluate"}


class _Commands(click.Group):
    """A group that prints errors of this package as one line, and exits with code 1.

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
@click.pass_context
def main(context: click.Context) -> None:
    """Search by meaning in An Otter Wiki, or in any git repository or folder of Markdown."""
    context.color = False if os.environ.get("NO_COLOR") else None  # None: the terminal decides; see https://no-color.org


@main.command("index")
@index_options
def index_command(place: IndexPlace, *, as_json: bool) -> None:
    """Bring the index up to date with the repository's HEAD, or with the folder, and wait until it is.

    The exit status is 1 if the model failed, so that some pages are found by keywords only.
    """
    with place.open() as index:
        status = indexed(index)
    _print_status(status, as_json=as_json)
    if status.index.pending_pages or status.is_outdated:
        raise SystemExit(1)


@main.command("reindex")
@index_options
@click.option("--full", is_flag=True, help="Read and divide all pages again, including unchanged ones.")
@click.option("--embed", is_flag=True, help="Embed all passages again as well.")
def reindex_command(place: IndexPlace, *, as_json: bool, full: bool, embed: bool) -> None:
    """Build a new index next to the serving one, then switch to it.

    Unchanged pages are checked and copied, unless settings that affect the index have changed. Unchanged text is embedded
    again only with --embed.
    """
    with place.open() as index:
        estimate = index.reindex(full=full, embed=embed).estimate
        if estimate is not None:
            size, seconds = estimate.disk_bytes / 1e6, estimate.seconds
            click.echo(f"embedding {estimate.texts} passages; about {size:.0f} MB and {seconds:.0f} s", err=True)
        follow(index, "rebuilding", _rebuild_is_done)
        status = follow(index, "filling ChromaDB", equals_head)
    _print_status(status, as_json=as_json)


@main.command("rollback")
@index_options
def rollback_command(place: IndexPlace, *, as_json: bool) -> None:
    """Go back to the index, and its settings, that the last change of model, chunk profile or languages replaced.

    Only pages changed since then are embedded. The old settings stay in force until you configure others; a second rollback
    returns to the newer index.
    """
    with place.open() as index:
        before, wanted = index.status().generation, index.roll_back().generation

        def is_back(status: IndexStatus) -> bool:
            if status.generation not in {before, wanted}:
                raise IndexUnavailableError(
                    "this command has other settings than the wiki, so the index was rebuilt with them;"
                    " run it in the wiki's environment, and roll back again"
                )
            return status.generation == wanted and equals_head(status)

        status = follow(index, "returning", is_back)
    _print_status(status, as_json=as_json)


@main.command("status")
@index_options
def status_command(place: IndexPlace, *, as_json: bool) -> None:
    """Show what the index contains, and how far it is behind HEAD."""
    with place.open() as index:
        _print_status(index.status(), as_json=as_json)


@main.command("search")
@index_options
@url_option
@parameter_options(SearchOptions, without=("draft",))
@click.argument("query", nargs=-1, required=True)
def search_command(place: IndexPlace, url: str | None, query: tuple[str, ...], *, as_json: bool, **values: Any) -> None:
    """Search for QUERY and print the best passages.

    About fifty words of each passage are shown, around the best match; use --crop to show more or fewer.

    In QUERY, "quoted words" must occur exactly as written, and -word excludes passages with that word. If QUERY begins with a
    minus sign, put -- before it: search -- -word other
    """
    text = query_text(" ".join(query), "QUERY")
    options = parse_parameters(SearchOptions, values)
    if not as_json:
        options = structs.replace(options, crop=options.crop or CROP_WORDS, highlight=Highlight.RANGES)
    with place.open() as index:
        if options.rerank:
            wait_for_reranker(index)
        answer = index.search([text], options, urls_of(url))[0]
    if as_json:
        print_json(answer)
    else:
        print_answer(answer)


@main.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the shell completion script. To enable completion: eval "$(otterwiki-semantic completion bash)"."""
    root = context.find_root()
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(root.command, {}, _NAME, f"_{_NAME.upper().replace('-', '_')}_COMPLETE").source())


main.add_command(ask_command)
main.add_command(chroma_command)
main.add_command(doctor_command)
main.add_command(health_command)
main.add_command(mcp_command)


def _rebuild_is_done(status: IndexStatus) -> bool:
    if status.rebuild.state in {RebuildState.FAILED, RebuildState.IDLE}:
        raise IndexUnavailableError(status.rebuild.error or "the index daemon was restarted, and the rebuild is lost")
    return status.rebuild.state is RebuildState.DONE


def _print_status(status: IndexStatus, *, as_json: bool) -> None:
    if as_json:
        print_json(status, ensure_ascii=True)
        return
    index = status.index
    if index.head is None and index.commit is None:
        click.echo(NO_COMMIT)
        return
    commit = (index.commit or "nothing yet")[:12]
    head = (
        "HEAD"
        if index.commit == index.head
        else f"HEAD is {(index.head or 'unborn')[:12]}, {count(index.pending_pages, 'page')} pending"
    )
    head += f": {index.progress.describe()}" if index.progress else ""
    model = status.model + (f", reranker {status.reranker}" if status.reranker else "")
    click.echo(f"{status.status}: {status.contents}, {status.chunks} chunks, at {commit} ({head}), model {model}")
    if status.unread:
        click.echo(status.unread)
    if status.last_error:
        click.echo(f"last error: {status.last_error}")
    for problem in status.problems:
        click.echo(f"problem: {problem.message}\n   hint: {problem.hint}")
