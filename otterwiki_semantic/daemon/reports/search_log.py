"""The search log, and a line in the log for each slow search.

The search log has latencies, and queries without a relevant result. It is opt-in, in a separate SQLite file. Recording a search
only appends to memory; a thread writes in batches, and a killed process loses the last two seconds. A failing file never
affects a search: a corrupt one is replaced, other failures are reported in the status.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from unicodedata import category

from otterwiki_semantic.core.errors import CatalogCorruptError, SemanticError
from otterwiki_semantic.core.records import Answer, Mode, SearchHour, UnansweredQuery
from otterwiki_semantic.core.telemetry import SearchEvent, logfmt
from otterwiki_semantic.search.evaluation import percentiles
from otterwiki_semantic.storage import SqliteFile, iso_time

NAME = "searches.db"
MAX_ROWS = 100_000
RETENTION_SECONDS = 90 * 86_400
MAX_CHARACTERS = 200
"""Longer queries are truncated."""
_SHOWN_SECONDS = 7 * 86_400
_HOUR, _MINUTE = 3_600, 60.0
_MAX_UNANSWERED = 50
_BATCH_SECONDS = 2.0
_MAX_PENDING = 10_000
_CLOSE_SECONDS = 2.0
LINES_A_MINUTE = 10
_SLOW_MILLISECONDS = 1_000
_ENDINGS = ("", "-wal", "-shm", "-journal")
_TABLE = (
    "CREATE TABLE IF NOT EXISTS searches (id INTEGER PRIMARY KEY, at REAL NOT NULL, milliseconds REAL NOT NULL,"
    " mode TEXT NOT NULL, is_answered INTEGER NOT NULL, query TEXT, query_key TEXT)"
)
_BY_TIME = "CREATE INDEX IF NOT EXISTS searches_by_time ON searches (at)"
_INSERT = "INSERT INTO searches (at, milliseconds, mode, is_answered, query, query_key) VALUES (?, ?, ?, ?, ?, ?)"

Row = tuple[float, float, str, bool, str | None, str | None]
"""Unix time, milliseconds, mode, whether it was answered; only if not: the query, and its key shared by equal queries."""

log = logging.getLogger(__name__)


def remove_searches(data_dir: Path) -> None:
    """Delete the search log of a data directory. Errors: `OSError`."""
    for ending in _ENDINGS:
        (data_dir / f"{NAME}{ending}").unlink(missing_ok=True)


class SearchLog:
    """The searches of the last 90 days, at most 100,000. Methods never raise because of the file."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._path = data_dir / NAME
        self._database: SqliteFile | None = None
        self._using = threading.Lock()
        self._pending: deque[Row] = deque(maxlen=_MAX_PENDING)
        self._has_some = threading.Event()
        self._ending = threading.Event()
        self.error: Exception | None = None
        """Why the latest searches are not in the file; None if they are."""
        self._writer = threading.Thread(target=self._write, name="search-log", daemon=True)
        self._writer.start()

    def close(self) -> None:
        """Write pending searches, and close the file."""
        self._ending.set()
        self._has_some.set()
        self._writer.join(_CLOSE_SECONDS)

    def record(self, answers: Sequence[Answer], mode: Mode, at: float, seconds: float) -> None:
        """Record a request at Unix time `at` that took `seconds`; nothing before the first build is complete.

        Queries of punctuation alone, as while a quoted text is being typed, are left out.
        """
        for answer in answers:
            if answer.index.commit is None or all(category(each)[0] in "PZ" for each in answer.query):
                continue
            # SQLite rejects lone surrogates.
            asked = None if answer.confident else answer.query[:MAX_CHARACTERS].encode(errors="replace").decode()
            key = None if asked is None else " ".join(asked.casefold().replace('"', " ").split())
            self._pending.append((at, 1000 * seconds / len(answers), mode.value, answer.confident, asked, key))
        self._has_some.set()

    def hours(self, until: float) -> tuple[SearchHour, ...]:
        """Return the hours with searches in the seven days before a time, oldest first."""
        return tuple(_hour(list(rows)) for _, rows in groupby(self._by_hour(until), key=itemgetter(0)))

    def total(self, until: float) -> SearchHour | None:
        """Return the searches of these hours together; None if there are none."""
        rows = self._by_hour(until)
        return _hour(rows) if rows else None

    def _by_hour(self, until: float) -> list[tuple[Any, ...]]:
        since = (until - _SHOWN_SECONDS) // _HOUR * _HOUR
        statement = "SELECT CAST(at / ? AS INT), milliseconds, is_answered FROM searches WHERE at BETWEEN ? AND ? ORDER BY 1"
        return self._read(statement, (_HOUR, since, until))

    def unanswered(self, until: float) -> tuple[UnansweredQuery, ...]:
        """Return the queries without a relevant result in 90 days, most frequent first; case, spaces and quotes are ignored."""
        statement = (  # SQLite takes the query from the row with the MAX
            "SELECT query, COUNT(*) AS times, MAX(at) AS last FROM searches WHERE query IS NOT NULL AND at BETWEEN ? AND ?"
            " GROUP BY query_key ORDER BY times DESC, last DESC LIMIT ?"
        )
        rows = self._read(statement, (until - RETENTION_SECONDS, until, _MAX_UNANSWERED))
        return tuple(UnansweredQuery(query, times, iso_time(int(last)) or "") for query, times, last in rows)

    def _write(self) -> None:
        self._read()  # report an unusable file early
        while not self._ending.is_set():
            self._has_some.wait()
            self._ending.wait(_BATCH_SECONDS)
            self._has_some.clear()
            self._read()
        with self._using:
            self._close_file()

    def _read(self, statement: str | None = None, values: tuple[float, ...] = ()) -> list[tuple[Any, ...]]:
        """Insert pending searches and return the rows of a statement, replacing a corrupt file; none if the file fails."""
        with self._using:
            try:
                try:
                    rows = self._insert_and_select(statement, values)
                except CatalogCorruptError as error:
                    log.warning("the search log is corrupt and is replaced: %s", error)
                    self._close_file()
                    remove_searches(self._data_dir)
                    rows = self._insert_and_select(statement, values)
            except (SemanticError, OSError) as error:
                self.error = error
                self._close_file()
                return []
            self.error = None
            return rows

    def _insert_and_select(self, statement: str | None, values: tuple[float, ...]) -> list[tuple[Any, ...]]:
        database, pending = self._opened(), self._pending.copy()
        if pending:
            with database.write() as connection:
                connection.executemany(_INSERT, pending)
                _forget(connection, pending[-1][0])
        for _ in pending:
            self._pending.popleft()
        if statement is None:
            return []
        with database.read() as connection:
            return list(map(tuple, connection.execute(statement, values)))

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
    """Delete searches that are too old at a time, and the oldest above the limit, without leaving traces in the file."""
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("DELETE FROM searches WHERE at < ?", (at - RETENTION_SECONDS,))
    connection.execute("DELETE FROM searches WHERE id <= (SELECT MAX(id) FROM searches) - ?", (MAX_ROWS,))


