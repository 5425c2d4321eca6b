"""The index that a command asks: the options that name it, and its loan."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from flask import Config

from otterwiki_semantic.config import read_settings
from otterwiki_semantic.errors import ConfigError
from otterwiki_semantic.remote_index import RemoteIndex
from otterwiki_semantic.repository import Repository

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
def lend_index(repository: Path | None, data_dir: Path | None) -> Iterator[RemoteIndex]:
    """Lend the index: the wiki's own process answers if it runs, else one that ends soon after this command."""
    config = wiki_config()
    settings = read_settings(config, repository=repository, data_dir=data_dir)
    # Says what is wrong with the repository before anything is made beside it, and takes a subfolder for the whole.
    root = Repository(settings.repository).root
    index = RemoteIndex(read_settings(config, repository=root, data_dir=data_dir), quiet=True)
    try:
        index.start()
        yield index
    finally:
        index.close()


def wait_for_reranker(index: RemoteIndex) -> None:
    """Wait until the reranker is loaded, or cannot be: an index process that this command started has just begun to."""
    while index.status().reranker_is_loading:
        time.sleep(_POLL_SECONDS)


def named_repository(repository: Path | None) -> Repository:
    """Give the repository that the option names, else the wiki's."""
    return Repository(read_settings(wiki_config(), repository=repository).repository)


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
