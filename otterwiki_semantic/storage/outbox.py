"""The outbox of a catalog: which changes of its vectors have yet to be sent to the vector store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from otterwiki_semantic.storage.schema import decode_vectors
from otterwiki_semantic.storage.sqlite import SqliteFile
from otterwiki_semantic.storage.vector_store import StoredVector

_TOMBSTONES = "dead places"


class Outbox:
    """Vectors to upsert (table `unstored`) and to delete (table `dropped`), filled by the transactions that change vectors.

    Errors: those of `SqliteFile`.
    """

    def __init__(self, database: SqliteFile) -> None:
        self._database = database

    @property
    def is_empty(self) -> bool:
        """Whether no vector has to be upserted."""
        return not self.upserts(1)

    def __len__(self) -> int:
        """Return how many vectors have to be upserted."""
        return int(self._database.select("SELECT COUNT(*) AS vectors FROM unstored JOIN vectors ON id = vector")[0]["vectors"])

    def upserts(self, limit: int) -> list[StoredVector]:
        """Return up to `limit` vectors that have to be upserted."""
        return _decode(self._database.select("SELECT id, embedding FROM unstored JOIN vectors ON id = vector LIMIT ?", limit))

    def mark_upserted(self, vectors: Iterable[StoredVector]) -> None:
        """Record that the store holds these vectors."""
        with self._database.write() as connection:
            connection.executemany("DELETE FROM unstored WHERE vector = ?", ((vector.id,) for vector in vectors))

    def deletes(self, limit: int) -> list[str]:
        """Return up to `limit` ids that have to be deleted, without those that are in use again."""
        if not self._database.select("SELECT 1 FROM dropped LIMIT 1"):
            return []
        with self._database.write() as connection:
            connection.execute("DELETE FROM dropped WHERE vector IN (SELECT id FROM vectors)")
            return [row[0] for row in connection.execute("SELECT vector FROM dropped LIMIT ?", (limit,))]

    def mark_deleted(self, ids: Sequence[str]) -> None:
        """Record that the store has deleted these ids, each of which leaves a tombstone."""
        with self._database.write() as connection:
            connection.executemany("DELETE FROM dropped WHERE vector = ?", ((vector,) for vector in ids))
            connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                (_TOMBSTONES, str(len(ids))),
            )

    @property
    def tombstones(self) -> int:
        """How many vectors the collection has deleted since it was created; HNSW never reuses their space."""
        rows = self._database.select("SELECT value FROM meta WHERE name = ?", _TOMBSTONES)
        return int(rows[0]["value"]) if rows else 0

    def refill(self) -> None:
        """Put in every vector, for a collection that is empty and has no tombstones."""
        with self._database.write() as connection:
            connection.execute("INSERT OR IGNORE INTO unstored SELECT id FROM vectors")
            connection.execute("DELETE FROM dropped")
            connection.execute("DELETE FROM meta WHERE name = ?", (_TOMBSTONES,))

    def reconcile(self, ids: Iterable[str]) -> int:
        """Record that the store holds exactly these ids; returns how many of them were recorded wrongly.

        Missing vectors are upserted again and needless ones deleted. Those it holds are not upserted again, because that makes
        HNSW find others less well.
        """
        with self._database.write() as connection:
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS held (id TEXT PRIMARY KEY) WITHOUT ROWID")
            connection.execute("DELETE FROM held")
            connection.executemany("INSERT OR IGNORE INTO held VALUES (?)", ((vector,) for vector in ids))
            connection.execute("DELETE FROM unstored WHERE vector IN (SELECT id FROM held)")
            missing = connection.execute(
                "INSERT OR IGNORE INTO unstored SELECT id FROM vectors WHERE id NOT IN (SELECT id FROM held)"
            )
            needless = connection.execute(
                "INSERT OR IGNORE INTO dropped SELECT id FROM held WHERE id NOT IN (SELECT id FROM vectors)"
            )
            connection.execute("DELETE FROM dropped WHERE vector NOT IN (SELECT id FROM held)")
            return missing.rowcount + needless.rowcount

    def sample_sent(self, count: int) -> list[StoredVector]:
        """Return up to `count` random vectors that the store holds."""
        sent = "SELECT id FROM vectors WHERE id NOT IN (SELECT vector FROM unstored) ORDER BY RANDOM() LIMIT ?"
        return _decode(self._database.select(f"SELECT id, embedding FROM vectors WHERE id IN ({sent})", count))


def _decode(rows: Iterable[sqlite3.Row]) -> list[StoredVector]:
    return [StoredVector(vector, decode_vectors([embedding])[0]) for vector, embedding in rows]
