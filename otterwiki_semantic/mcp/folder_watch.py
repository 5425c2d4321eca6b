"""Follow the changes of a folder while an MCP server runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from otterwiki_semantic.content import Folder
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.daemon import IndexClient

_LONGEST_WAIT_SECONDS = 60.0
"""A network drive does not report changes by other machines."""
_QUIET_MILLISECONDS, _STEP_MILLISECONDS = 1_000, 100

log = logging.getLogger(__name__)


@contextmanager
def followed(folder: Folder | None, index: IndexClient) -> Iterator[None]:
    """Update the index after each change of the folder, if there is one, until the context exits."""
    stop = threading.Event()
    if folder is not None:
        threading.Thread(target=_follow, args=(folder, index, stop), name="folder", daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def _follow(folder: Folder, index: IndexClient, stop: threading.Event) -> None:
    problem = ""
    while not stop.is_set():
        watched = _directories(folder)
        for _ in _changes(watched, stop):
            try:
                folder.commit()
                index.notify()
                problem = ""
            except SemanticError as error:
                if str(error) != problem:
                    problem = str(error)
                    log.warning("%s", problem)
            if _directories(folder) != watched:
                break


def _directories(folder: Folder) -> list[str]:
    """Return the directories to watch; none while the folder is missing."""
    try:
        return folder.directories()
    except SemanticError:
        return []


def _changes(directories: list[str], stop: threading.Event) -> Iterator[object]:
    """Yield after each change of files in these directories, and after `_LONGEST_WAIT_SECONDS` without a change."""
    from watchfiles import watch

    try:
        yield from watch(
            *directories,
            watch_filter=lambda _, path: not (name := PurePath(path).name).startswith(".") or name == ".gitignore",
            stop_event=stop,
            debounce=_QUIET_MILLISECONDS,
            step=_STEP_MILLISECONDS,
            rust_timeout=int(_LONGEST_WAIT_SECONDS * 1_000),
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=False,  # it would follow symbolic links and watch ignored files
        )
    except (OSError, RuntimeError) as error:  # such as the system's limit of watches
        log.warning("the folder cannot be watched, and is read every %.0f s: %s", _LONGEST_WAIT_SECONDS, error)
        stop.wait(_LONGEST_WAIT_SECONDS)
        yield error
