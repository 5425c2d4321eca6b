"""The vectors that a catalog still lacks: chunks are stored with their words, and may get vectors later."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from otterwiki_semantic.core.records import StoredChunk
from otterwiki_semantic.storage.catalog_reader import SELECT_CHUNKS, stored_chunk
from otterwiki_semantic.storage.schema import IS_EMBEDDED
from otterwiki_semantic.storage.sqlite import IN_LIST, SqliteFile

# CROSS JOIN, here and in `Catalog.end_change`, forces SQLite to begin with `pending` instead of reading every chunk.
_MAX_FILLED = 10_000
"""Maximum entries in the log. A reader that lacks older ones reads all vectors again."""


class PendingVectors:
    """Reads the table `pending`, and the chunks that lack its vectors. Raises the errors of `SqliteFile`."""

    def __init__(self, database: SqliteFile) -> None:
        self._database = database

    def pages(self) -> list[tuple[str, int, int]]:
        """Return the path, Unix time of last change (0: unknown) and link count of each page that lacks vectors."""
        statement = (
            "SELECT path, COALESCE(updated, 0), (SELECT COUNT(*) FROM links WHERE target = path_key) FROM pages"
            " WHERE path IN (SELECT path FROM pending CROSS JOIN chunks ON chunks.vector = pending.vector)"
        )
        return [tuple(row) for row in self._database.select(statement)]

    def count(self) -> int:
        """Return the number of missing vectors."""
        return int(self._database.select("SELECT COUNT(*) FROM pending")[0][0])

    def chunks(self, paths: Sequence[str], *, first: bool) -> list[tuple[str, StoredChunk]]:
        """Return the chunks that lack a vector, each with its vector id, in the order of `paths`.

        Returns either the `first` chunk of each page or all others.
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
    """Record the vectors that a stored page lacks."""
    connection.execute(
        f"INSERT OR IGNORE INTO pending SELECT vector FROM chunks WHERE path = ? AND {IS_EMBEDDED}"
        " AND NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.id = chunks.vector)",
        (path,),
    )


def forget_vectors(connection: sqlite3.Connection, path: str) -> None:
    """Record that a page, which is about to be deleted, no longer needs its missing vectors."""
    connection.execute(
        "DELETE FROM pending WHERE vector IN (SELECT vector FROM chunks WHERE path = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.vector = pending.vector AND path != ?1)",
        (path,),
    )


def fill_vector(connection: sqlite3.Connection, vector: str) -> bool:
    """Record an added vector; return whether a chunk was waiting for it, so that the exact index takes it over."""
    has_waited = connection.execute("DELETE FROM pending WHERE vector = ?", (vector,)).rowcount > 0
    if has_waited:
        connection.execute("INSERT INTO filled (vector) VALUES (?)", (vector,))
    return has_waited


def shorten_log(connection: sqlite3.Connection) -> None:
    """Remove the oldest entries from a long log of filled vectors."""
    connection.execute("DELETE FROM filled WHERE number <= (SELECT MAX(number) FROM filled) - ?", (_MAX_FILLED,))
