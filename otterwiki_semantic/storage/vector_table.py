"""The vectors of a catalog, and those that it still lacks: chunks are stored with their words, and may get vectors later."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from otterwiki_semantic.core.records import StoredChunk
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage.catalog_reader import SELECT_CHUNKS, stored_chunk
from otterwiki_semantic.storage.schema import IS_EMBEDDED, decode_vectors
from otterwiki_semantic.storage.sqlite import IN_LIST, SqliteFile
from otterwiki_semantic.storage.vector_store import StoredVector


class VectorTable:
    """The tables `vectors` and `pending` of a catalog. Raises the errors of `SqliteFile`."""

    def __init__(self, database: SqliteFile) -> None:
        self._database = database

    def missing(self, ids: Iterable[str]) -> list[str]:
        """Return the ids without a vector, in order and without duplicates."""
        wanted = dict.fromkeys(ids)
        known = {row["id"] for row in self._database.select(f"SELECT id FROM vectors WHERE id {IN_LIST}", wanted)}
        return [vector for vector in wanted if vector not in known]

    def get(self, ids: Sequence[str]) -> dict[str, Matrix]:
        """Return the known vectors, by id."""
        rows = self._database.select(f"SELECT id, embedding FROM vectors WHERE id {IN_LIST}", ids)
        return {row["id"]: decode_vectors([row["embedding"]])[0] for row in rows}

    def add(self, vectors: Sequence[StoredVector]) -> None:
        """Add vectors. They are candidates for garbage collection until a chunk refers to them."""
        with self._database.write() as connection:
            free = [row[0] for row in connection.execute("SELECT place FROM free_places LIMIT ?", (len(vectors),))]
            for vector in vectors:
                row = (free[-1] if free else None, vector.id, vector.embedding.tobytes())
                if connection.execute("INSERT INTO vectors VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", row).rowcount:
                    connection.execute("INSERT OR IGNORE INTO unstored VALUES (?)", (vector.id,))
                    has_waited = connection.execute("DELETE FROM pending WHERE vector = ?", (vector.id,)).rowcount
                    # A chunk has waited for the vector if it was pending; the exact index learns of it from the log.
                    note = "INTO filled (vector)" if has_waited else "OR IGNORE INTO suspects"
                    connection.execute(f"INSERT {note} VALUES (?)", (vector.id,))
                    if free:
                        connection.execute("DELETE FROM free_places WHERE place = ?", (free.pop(),))

    def collect_garbage(self) -> None:
        """Delete unreferenced vectors, and add them to the outbox for ChromaDB.

        Checks suspects only: the vectors of deleted chunks, and new vectors that no chunk refers to yet.
        """
        unused = "SELECT vector FROM suspects WHERE vector NOT IN (SELECT vector FROM chunks)"
        with self._database.write() as connection:
            connection.execute(f"INSERT OR IGNORE INTO dropped {unused}")
            connection.execute(f"INSERT INTO free_places SELECT place FROM vectors WHERE id IN ({unused})")
            connection.execute(f"DELETE FROM vectors WHERE id IN ({unused})")
            for table in ("unstored", "stale"):
                connection.execute(f"DELETE FROM {table} WHERE vector IN ({unused})")
            connection.execute("DELETE FROM suspects")

    def pending_pages(self) -> list[tuple[str, int, int]]:
        """Return the path, Unix time of last change (0: unknown) and link count of each page that lacks vectors."""
        # CROSS JOIN, here and in `Catalog.end_change`, forces SQLite to begin with `pending` instead of reading every chunk.
        statement = (
            "SELECT path, COALESCE(updated, 0), (SELECT COUNT(*) FROM links WHERE target = path_key) FROM pages"
            " WHERE path IN (SELECT path FROM pending CROSS JOIN chunks ON chunks.vector = pending.vector)"
        )
        return [tuple(row) for row in self._database.select(statement)]

    def count_pending(self) -> int:
        """Return the number of missing vectors."""
        return int(self._database.select("SELECT COUNT(*) FROM pending")[0][0])

    def pending_chunks(self, paths: Sequence[str], *, first: bool) -> list[tuple[str, StoredChunk]]:
        """Return the chunks without a vector: the first of each page, or all others, with vector ids and in `paths`' order."""
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
