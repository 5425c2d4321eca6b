"""`chroma`: the location of the ChromaDB collection, how to open it, and how to copy it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from otterwiki_semantic.cli.common import IndexPlace, equals_head, follow, index_options, print_json, progress_bar
from otterwiki_semantic.core.errors import IndexUnavailableError
from otterwiki_semantic.core.records import IndexStatus
from otterwiki_semantic.core.settings import DEFAULT_DATABASE, DEFAULT_TENANT, Settings

_HOW_TO_OPEN = """\
import chromadb
import otterwiki_semantic.chroma  # the embedding function of the collection

client = {client}
collection = client.get_collection("{name}")
found = collection.query(query_texts=["how is the heating vented"], n_results=5)
for path, text in zip(found["metadatas"][0], found["documents"][0]):
    print(path["page_path"], path["section"], text[:80], sep=" | ")
"""


@click.group("chroma", invoke_without_command=True)
@index_options
@click.pass_context
def chroma_command(context: click.Context, place: IndexPlace, *, as_json: bool) -> None:
    """Show the location of the ChromaDB collection, and ten lines of Python that open it.

    With SEMANTIC_CHROMA_URL you can read it at any time. No other process may open a collection in a directory while the wiki
    writes to it: make a copy with `chroma export`.
    """
    if context.invoked_subcommand is not None:
        return
    settings = place.settings()
    with place.open() as index:
        facts = _facts(settings, follow(index, "indexing", equals_head))
    if as_json:
        print_json(facts, ensure_ascii=True)
        return
    for name, value in facts.items():
        click.echo(f"{name.replace('_', ' ') + ':':<17}{'-' if value is None else value}")
    click.echo(f"\n{_HOW_TO_OPEN.format(client=_client(settings), name=facts['collection'])}", nl=False)


def _facts(settings: Settings, status: IndexStatus) -> dict[str, Any]:
    fill = status.chroma
    if fill is None:
        raise IndexUnavailableError("there is no index yet; build it with: otterwiki-semantic index")
    return {
        "place": settings.chroma_url or str(settings.data_dir / "chroma"),
        "collection": fill.collection,
        "model": status.model,
        "records": fill.count,
        "missing": fill.pending,
        "outdated": fill.outdated,
        "complete_at": fill.complete_at,
        "complete_commit": fill.complete_commit,
    }


def _client(settings: Settings) -> str:
    if settings.chroma_url is None:
        return 'chromadb.PersistentClient("DIR")  # DIR: written by `otterwiki-semantic chroma export DIR`'
    url = urlsplit(settings.chroma_url)
    port = url.port or (443 if url.scheme == "https" else 80)
    options = [f'host="{url.hostname}", port={port}, ssl={url.scheme == "https"}']
    tenant, database = settings.chroma_database.split("/")
    if (tenant, database) != (DEFAULT_TENANT, DEFAULT_DATABASE):
        options.append(f'tenant="{tenant}", database="{database}"')
    if settings.chroma_token:
        options.append('headers={"Authorization": "Bearer …"}')
    return f"chromadb.HttpClient({', '.join(options)})"


@chroma_command.command("export")
@index_options
@click.argument("directory", type=click.Path(path_type=Path))
def export_command(place: IndexPlace, directory: Path, *, as_json: bool) -> None:
    """Write a consistent copy of the collection, with texts and metadata, to a new directory, while the wiki runs."""
    from otterwiki_semantic.storage import export_collection

    settings = place.settings()
    with place.open() as index:
        status = follow(index, "indexing", equals_head)
        catalog = settings.data_dir / "generations" / str(status.generation) / "catalog.sqlite3"
        with progress_bar("exporting", length=1) as bar:

            def show(done: int, total: int) -> None:
                bar.length = total
                bar.update(done - bar.pos)

            count = export_collection(catalog, directory, settings.collection, show)
    if as_json:
        print_json({"directory": str(directory), "collection": settings.collection, "records": count}, ensure_ascii=True)
    else:
        click.echo(f"{count} records in the collection {settings.collection} in {directory}")
