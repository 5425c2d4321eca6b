"""The vectors that a catalog still lacks: chunks are stored with their words, and may get their vectors later."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from otterwiki_semantic.core.records import StoredChunk
from otterwiki_semantic.storage.catalog_reader import SELECT_CHUNKS, stored_chunk
from otterwiki_semantic.storage.schema import IS_EMBEDDED
from otterwiki_semantic.storage.sqlite import IN_LIST, SqliteFile

# CROSS JOIN, here and in `Catalog.end_change`, has SQLite begin with `pending`; it would read every chunk otherwise.
_MAX_FILLED = 10_000
"""Entries that the log keeps. A reader that lacks older ones reads all vectors again."""


class PendingVectors:
    """Reads the table `pending`, and the chunks that lack its vectors. Errors: those of `SqliteFile`."""

    def __init__(self, database: SqliteFile) -> None:
        self._database = database

    def pages(self) -> list[tuple[str, int, int]]:
        """Return path, Unix time of the last change (0: unknown) and number of links to each page that lacks vectors."""
        statement = (
            "SELECT path, COALESCE(updated, 0), (SELECT COUNT(*) FROM links WHERE target = path_key) FROM pages"
            " WHERE path IN (SELECT path FROM pending CROSS JOIN chunks ON chunks.vector = pending.vector)"
        )
        return [tuple(row) for row in self._database.select(statement)]

    def count(self) -> int:
        """Return how many vectors are missing."""
        return int(self._database.select("SELECT COUNT(*) FROM pending")[0][0])

    def chunks(self, paths: Sequence[str], *, first: bool) -> list[tuple[str, StoredChunk]]:
        """Return the chunks that lack a vector, in the order of these pages, each after the id of the vector.

        They are the `first` of each page, or all others.
        """
        rows = self._database.select(
            f"{SELECT_CHUNKS} WHERE path {IN_LIST} AND ordinal {'=' if first else '>'} 0"
            " AND vector IN (SELECT vector FROM pending)",
            paths,
        )
        places = {path: place for place, path in enumerate(paths)}
        rows.sort(key=lambda row: (places[row["path"]], row["ordinal"]))
        return [(row["vector"], stored_chunk(row)) for row in rows]


def expect_vectors(connection: sqlite3.Connection, path: str) -> None:
    """Record which vectors a page that was stored lacks."""
    connection.execute(
        f"INSERT OR IGNORE INTO pending SELECT vector FROM chunks WHERE path = ? AND {IS_EMBEDDED}"
        " AND NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.id = chunks.vector)",
        (path,),
    )


def forget_vectors(connection: sqlite3.Connection, path: str) -> None:
    """Record that a page, which is about to be deleted, no longer needs the vectors that it lacks."""
    connection.execute(
        "DELETE FROM pending WHERE vector IN (SELECT vector FROM chunks WHERE path = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.vector = pending.vector AND path != ?1)",
        (path,),
    )


def fill_vector(connection: sqlite3.Connection, vector: str) -> bool:
    """Record that a vector was added; return whether a chunk has waited for it, for which the exact index takes it over."""
    has_waited = connection.execute("DELETE FROM pending WHERE vector = ?", (vector,)).rowcount > 0
    if has_waited:
        connection.execute("INSERT INTO filled (vector) VALUES (?)", (vector,))
    return has_waited


def shorten_log(connection: sqlite3.Connection) -> None:
    """Remove the oldest entries of a long log of filled vectors."""
    connection.execute("DELETE FROM filled WHERE number <= (SELECT MAX(number) FROM filled) - ?", (_MAX_FILLED,))
