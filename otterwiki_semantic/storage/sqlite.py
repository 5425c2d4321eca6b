"""A SQLite file for several threads: one writer at a time, readers that never wait, and errors by cause."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from otterwiki_semantic.core.errors import CatalogClosedError, CatalogCorruptError, CatalogError, DiskFullError

T = TypeVar("T")
IN_LIST = "IN (SELECT value FROM json_each(?))"
LAST_CHARACTER = "\U0010ffff"
"""Ends a range of texts with the same beginning."""

_BUSY_SECONDS = 30
_CHECKPOINT_PAGES, _MAX_LOG_BYTES = 256, 1 << 18
"""Pages of the write-ahead log per checkpoint, and the maximum size of the log while nothing is written."""
_CACHE_KB, _BULK_CACHE_KB = 2_000, 32_768
"""Memory for the pages of a transaction: SQLite's default, and for many changes. Without room, it writes pages repeatedly."""
_FREE_SHARE, _FREE_PAGES, _VACUUM_PAGES = 0.03, 64, 512
"""Maximum free pages in the file, as a share and in addition, and the pages to vacuum at once, in about 10 ms."""
_PAGE_BYTES = 8192
"""A page of this size holds five vectors of 384 numbers. In SQLite's default of 4096 bytes, two leave a fifth empty."""
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_CORRUPT_READS = (sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_READONLY_DBMOVED)


class SqliteFile:
    """One file in WAL mode, created with the statements in `tables` if it does not exist.

    Errors: `CatalogCorruptError` if the file is not a database, is corrupt or is gone; `DiskFullError`; and `CatalogError` for
    any problem that may be temporary.
    """

    def __init__(self, path: Path, tables: str) -> None:
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        self._writing = threading.Lock()
        self._is_closed = False
        self._snapshots = threading.local()
        is_new = not path.exists()
        with self._translate_errors():
            self._writer = self._connect("rwc")
            if is_new:
                self._writer.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                self._writer.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            self._writer.execute(f"PRAGMA journal_size_limit = {_MAX_LOG_BYTES}")
            if is_new:
                self._writer.executescript(f"BEGIN; {tables} COMMIT;")
        self._file, self._log = _identity(path), _identity(self._log_path)

    def close(self) -> None:
        """Close every connection; any later use is an error."""
        self._is_closed = True
        with self._writing:
            self._writer.close()
        self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    @property
    def is_in_place(self) -> bool:
        """Whether the opened file is still the one at its path, and its log too once it exists."""
        log = _identity(self._log_path)
        self._log = self._log or log
        return _identity(self.path) == self._file and log == self._log

    @property
    def _log_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}-wal")

    def check(self) -> None:
        """Read the whole file. Errors: `CatalogCorruptError` if its structure is damaged."""
        finding = self.select("PRAGMA quick_check(1)")[0][0]
        if finding != "ok":
            raise CatalogCorruptError(f"the catalog {self.path} is damaged: {finding}")

    def copy_to(self, path: Path) -> None:
        """Write a snapshot to a new file, and sync it to disk, without blocking the interpreter, readers or writers."""
        with self._translate_errors(), closing(self._connect()) as connection:
            connection.execute("VACUUM INTO ?", (path.absolute().as_uri(),))
        with path.open("rb") as copy:
            os.fsync(copy.fileno())

    def compact(self) -> None:
        """Return some free pages to the disk, and truncate a long log unless it is being read."""
        with self._writing, self._translate_errors():
            free, pages = (self._writer.execute(f"PRAGMA {count}").fetchone()[0] for count in ("freelist_count", "page_count"))
            if free > _FREE_PAGES + _FREE_SHARE * pages:
                self._writer.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")  # `execute` would free one page
            if self._log_path.exists() and self._log_path.stat().st_size > _MAX_LOG_BYTES:
                self._writer.execute("PRAGMA busy_timeout = 0")
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._writer.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000}")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Show everything that this thread reads in the block the same state of the file."""
        if getattr(self._snapshots, "connection", None) is not None:
            yield
            return
        with self.read() as connection:
            self._snapshots.connection, self._snapshots.memo = connection, {}
            try:
                yield
            finally:
                self._snapshots.connection = self._snapshots.memo = None

    def memoised(self, key: str, read: Callable[[str], T]) -> T:
        """Return what a function reads for a key; it runs once per snapshot."""
        memo: dict[str, Any] | None = getattr(self._snapshots, "memo", None)
        if memo is None:
            return read(key)
        if key not in memo:
            memo[key] = read(key)
        found: T = memo[key]
        return found

    def mapping(self, statement: str, *values: str | int | Iterable[str] | Iterable[int]) -> dict[Any, Any]:
        """Return the rows of a two-column query as a dictionary; see `select`."""
        return dict(map(tuple, self.select(statement, *values)))

    def select(self, statement: str, *values: str | int | Iterable[str] | Iterable[int]) -> list[sqlite3.Row]:
        """Return the rows of a query. Use the condition `IN_LIST` for a value that is a list."""
        bound = [value if isinstance(value, str | int) else json.dumps(list(value)) for value in values]
        shared: sqlite3.Connection | None = getattr(self._snapshots, "connection", None)
        if shared is None:
            with self.read() as connection:
                return connection.execute(statement, bound).fetchall()
        try:
            return shared.execute(statement, bound).fetchall()
        except sqlite3.Error as error:
            raise self._translated(error) from error

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that sees the same state of the file throughout the block."""
        shared = getattr(self._snapshots, "connection", None)
        if shared is not None:
            with self._translate_errors():
                yield shared
            return
        if self._is_closed:
            raise CatalogClosedError(f"the catalog {self.path} is closed")
        with self._translate_errors():
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            try:
                connection.execute("BEGIN")
                yield connection
            except BaseException:
                connection.close()
                raise
            connection.execute("COMMIT")
            self._idle.append(connection)
            if self._is_closed:
                self._close_idle()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Yield the writing connection for one transaction."""
        with self._writing, self._translate_errors():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def bulk_writes(self) -> Iterator[None]:
        """Allow transactions in the block more memory; use this where many pages are stored."""
        self._set_cache(_BULK_CACHE_KB)
        try:
            yield
        finally:
            self._set_cache(_CACHE_KB)

    def _set_cache(self, kilobytes: int) -> None:
        with self._writing, self._translate_errors():
            self._writer.execute(f"PRAGMA cache_size = -{kilobytes}")

    def _connect(self, mode: str = "rw") -> sqlite3.Connection:
        """Open the file. Only the mode `rwc` creates it, so that a missing file is noticed."""
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.row_factory = sqlite3.Row
        return connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: sqlite3.Error) -> CatalogError:
        message = f"the catalog {self.path} cannot be used: {error}"
        extended = getattr(error, "sqlite_errorcode", 0)
        code = extended & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return DiskFullError(message)
        has_other_tables = str(error).startswith(("no such", "Could not decode"))
        is_gone = code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR} and not self.path.exists()
        is_corrupt = code in _CORRUPT or extended in _CORRUPT_READS or has_other_tables or is_gone
        return CatalogCorruptError(message) if is_corrupt else CatalogError(message)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
