"""Record which page was being read when a process ended; a page that ended several in a row is then read more carefully."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from otterwiki_semantic.content import PageFile
from otterwiki_semantic.core.files import open_private


class CrashLog:
    """Record the page that is being read in a small file, for the next process to find if this one is killed."""

    def __init__(self, path: Path) -> None:
        self._file: int | None = None
        self._attempts: dict[str, int] = {}
        with suppress(OSError):  # pages are read without the file as well
            self._file = open_private(path)
            blob, _, attempts = os.read(self._file, 100).decode("ascii", errors="replace").partition(" ")
            if attempts.isdecimal():
                self._attempts[blob] = int(attempts)

    def crashes(self, file: PageFile) -> int:
        """Return how many processes in a row have ended while reading this page."""
        return self._attempts.get(file.blob, 0)

    @contextmanager
    def reading(self, file: PageFile) -> Iterator[None]:
        """Record that the block reads a page."""
        self._write(f"{file.blob} {self.crashes(file) + 1}")
        yield
        self._write("")

    def _write(self, line: str) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, os.pwrite(self._file, line.encode("ascii"), 0))
