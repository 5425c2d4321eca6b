"""Atomic file writes and the size of directories."""

from __future__ import annotations

import os
from pathlib import Path

_BLOCK_BYTES = 512
"""The unit of `st_blocks`, whatever the block size of the file system."""


def write_atomically(path: Path, text: str) -> None:
    """Replace the content of a file with ASCII text; after a crash it is either the old or the new one. Errors: `OSError`."""
    scratch = path.with_suffix(".new")
    with scratch.open("w", encoding="ascii") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(path)


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