def _hour(rows: Sequence[tuple[Any, ...]]) -> SearchHour:
    unanswered = sum(not row[2] for row in rows)
    within = {name: round(value, 2) for name, value in percentiles([row[1] for row in rows]).items()}
    return SearchHour(iso_time(rows[0][0] * _HOUR) or "", len(rows), unanswered, within["p50"], within["p95"])


class SlowSearches:
    """Log searches that take a second or longer, at most ten per minute; the next line counts those left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._minute_began = -math.inf
        self._lines = 0
        self._left_out = 0

    def record(self, search: SearchEvent) -> None:
        """Log a search if it was slow; its time is divided equally among its queries."""
        answers, options = search.answers, search.options
        milliseconds = 1000 * search.seconds / len(answers)
        if milliseconds < _SLOW_MILLISECONDS:
            return
        left_out = self._take_line()
        if left_out is None:
            return
        facts = logfmt(
            "slow_search",
            milliseconds=round(milliseconds, 1),
            mode=options.mode.value,
            n=options.size,
            questions=len(answers),
            results=sum(len(answer.results) for answer in answers),
            degraded=any(answer.degraded for answer in answers),
            draft=not search.counts,
            left_out=left_out,
            **({"request_id": search.context.request_id} if search.context.request_id else {}),
        )
        log.info("a search took %.0f ms; %s", milliseconds, facts)

    def _take_line(self) -> int | None:
        """Return the number of searches not logged since the last line, or None at the limit of this minute."""
        with self._lock:
            now = self._clock()
            if now - self._minute_began >= _MINUTE:
                self._minute_began, self._lines = now, 0
            if self._lines >= LINES_A_MINUTE:
                self._left_out += 1
                return None
            self._lines += 1
            left_out, self._left_out = self._left_out, 0
            return left_out
