"""Atomic file writes, stored records, and the size of directories."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from typing import TypeVar

from otterwiki_semantic.core.serialization import decode

T = TypeVar("T")

log = logging.getLogger(__name__)

_BLOCK_BYTES = 512
"""The unit of `st_blocks`, whatever the block size of the file system."""


def write_atomically(path: Path, text: str, mode: int = 0o666) -> None:
    """Replace the content of a file with ASCII text; after a crash it is either the old or the new one. Errors: `OSError`.

    `mode` is its permissions, less those that the process's umask takes.
    """
    scratch = path.with_suffix(".new")
    with open(scratch, "w", encoding="ascii", opener=partial(os.open, mode=mode)) as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(path)


def read_record(path: Path, type_: type[T], consequence: str) -> T | None:
    """Return the record in a JSON file; None if there is no such file, or if it cannot be read.

    The latter is logged, with what follows from it.
    """
    try:
        return decode(path.read_bytes(), type_)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        log.warning("%s cannot be read (%s); %s", path, error, consequence)
        return None


def directory_size(directory: Path, *, allocated: bool = False) -> int:
    """Return the size in bytes of all files below a directory, or of the disk blocks `allocated` for them.

    Files that disappear in the meantime count as empty.
    """
    paths = (Path(folder, name) for folder, _, names in os.walk(directory) for name in names)
    return sum(_file_size(path, allocated=allocated) for path in paths)


def _file_size(path: Path, *, allocated: bool) -> int:
    try:
        facts = path.lstat()
    except OSError:
        return 0
    return facts.st_blocks * _BLOCK_BYTES if allocated else facts.st_size
