"""Which page was being read when a process ended: one at which several ended in a row must not be read like that again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from otterwiki_semantic.content import PageFile
from otterwiki_semantic.core.files import open_private


class CrashLog:
    """Records the page that is being read in a small file, which the next process finds if this one ends in the middle."""

    def __init__(self, path: Path) -> None:
        self._file: int | None = None
        self._attempts: dict[str, int] = {}
        with suppress(OSError):  # without it pages are read all the same
            self._file = open_private(path)
            blob, _, attempts = os.read(self._file, 100).decode("ascii", errors="replace").partition(" ")
            if attempts.isdecimal():
                self._attempts[blob] = int(attempts)

    def crashes(self, file: PageFile) -> int:
        """Return how many processes in a row have ended while they read this page."""
        return self._attempts.get(file.blob, 0)

    @contextmanager
    def reading(self, file: PageFile) -> Iterator[None]:
        """Record that a page is being read in the block."""
        self._write(f"{file.blob} {self.crashes(file) + 1}")
        yield
        self._write("")

    def _write(self, line: str) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, os.pwrite(self._file, line.encode("ascii"), 0))
