"""What was searched for and how long it took, in a file of its own; kept only if the wiki's administrator wants it.

A search only puts a note into memory; a thread writes all notes together soon after. What is not written yet when the process
is killed is lost. Nothing that happens to the file harms a search: a damaged one is thrown away, other failures are told.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from otterwiki_semantic.core.errors import CatalogCorruptError, SemanticError
from otterwiki_semantic.core.records import Answer, Mode, SearchHour, UnansweredQuery
from otterwiki_semantic.search.evaluation import percentiles
from otterwiki_semantic.storage import SqliteFile, iso_time

NAME = "searches.db"
MOST_ROWS = 100_000
KEPT_SECONDS = 90 * 86_400
MOST_CHARACTERS = 200
"""So much is kept of a question."""
_SHOWN_SECONDS = 7 * 86_400
_HOUR = 3_600
_MOST_UNANSWERED = 50
_BATCH_SECONDS = 2.0
_MOST_WAITING = 10_000
_CLOSE_SECONDS = 2.0
_ENDINGS = ("", "-wal", "-shm", "-journal")
_TABLE = (
    "CREATE TABLE IF NOT EXISTS searches (id INTEGER PRIMARY KEY, at REAL NOT NULL, milliseconds REAL NOT NULL,"
    " mode TEXT NOT NULL, is_answered INTEGER NOT NULL, query TEXT, query_key TEXT)"
)
_BY_TIME = "CREATE INDEX IF NOT EXISTS searches_by_time ON searches (at)"
_INSERT = "INSERT INTO searches (at, milliseconds, mode, is_answered, query, query_key) VALUES (?, ?, ?, ?, ?, ?)"

Row = tuple[float, float, str, bool, str | None, str | None]
"""When, milliseconds, mode, whether it was answered; only if not, the question, and what joins it with others like it."""
T = TypeVar("T")

log = logging.getLogger(__name__)


def remove_searches(data_dir: Path) -> None:
    """Remove what was kept in a data directory. Errors: `OSError`."""
    for ending in _ENDINGS:
        (data_dir / f"{NAME}{ending}").unlink(missing_ok=True)


class SearchLog:
    """The searches of the last 90 days in a data directory, 100,000 at most. No method raises because of the file."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._path = data_dir / NAME
        self._database: SqliteFile | None = None
        self._using = threading.Lock()
        """Held by whoever reads or writes the file."""
        self._waiting: deque[Row] = deque(maxlen=_MOST_WAITING)
        self._has_some = threading.Event()
        self._ending = threading.Event()
        self.error: Exception | None = None
        """Why the last notes are not in the file; None if they are."""
        self._writer = threading.Thread(target=self._write, name="search-log", daemon=True)
        self._writer.start()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._ending.set()
        self._has_some.set()
        self._writer.join(_CLOSE_SECONDS)

    def note(self, answers: Sequence[Answer], mode: Mode, at: float, seconds: float) -> None:
        """Note the answers of a request that came at a time (since 1970) and took so long; before the first build nothing."""
        for answer in answers:
            if answer.index.commit is None:
                continue
            asked = None if answer.confident else _storable(answer.query)
            key = None if asked is None else " ".join(asked.split()).casefold()
            self._waiting.append((at, 1000 * seconds / len(answers), mode.value, answer.confident, asked, key))
        self._has_some.set()

    def hours(self, until: float) -> tuple[SearchHour, ...]:
        """Give the hours of the seven days before a time that had searches, oldest first."""
        since = (until - _SHOWN_SECONDS) // _HOUR * _HOUR
        statement = (
            "SELECT CAST(at / ? AS INTEGER), milliseconds, is_answered FROM searches WHERE at BETWEEN ? AND ? ORDER BY 1, 2"
        )
        rows = self._read(statement, (_HOUR, since, until))
        return tuple(_hour(number, list(of_it)) for number, of_it in groupby(rows, key=itemgetter(0)))

    def unanswered(self, until: float) -> tuple[UnansweredQuery, ...]:
        """Give the questions that found nothing relevant in 90 days, most often put first; case and space make no other."""
        statement = (  # SQLite takes the query from the row that has the MAX
            "SELECT query, COUNT(*) AS times, MAX(at) AS last FROM searches WHERE query IS NOT NULL AND at BETWEEN ? AND ?"
            " GROUP BY query_key ORDER BY times DESC, last DESC LIMIT ?"
        )
        rows = self._read(statement, (until - KEPT_SECONDS, until, _MOST_UNANSWERED))
        return tuple(UnansweredQuery(query, times, iso_time(int(last)) or "") for query, times, last in rows)

    def _read(self, statement: str, values: tuple[float, ...]) -> list[tuple[Any, ...]]:
        def rows(database: SqliteFile) -> list[tuple[Any, ...]]:
            self._insert_waiting(database)
            with database.read() as connection:
                return list(map(tuple, connection.execute(statement, values)))

        return self._use(rows) or []

    # In the background

    def _write(self) -> None:
        self._use(self._insert_waiting)  # a file that cannot be used is told of before it is needed
        while not self._ending.is_set():
            self._has_some.wait()
            self._ending.wait(_BATCH_SECONDS)
            self._has_some.clear()
            self._use(self._insert_waiting)
        with self._using:
            self._close_file()

    def _insert_waiting(self, database: SqliteFile) -> None:
        rows = self._waiting.copy()
        if rows:
            with database.write() as connection:
                connection.executemany(_INSERT, rows)
                _forget(connection, rows[-1][0])
        for _ in rows:
            self._waiting.popleft()

    def _use(self, what: Callable[[SqliteFile], T]) -> T | None:
        """Give what is done with the file, None if it fails; instead of a damaged one another is begun."""
        with self._using:
            try:
                try:
                    done = what(self._opened())
                except CatalogCorruptError as error:
                    log.warning("the searches noted so far are lost: %s", error)
                    self._close_file()
                    remove_searches(self._data_dir)
                    done = what(self._opened())
            except (SemanticError, OSError) as error:
                self.error = error
                self._close_file()
                return None
            self.error = None
            return done

    def _opened(self) -> SqliteFile:
        if self._database is not None and not self._database.is_in_place:
            self._close_file()
        if self._database is None:
            self._path.touch(0o600)  # SQLite gives its other files the same mode
            self._database = SqliteFile(self._path, "")
            with self._database.write() as connection:
                connection.execute(_TABLE)
                connection.execute(_BY_TIME)
                _forget(connection, time.time())
        return self._database

    def _close_file(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None


def _forget(connection: sqlite3.Connection, at: float) -> None:
    """Delete what is too old at a time, and the oldest of what is too much; nothing of it stays in the file."""
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("DELETE FROM searches WHERE at < ?", (at - KEPT_SECONDS,))
    connection.execute("DELETE FROM searches WHERE id <= (SELECT MAX(id) FROM searches) - ?", (MOST_ROWS,))


def _hour(number: int, rows: Sequence[tuple[int, float, int]]) -> SearchHour:
    """Give an hour of its searches: number of the hour, milliseconds, whether it was answered."""
    unanswered = sum(not row[2] for row in rows)
    within = {name: round(value, 2) for name, value in percentiles([row[1] for row in rows]).items()}
    return SearchHour(iso_time(number * _HOUR) or "", len(rows), unanswered, within["p50"], within["p95"])


def _storable(query: str) -> str:
    """Give the beginning of a question; half characters, which SQLite does not take, are replaced."""
    return query[:MOST_CHARACTERS].encode(errors="replace").decode()
