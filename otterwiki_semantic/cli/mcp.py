"""``otterwiki-semantic mcp``: serve a wiki to agents over the Model Context Protocol."""

from __future__ import annotations

import os
from pathlib import Path

import click

from otterwiki_semantic.cli.common import DATA_DIR_HELP, DIRECTORY, FOLDER_HELP, IndexPlace
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.installation import pip_install


@click.command("mcp")
@click.option("--url", envvar="OTTERWIKI_URL", help="URL of a running wiki. [env: OTTERWIKI_URL, OTTERWIKI_API_KEY]")
@click.option("--repository", type=DIRECTORY, help="Git repository of Markdown pages, instead of a running wiki.")
@click.option("--folder", type=DIRECTORY, help=f"{FOLDER_HELP} Its changes are followed.")
@click.option("--data-dir", type=DIRECTORY, help=DATA_DIR_HELP)
@click.option("--http", "address", metavar="HOST:PORT", help="Serve over HTTP at /mcp. [default: standard input and output]")
@click.option(
    "--allowed-host", "hosts", multiple=True, metavar="NAME", help="With --http: a further host name that requests may use."
)
@click.option(
    "--allowed-origin", "origins", multiple=True, metavar="ORIGIN", help="With --http: a web origin that may send requests."
)
@click.option(
    "--public-url",
    envvar="MCP_PUBLIC_URL",
    metavar="URL",
    help="With --http and --url: this server's https:// address, for clients that use OAuth. [env: MCP_PUBLIC_URL]",
)
@click.option(
    "--wiki-url",
    envvar="OTTERWIKI_PUBLIC_URL",
    metavar="URL",
    help="The wiki's address in a browser, if it is not that of --url. [env: OTTERWIKI_PUBLIC_URL]",
)
@click.option("--allow-reindex", is_flag=True, help="Let agents reindex the wiki.")
@click.option(
    "--allow-write",
    is_flag=True,
    help="Let agents create, change and delete pages, if the wiki has SEMANTIC_ALLOW_WRITE.",
)
@click.option(
    "--answers", "can_answer", is_flag=True, help="Offer answer_question, for clients without a model (SEMANTIC_ANSWERS)."
)
@click.option(
    "--aliases",
    "has_aliases",
    is_flag=True,
    help="Offer the tools also as search_markdown and, with --allow-reindex, as reindex_documents and update_files.",
)
@click.option(
    "--structured-content",
    "is_structured",
    is_flag=True,
    help="Answer also with structured content, for programs; an agent may then read everything twice.",
)
def mcp_command(
    url: str | None,
    repository: Path | None,
    folder: Path | None,
    data_dir: Path | None,
    address: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    public_url: str | None,
    wiki_url: str | None,
    *,
    allow_write: bool,
    **flags: bool,
) -> None:
    """Serve a wiki to agents over the Model Context Protocol.

    Choose a running wiki (--url, with its key in OTTERWIKI_API_KEY), a git repository (--repository) or a folder of Markdown
    files (--folder) on this machine.

    With --http, requests must send the token in MCP_AUTH_TOKEN, which must be set if other machines can connect. With
    --public-url, people can also connect clients such as Claude.ai and ChatGPT with their own wiki account.
    """
    local = repository or folder
    _check(url, local, data_dir)
    if public_url and (local is not None or not address):
        raise click.UsageError("--public-url requires --http, and a running wiki (--url) whose accounts people log in with")
    if allow_write and local is not None:
        raise click.UsageError("--allow-write requires a running wiki (--url): only a wiki knows who may write, and as whom")
    try:
        import mcp.server.mcpserver  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError(f"the package mcp is not installed or too old: {pip_install('mcp')}") from error
    from otterwiki_semantic.mcp import LocalBackend, RestBackend, followed, http_access, oauth_settings, serve

    key = _environment("OTTERWIKI_API_KEY")
    oauth = oauth_settings(public_url, url or "", wiki_url, key) if public_url else None
    access = http_access(address, _environment("MCP_AUTH_TOKEN"), hosts, origins, oauth) if address else None
    if local is None:
        wiki = RestBackend(url or "", key, browser_url=wiki_url)
        serve(wiki, access, writable=wiki if allow_write else None, **flags)
        return
    place = IndexPlace.of(repository, folder, data_dir)
    with place.open(waits=False) as index, followed(place.folder, index):
        serve(LocalBackend(index, place.git(), place.folder), access, **flags)


def _check(url: str | None, local: Path | None, data_dir: Path | None) -> None:
    is_url_given = click.get_current_context().get_parameter_source("url") is click.core.ParameterSource.COMMANDLINE
    if local is not None and is_url_given:
        raise click.UsageError("--url cannot be combined with --repository or --folder")
    if local is None and not url:
        message = "no wiki given; use --url (or OTTERWIKI_URL) for a running wiki, --repository or --folder for a directory"
        raise click.UsageError(message)
    if local is None and data_dir is not None:
        raise click.UsageError("--data-dir requires --repository or --folder")


def _environment(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None
