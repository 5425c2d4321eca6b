"""An SQLite file used by several threads: one writer at a time, readers that wait for nobody, errors told apart."""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from otterwiki_semantic.errors import CatalogDamagedError, CatalogError

T = TypeVar("T")

_BUSY_SECONDS = 30
_VARIABLES = 500
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Database:
    """One file (WAL), made with the statements of `tables` if it is not there.

    Errors: `CatalogDamagedError` when the file is no database or damaged; `CatalogError` for what may pass, such as a full
    disk.
    """

    def __init__(self, path: Path, tables: str) -> None:
        self.path = path
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._writing = threading.Lock()
        self._is_closed = False
        self.changes = 0
        """How often the file was written to by this object."""
        self._snapshots = threading.local()
        self.is_new = not path.exists()
        with self._errors():
            self._writer = self._connect()
            if self.is_new:
                self._writer.executescript(f"PRAGMA journal_mode = WAL; BEGIN; {tables} COMMIT;")

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

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all that this thread reads within see one and the same state of the file."""
        with self.read() as connection:
            self._snapshots.connection = connection
            try:
                yield
            finally:
                self._snapshots.connection = None

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
                self.changes += 1
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.row_factory = sqlite3.Row
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            kind = CatalogDamagedError if code in _DAMAGED else CatalogError
            raise kind(f"the catalog {self.path} cannot be used: {error}") from error


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Give the values in parts that one statement can take."""
    return (values[start : start + _VARIABLES] for start in range(0, len(values), _VARIABLES))


def marks(values: Sequence[object]) -> str:
    """Give a statement's question marks for these values."""
    return ", ".join("?" * len(values))
