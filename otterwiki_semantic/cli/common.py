"""What commands share: the options that name an index, access to it, and waiting for it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from flask import Config

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import ConfigError, IndexUnavailableError
from otterwiki_semantic.core.records import ChromaState, IndexStatus, Progress, RebuildState
from otterwiki_semantic.core.settings import Settings, read_settings, settings_with_model
from otterwiki_semantic.daemon import IndexClient, IndexService

NO_COMMIT = "HEAD has no commit yet, so there is nothing to index: commit the pages, or check out a branch that has them"
_POLL_SECONDS = 0.1
DIRECTORY = click.Path(file_okay=False, path_type=Path)


def index_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every command that uses an index."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--data-dir", type=DIRECTORY, help="Directory of the index. [default: next to the repository]"),
        click.option("--repository", type=DIRECTORY, help="Git repository of Markdown pages. [default: the wiki's REPOSITORY]"),
    ):
        command = option(command)
    return command


@contextmanager
def open_index(repository: Path | None, data_dir: Path | None) -> Iterator[IndexClient]:
    """Open the index that the options name: use the wiki's daemon if it runs, or start one that ends after this command."""
    index = IndexClient(settings_from_options(repository, data_dir), quiet=True)
    try:
        index.start()
        yield index
    finally:
        index.close()


def wait_for_reranker(index: IndexService) -> None:
    """Wait until the reranker is loaded or has failed to: a daemon started by this command has only begun to load it."""
    while index.status().reranker_is_loading:
        time.sleep(_POLL_SECONDS)


def settings_from_options(repository: Path | None, data_dir: Path | None, model: str | None = None) -> Settings:
    """Return the settings of the index that the options name; a subdirectory of a repository stands for the whole.

    With `model` they are those of an index with this embedding model.

    Errors: `ConfigError`, and `RepositoryError` before anything is created next to the repository.
    """
    config = wiki_config()
    settings = read_settings(config, repository=repository, data_dir=data_dir)
    root = Repository(settings.repository).root
    settings = read_settings(config, repository=root, data_dir=data_dir)
    return settings if model is None else settings_with_model(settings, model, config)


def repository_from_option(repository: Path | None) -> Repository:
    """Return the repository that the option names, or the wiki's."""
    settings = read_settings(wiki_config(), repository=repository)
    return Repository(settings.repository, settings.exclude)


def follow(
    index: IndexService, label: str, part: Callable[[IndexStatus], Progress], is_done: Callable[[IndexStatus], bool]
) -> IndexStatus:
    """Show a progress bar until the work is done. Errors: `SemanticError` if it fails."""
    with click.progressbar(length=1, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        while not is_done(status := index.status()):
            progress = part(status)
            length = bar.length = max(progress.chunks_total, 1)
            bar.update(min(progress.chunks_done, length) - bar.pos)
            time.sleep(_POLL_SECONDS)
        bar.update((bar.length or 1) - bar.pos)
    return status


def equals_head(status: IndexStatus, known_error: str | None = None) -> bool:
    """Whether the index equals HEAD, has the current settings and has filled ChromaDB, or a problem keeps it from that.

    Errors: `IndexUnavailableError` for an error other than the known one.
    """
    if status.last_error and status.last_error != known_error:
        raise IndexUnavailableError(status.last_error)
    if status.is_outdated and status.rebuild.state is not RebuildState.FAILED:
        return False
    is_at_head = status.status != "indexing" and status.index.commit == status.index.head and status.generation is not None
    is_filled = status.chroma is not None and status.chroma.state is ChromaState.READY
    return is_at_head and (is_filled or bool(status.problems))


def wiki_config() -> Config:
    """Read the wiki's settings file, which is Python code. Errors: `ConfigError`, whatever that code raises."""
    config = Config(Path.cwd())
    path = os.environ.get("OTTERWIKI_SETTINGS")
    try:
        if path:
            config.from_pyfile(path)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"OTTERWIKI_SETTINGS names a file that cannot be read: {error or type(error).__name__}") from error
    return config
