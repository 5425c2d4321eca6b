"""The index that a command asks: the options that name it, its loan, and waiting for it."""

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
from otterwiki_semantic.core.records import IndexStatus, Progress, RebuildState
from otterwiki_semantic.core.settings import Settings, read_settings
from otterwiki_semantic.daemon import IndexClient, IndexService

_POLL_SECONDS = 0.1
_directory = click.Path(file_okay=False, path_type=Path)


def index_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every command that asks an index: where it is, and JSON."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON for programs."),
        click.option("--data-dir", type=_directory, help="Where the index lives. [default: beside the repository]"),
        click.option("--repository", type=_directory, help="Git repository of markdown. [default: the wiki's REPOSITORY]"),
    ):
        command = option(command)
    return command


@contextmanager
def lend_index(repository: Path | None, data_dir: Path | None) -> Iterator[IndexClient]:
    """Lend the index: the wiki's own process answers if it runs, else one that ends soon after this command."""
    index = IndexClient(named_settings(repository, data_dir), quiet=True)
    try:
        index.start()
        yield index
    finally:
        index.close()


def wait_for_reranker(index: IndexService) -> None:
    """Wait until the reranker is loaded, or cannot be: an index process that this command started has just begun to."""
    while index.status().reranker_is_loading:
        time.sleep(_POLL_SECONDS)


def named_settings(repository: Path | None, data_dir: Path | None) -> Settings:
    """Give the settings of the index that the options name.

    What is wrong with the repository is said before anything is made beside it; a subfolder of one stands for the whole.
    """
    config = wiki_config()
    settings = read_settings(config, repository=repository, data_dir=data_dir)
    root = Repository(settings.repository).root
    return read_settings(config, repository=root, data_dir=data_dir)


def named_repository(repository: Path | None) -> Repository:
    """Give the repository that the option names, else the wiki's."""
    return Repository(read_settings(wiki_config(), repository=repository).repository)


def follow(
    index: IndexService, label: str, part: Callable[[IndexStatus], Progress], is_done: Callable[[IndexStatus], bool]
) -> IndexStatus:
    """Show a progress bar until the work is done; `SemanticError` when it fails."""
    with click.progressbar(length=1, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        while not is_done(status := index.status()):
            progress = part(status)
            length = bar.length = max(progress.chunks_total, 1)
            bar.update(min(progress.chunks_done, length) - bar.pos)
            time.sleep(_POLL_SECONDS)
        bar.update((bar.length or 1) - bar.pos)
    return status


def equals_head(status: IndexStatus, known_error: str | None = None) -> bool:
    """Whether the index holds what HEAD is, made as it is to be, or cannot be more than it is.

    `IndexUnavailableError` if it fails, unless it did so before.
    """
    if status.last_error and status.last_error != known_error:
        raise IndexUnavailableError(status.last_error)
    if status.is_outdated and status.rebuild.state is not RebuildState.FAILED:
        return False
    is_at_head = status.index.commit == status.index.head and status.generation is not None
    return is_at_head and (status.status == "ready" or bool(status.problems))


def wiki_config() -> Config:
    """Give what the wiki's own file says, which is Python; `ConfigError` whatever it fails of."""
    config = Config(Path.cwd())
    path = os.environ.get("OTTERWIKI_SETTINGS")
    try:
        if path:
            config.from_pyfile(path)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"OTTERWIKI_SETTINGS names a file that cannot be read: {error or type(error).__name__}") from error
    return config
