"""Shared by commands: options, access to the index that they name, and waiting for it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from flask import Config
from msgspec import to_builtins

from otterwiki_semantic.content import Folder, Repository
from otterwiki_semantic.content.attachments import attachment_rule
from otterwiki_semantic.core.errors import ConfigError, IndexUnavailableError
from otterwiki_semantic.core.parameter_parsing import Parameter, Request, parameters_of
from otterwiki_semantic.core.records import ChromaState, IndexStatus, Progress, RebuildState
from otterwiki_semantic.core.serialization import Schema
from otterwiki_semantic.core.settings import Settings, read_settings, settings_with_model
from otterwiki_semantic.daemon import IndexClient, IndexService

NO_COMMIT = "HEAD has no commit yet, so there is nothing to index: commit the pages, or check out a branch that has them"
_POLL_SECONDS = 0.1
DIRECTORY = click.Path(file_okay=False, path_type=Path)
FOLDER_HELP = "Folder of Markdown files and documents, with or without git, instead of a repository."
DATA_DIR_HELP = "Directory of the index. [default: next to the repository; for a folder, in ~/.local/share/otterwiki-semantic]"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """The index named by the options of a command."""

    repository: Path | None
    """None for the wiki's."""
    data_dir: Path | None
    """None for the configured one, or one next to the repository."""
    folder: Folder | None = None
    """The folder that the repository mirrors, if it was created for one."""

    @classmethod
    def of(cls, repository: Path | None, folder: Path | None, data_dir: Path | None) -> IndexPlace:
        """Return the index of a repository, or of a folder, whose changes are committed first.

        Raises `RepositoryError` if the folder cannot be read, `ConfigError`, `click.UsageError` if both are given.
        """
        if folder is None:
            return cls(repository, data_dir)
        if repository is not None:
            raise click.UsageError("--repository and --folder cannot be combined")
        settings = read_settings(wiki_config(), repository=folder, data_dir=data_dir or folder)
        followed = Folder(folder, data_dir, attachment_rule(settings, is_folder=True))
        followed.commit()
        return cls(followed.directory, followed.data_dir, followed)

    def settings(self, model: str | None = None) -> Settings:
        """Return the settings of the index, optionally with another embedding model. Also raises `RepositoryError`.

        A subdirectory of a repository is read as the whole repository.
        """
        config = wiki_config()
        settings = read_settings(config, repository=self.repository, data_dir=self.data_dir)
        settings = read_settings(config, repository=Repository(settings.repository).root, data_dir=self.data_dir)
        if self.folder is not None:  # only a wiki shows a map
            settings = replace(settings, pages=tuple(name for name in settings.pages if name != "map"))
        return settings if model is None else settings_with_model(settings, model, config)

    def git(self) -> Repository:
        """Return the repository. Raises the errors of `settings`."""
        return Repository.of(self.settings())

    @contextmanager
    def open(self, *, waits: bool = True) -> Iterator[IndexClient]:
        """Open the index with the wiki's daemon, or with a new one that exits after this command.

        With `waits`, wait until the index of a folder equals it, or cannot.
        """
        index = IndexClient(self.settings(), quiet=True)
        try:
            index.start()
            if self.folder is not None and waits:
                _bring_up(index)
            yield index
        finally:
            index.close()


