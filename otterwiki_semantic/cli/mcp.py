"""``otterwiki-semantic mcp``: the wiki for agents, over the Model Context Protocol."""

from __future__ import annotations

import os
from pathlib import Path

import click

from otterwiki_semantic.cli.common import lend_index, named_repository
from otterwiki_semantic.core.errors import ConfigError

_directory = click.Path(file_okay=False, path_type=Path)


@click.command("mcp")
@click.option("--url", envvar="OTTERWIKI_URL", help="Address of a running wiki. [env: OTTERWIKI_URL, OTTERWIKI_API_KEY]")
@click.option("--repository", type=_directory, help="A git repository of markdown, instead of a running wiki.")
@click.option("--data-dir", type=_directory, help="Where its index lives. [default: beside the repository]")
@click.option("--http", "address", metavar="HOST:PORT", help="Serve over HTTP at /mcp. [default: standard input and output]")
@click.option("--allowed-host", "hosts", multiple=True, metavar="NAME", help="With --http: another name it is asked by.")
@click.option("--allowed-origin", "origins", multiple=True, metavar="ORIGIN", help="With --http: a web page that may ask.")
@click.option("--allow-reindex", is_flag=True, help="Let agents have the wiki indexed again.")
@click.pass_context
def mcp_command(
    ctx: click.Context,
    url: str | None,
    repository: Path | None,
    data_dir: Path | None,
    address: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    *,
    allow_reindex: bool,
) -> None:
    """Serve a wiki to agents over the Model Context Protocol.

    The wiki is a running one (--url), whose key is in OTTERWIKI_API_KEY, or a git repository on this machine (--repository).
    With --http, every request has to bring the token in MCP_AUTH_TOKEN if that is set; it has to be for other machines.
    """
    _check(ctx, url, repository, data_dir)
    _check_installed()
    from otterwiki_semantic.mcp import http_access, serve

    access = http_access(address, _environment("MCP_AUTH_TOKEN"), hosts, origins) if address else None
    if repository is None:
        from otterwiki_semantic.mcp import RestBackend

        serve(RestBackend(url or "", _environment("OTTERWIKI_API_KEY")), access, allow_reindex=allow_reindex)
        return
    from otterwiki_semantic.mcp import LocalBackend

    with lend_index(repository, data_dir) as index:
        serve(LocalBackend(index, named_repository(repository)), access, allow_reindex=allow_reindex)


def _check(ctx: click.Context, url: str | None, repository: Path | None, data_dir: Path | None) -> None:
    is_url_given = ctx.get_parameter_source("url") is click.core.ParameterSource.COMMANDLINE
    if repository is not None and is_url_given:
        raise click.UsageError("--url and --repository do not go together: the wiki is one or the other")
    if repository is None and not url:
        raise click.UsageError("say which wiki: --url (or OTTERWIKI_URL) for a running one, --repository for a directory")
    if repository is None and data_dir is not None:
        raise click.UsageError("--data-dir goes with --repository")


def _check_installed() -> None:
    try:
        import mcp.server.mcpserver  # noqa: F401
    except ModuleNotFoundError as error:
        needed = "pip install 'otterwiki-semantic[mcp]'"
        raise ConfigError(f"the MCP server needs a package that is not installed, or too old: {needed}") from error


def _environment(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None
