"""Private directories, locks, atomic file writes, stored records and directory sizes."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from otterwiki_semantic.core.serialization import decode

T = TypeVar("T")

log = logging.getLogger(__name__)

_LOCK_PAUSE_SECONDS = 0.01
_BLOCK_BYTES = 512
"""The unit of `st_blocks`, whatever the block size of the file system."""


def make_private(directory: Path) -> None:
    """Create a directory for this user only, or restrict an existing one and log that. Errors: `OSError`."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = directory.stat()
    open_to_others = facts.st_mode & 0o077
    if not open_to_others or facts.st_uid != os.geteuid():
        return
    with suppress(OSError):  # some file systems have no permissions, or refuse to change them
        directory.chmod(stat.S_IMODE(facts.st_mode) & 0o700)
    if directory.stat().st_mode & 0o077:
        log.warning("%s is open to other users, and cannot be closed; set SEMANTIC_DATA_DIR to another directory", directory)
    else:
        log.warning("%s was open to other users (mode %o), and is closed now", directory, stat.S_IMODE(facts.st_mode))


def open_private(path: Path, flags: int = 0) -> int:
    """Open or create a file for reading and writing, for this user only whatever the umask; return its descriptor."""
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    with suppress(OSError):  # a file from an earlier version, or of another user
        os.fchmod(opened, 0o600)
    return opened


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[int]:
    """Hold the lock of a file, and yield its descriptor. Errors: `TimeoutError` after `seconds`; `OSError`."""
    opened = open_private(path)
    try:
        deadline = time.monotonic() + seconds
        while not try_lock(opened):
            if time.monotonic() >= deadline:
                raise TimeoutError(f"another process holds {path}, and did not release it within {seconds:g} s")
            time.sleep(_LOCK_PAUSE_SECONDS)
        yield opened
    finally:
        os.close(opened)


def try_lock(opened: int, *, shared: bool = False) -> bool:
    """Lock an open file unless another process has locked it; return whether it is locked. Errors: `OSError`."""
    try:
        fcntl.flock(opened, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_atomically(path: Path, text: str) -> None:
    """Replace the content of a private file with ASCII text, completely or not at all. Errors: `OSError`."""
    scratch = path.with_suffix(".new")
    with open(open_private(scratch, os.O_TRUNC), "w", encoding="ascii") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(path)


def read_record(path: Path, type_: type[T], consequence: str) -> T | None:
    """Return the record in a JSON file; None if there is none. A read failure is logged, with its `consequence`."""
    try:
        return decode(path.read_bytes(), type_)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        log.warning("%s cannot be read (%s); %s", path, error, consequence)
        return None


def directory_size(directory: Path, *, allocated: bool = False) -> int:
    """Return the size in bytes of all files below a directory, or of the disk blocks `allocated` for them."""
    size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):  # it may be gone
                facts = Path(folder, name).lstat()
                size += facts.st_blocks * _BLOCK_BYTES if allocated else facts.st_size
    return size
