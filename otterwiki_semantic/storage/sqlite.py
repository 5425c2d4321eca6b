"""An SQLite file used by several threads: one writer at a time, readers that wait for nobody, errors told apart."""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from otterwiki_semantic.core.errors import CatalogCorruptError, CatalogError, DiskFullError

T = TypeVar("T")

_BUSY_SECONDS = 30
_VARIABLES = 500
_LOG_PAGES, _LOG_BYTES = 256, 1 << 18
"""Pages of the log that are written to the file at once, and how long the log may stay when nothing is written."""
_FREE_SHARE, _FEW_PAGES, _PAGES_AT_A_TIME = 0.03, 64, 512
"""Free pages that the file may keep: a share of all, and a few; and how many are given back at a time, in some 10 ms."""
_PAGE_BYTES = 8192
"""Five vectors of 384 numbers fill such a page; of SQLite's usual 4096 bytes two of them leave a fifth empty."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_DAMAGED_READS = (sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_READONLY_DBMOVED)


class SqliteFile:
    """One file (WAL), made with the statements of `tables` if it is not there.

    Errors: `CatalogCorruptError` when the file is no database, damaged, or has gone; `DiskFullError`, and `CatalogError` for
    whatever else may pass.
    """

    def __init__(self, path: Path, tables: str) -> None:
        self.path = path
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._writing = threading.Lock()
        self._is_closed = False
        self._snapshots = threading.local()
        self.is_new = not path.exists()
        with self._errors():
            self._writer = self._connect("rwc")
            if self.is_new:
                self._writer.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                self._writer.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            self._writer.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
            if self.is_new:
                self._writer.executescript(f"BEGIN; {tables} COMMIT;")
        self._file, self._log = _identity(path), _identity(self._log_path)

    def close(self) -> None:
        """Close every connection, for good: every later use is an error."""
        self._is_closed = True
        with self._writing:
            self._writer.close()
        self._close_idle()

    def _close_idle(self) -> None:
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    @property
    def is_in_place(self) -> bool:
        """Whether the file that was opened, and its log once there is one, still are those at their paths."""
        log = _identity(self._log_path)
        self._log = self._log or log
        return _identity(self.path) == self._file and log == self._log

    @property
    def _log_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}-wal")

    @property
    def _log_size(self) -> int:
        try:
            return self._log_path.stat().st_size
        except FileNotFoundError:
            return 0

    def check(self) -> None:
        """Read the whole file; `CatalogCorruptError` if its structure is not sound."""
        with self.read() as connection:
            finding = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if finding != "ok":
            raise CatalogCorruptError(f"the catalog {self.path} is damaged: {finding}")

    def copy_to(self, path: Path) -> None:
        """Write one state of the file to a new one without free pages, which is on the disk then.

        One statement of SQLite does it: the interpreter is free meanwhile, and whoever reads or writes the file goes on.
        """
        with self._errors(), closing(self._connect()) as connection:
            connection.execute("VACUUM INTO ?", (path.absolute().as_uri(),))
        with path.open("rb") as copy:
            os.fsync(copy.fileno())

    def tidy(self) -> None:
        """Give free pages back to the disk, some at a time, and cut a long log unless somebody reads it just now."""
        with self._writing, self._errors():
            free, pages = (self._writer.execute(f"PRAGMA {count}").fetchone()[0] for count in ("freelist_count", "page_count"))
            if free > _FEW_PAGES + _FREE_SHARE * pages:
                self._writer.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_A_TIME})")  # `execute` would free one page
            if self._log_size > _LOG_BYTES:
                self._writer.execute("PRAGMA busy_timeout = 0")
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._writer.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000}")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all that this thread reads within see one and the same state of the file."""
        with self.read() as connection:
            outer = getattr(self._snapshots, "connection", None)
            self._snapshots.connection = connection
            try:
                yield
            finally:
                self._snapshots.connection = outer

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that sees one state of the file throughout."""
        shared = getattr(self._snapshots, "connection", None)
        if shared is not None:
            with self._errors():
                yield shared
            return
        if self._is_closed:
            raise CatalogError(f"the catalog {self.path} is closed")
        with self._errors():
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                connection = self._connect()
            try:
                connection.execute("BEGIN")
                yield connection
            except BaseException:
                connection.close()
                raise
            connection.execute("COMMIT")
            self._idle.put(connection)
            if self._is_closed:
                self._close_idle()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection for one transaction: all of it happens, or nothing."""
        with self._writing, self._errors():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise

    def _connect(self, mode: str = "rw") -> sqlite3.Connection:
        """Open the file; it is made only by `rwc`, so that one which has gone is noticed."""
        place = f"{self.path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(place, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.row_factory = sqlite3.Row
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._kind(error)(f"the catalog {self.path} cannot be used: {error}") from error

    def _kind(self, error: sqlite3.Error) -> type[CatalogError]:
        extended = getattr(error, "sqlite_errorcode", 0)
        code = extended & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return DiskFullError
        is_other = str(error).startswith(("no such", "Could not decode"))
        has_gone = code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR} and not self.path.exists()
        return CatalogCorruptError if code in _DAMAGED or extended in _DAMAGED_READS or is_other or has_gone else CatalogError


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Give the values in parts that one statement can take."""
    return (values[start : start + _VARIABLES] for start in range(0, len(values), _VARIABLES))


def placeholders(values: Sequence[object]) -> str:
    """Give a statement's question marks for these values."""
    return ", ".join("?" * len(values))