def index_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every command that uses an index; the command receives them as `place` and `as_json`."""

    @wraps(command)
    def with_place(
        *arguments: Any, repository: Path | None, folder: Path | None, data_dir: Path | None, **options: Any
    ) -> None:
        command(*arguments, place=IndexPlace.of(repository, folder, data_dir), **options)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--data-dir", type=DIRECTORY, help=DATA_DIR_HELP),
        click.option("--folder", type=DIRECTORY, help=FOLDER_HELP),
        click.option("--repository", type=DIRECTORY, help="Git repository of Markdown pages. [default: the wiki's REPOSITORY]"),
    ):
        with_place = option(with_place)
    return with_place


def parameter_options(record: type[Request], *, without: Collection[str] = ()) -> Callable[[F], F]:
    """Return a decorator that adds an option for each parameter of a record, except those named in `without`.

    The command receives them under their names in the REST API.
    """

    def decorate(command: F) -> F:
        for each in reversed(parameters_of(record)):
            if each.name not in without:
                command = _option(each)(command)
        return command

    return decorate


def _option(parameter: Parameter) -> Callable[[F], F]:
    flag, default = f"--{parameter.name.replace('_', '-')}", parameter.schema.get("default")
    help_text, values = parameter.help.replace("`", ""), parameter.values
    if values["type"] == "number":
        help_text = f"{help_text.removesuffix('.')} ({values['minimum']:g} to {values['maximum']:g})."
    if values["type"] == "boolean":
        if parameter.default is None:
            return click.option(f"{flag}/--no-{flag[2:]}", default=None, help=help_text)
        return click.option(flag, is_flag=True, help=help_text)
    names = (flag, f"-{flag[2:]}") if len(parameter.name) == 1 else (flag,)
    return click.option(
        *names,
        parameter.name,
        type=_type(values),
        default=default,
        show_default=default is not None,
        multiple=parameter.repeats,
        help=help_text,
    )


def _type(values: Schema) -> click.ParamType[Any]:
    match values:
        case {"enum": choices}:
            return click.Choice(choices)
        case {"type": "integer"}:
            return click.IntRange(values["minimum"], values["maximum"])
        case {"type": "number"}:
            return click.FLOAT
    return click.STRING


def print_json(value: object, *, ensure_ascii: bool = False) -> None:
    """Print a record, or dicts and lists, as JSON."""
    click.echo(json.dumps(to_builtins(value), ensure_ascii=ensure_ascii, indent=2))


def wait_for_reranker(index: IndexService) -> None:
    """Wait until the reranker is loaded or has failed: a daemon started by this command has only begun to load it."""
    while index.status().reranker_is_loading:
        time.sleep(_POLL_SECONDS)


def follow(index: IndexService, label: str, is_done: Callable[[IndexStatus], bool]) -> IndexStatus:
    """Show the progress of a rebuild, or else of a sync, until the work is done. Errors: `SemanticError` if it fails."""
    with progress_bar(label, length=1) as bar:
        while not is_done(status := index.status()):
            progress: Progress = status.rebuild if status.rebuild.state is RebuildState.RUNNING else status.progress
            length = bar.length = max(progress.chunks_total, 1)
            bar.update(min(progress.chunks_done, length) - bar.pos)
            time.sleep(_POLL_SECONDS)
        bar.update((bar.length or 1) - bar.pos)
    return status


def progress_bar(label: str, items: Iterable[Any] | None = None, length: int | None = None, *, hidden: bool = False) -> Any:
    """Return a progress bar on standard error, shown only on a terminal."""
    return click.progressbar(items, length, label, file=sys.stderr, hidden=hidden or not sys.stderr.isatty())


def indexed(index: IndexService) -> IndexStatus:
    """Sync the index with HEAD, and retry a model that failed. Raises `IndexUnavailableError` for a new error."""
    index.notify()
    known_error = index.status().last_error
    status = follow(index, "indexing", lambda status: equals_head(status, known_error))
    if status.status != "ready_by_words" or not (job := index.refresh(()).job):
        return status

    def is_retried(status: IndexStatus) -> bool:
        return index.job(job).state is not RebuildState.RUNNING and equals_head(status, known_error)

    return follow(index, "retrying the model", is_retried)


def _bring_up(index: IndexService) -> None:
    index.notify()
    known_error = index.status().last_error
    with suppress(IndexUnavailableError):  # the command reports it, or answers without it
        follow(index, "indexing", lambda status: is_at_head(status, known_error))


def equals_head(status: IndexStatus, known_error: str | None = None) -> bool:
    """Whether the index equals HEAD, has the current settings and has filled ChromaDB, or a problem prevents it.

    Raises `IndexUnavailableError` for an error other than the known one.
    """
    is_filled = status.chroma is not None and status.chroma.state is ChromaState.READY
    return is_at_head(status, known_error) and (is_filled or bool(status.problems))


def is_at_head(status: IndexStatus, known_error: str | None = None) -> bool:
    """Whether the index equals HEAD and has the current settings. Raises errors as `equals_head` does."""
    if status.last_error and status.last_error != known_error:
        raise IndexUnavailableError(status.last_error)
    if status.is_outdated and status.rebuild.state is not RebuildState.FAILED:
        return False
    return status.status != "indexing" and status.index.commit == status.index.head and status.generation is not None


def wiki_config() -> Config:
    """Read the wiki's settings file, which is Python code. Raises `ConfigError`, whatever that code raises."""
    config = Config(Path.cwd())
    path = os.environ.get("OTTERWIKI_SETTINGS")
    try:
        if path:
            config.from_pyfile(path)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"OTTERWIKI_SETTINGS names a file that cannot be read: {error or type(error).__name__}") from error
    return config
