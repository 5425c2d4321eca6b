"""The outbox of a catalog: changed vectors that are not yet sent to the vector store."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from otterwiki_semantic.content.pages import page_name
from otterwiki_semantic.core.records import PageUrls, page_number
from otterwiki_semantic.storage.schema import decode_list, decode_vectors, iso_time
from otterwiki_semantic.storage.sqlite import IN_LIST, SqliteFile
from otterwiki_semantic.storage.vector_store import StoredVector

_TOMBSTONES = "dead places"
_SELECT_RECORDS = f"""
SELECT vectors.id, embedding, text, path, title, section, section_path, anchor, ordinal, chunk_count, word_count,
       category, tags, start_line, end_line, updated, last_commit, kind, copies
FROM vectors
LEFT JOIN (
    SELECT vector, text, path, section, section_path, anchor, ordinal, start_line, end_line,
           ROW_NUMBER() OVER (PARTITION BY vector ORDER BY path, ordinal) AS copy,
           COUNT(*) OVER (PARTITION BY vector) AS copies
    FROM chunks WHERE vector {IN_LIST}
) ON vector = vectors.id AND copy = 1
LEFT JOIN pages USING (path)
LEFT JOIN files USING (path)
WHERE vectors.id {IN_LIST}"""
_URLS = PageUrls(prefix="/")
_MAX_OTHER_PAGES = 50


class Outbox:
    """Vectors to upsert (table `unstored`), to update in metadata (`stale`) and to delete (`dropped`), since pages changed."""

    def __init__(self, database: SqliteFile) -> None:
        self._database = database

    def count(self) -> tuple[int, int]:
        """Return the number of vectors to upsert, and of vectors with outdated metadata."""
        return tuple(self._database.select("SELECT (SELECT COUNT(*) FROM unstored), (SELECT COUNT(*) FROM stale)")[0])

    def lacking(self, limit: int) -> list[int]:
        """Return the ids of up to `limit` chunks with vectors to upsert."""
        statement = "SELECT chunks.id FROM unstored JOIN chunks ON chunks.vector = unstored.vector LIMIT ?"
        return [row["id"] for row in self._database.select(statement, limit)]

    def upserts(self, limit: int, *, documents: bool = True) -> list[StoredVector]:
        """Return up to `limit` vectors to upsert, with texts and metadata if the store has `documents`."""
        return self._records("unstored", limit, documents=documents)

    def updates(self, limit: int) -> list[StoredVector]:
        """Return up to `limit` stored vectors with outdated metadata."""
        return self._records("stale", limit, documents=True)

    def _records(self, table: str, limit: int, *, documents: bool) -> list[StoredVector]:
        ids = [row["vector"] for row in self._database.select(f"SELECT vector FROM {table} LIMIT ?", limit)]
        if not documents:
            return _decode(self._database.select(f"SELECT id, embedding FROM vectors WHERE id {IN_LIST}", ids))
        rows = self._database.select(_SELECT_RECORDS, ids, ids)
        several = [row["id"] for row in rows if (row["copies"] or 0) > 1]
        pages = defaultdict[str, list[str]](list)
        statement = f"SELECT DISTINCT vector, path FROM chunks WHERE vector {IN_LIST} ORDER BY path"
        for vector, path in self._database.select(statement, several) if several else ():
            pages[vector].append(path)
        embeddings = decode_vectors([row["embedding"] for row in rows])
        return [
            StoredVector(row["id"], embedding, row["text"], _metadata(row, pages[row["id"]]))
            for row, embedding in zip(rows, embeddings, strict=True)
        ]

    def mark_upserted(self, vectors: Iterable[StoredVector]) -> None:
        """Record that the store holds these vectors and their metadata."""
        self._remove("unstored", vectors)

    def mark_updated(self, vectors: Iterable[StoredVector]) -> None:
        """Record that the store holds the metadata of these vectors."""
        self._remove("stale", vectors)

    def _remove(self, table: str, vectors: Iterable[StoredVector]) -> None:
        with self._database.write() as connection:
            connection.executemany(f"DELETE FROM {table} WHERE vector = ?", ((vector.id,) for vector in vectors))

    def deletes(self, limit: int) -> list[str]:
        """Return up to `limit` ids to delete, without ids that are in use again."""
        if not self._database.select("SELECT 1 FROM dropped LIMIT 1"):
            return []
        with self._database.write() as connection:
            connection.execute("DELETE FROM dropped WHERE vector IN (SELECT id FROM vectors)")
            return [row[0] for row in connection.execute("SELECT vector FROM dropped LIMIT ?", (limit,))]

    def mark_deleted(self, ids: Sequence[str]) -> None:
        """Record that the store has deleted these ids. Each one leaves a tombstone."""
        with self._database.write() as connection:
            connection.executemany("DELETE FROM dropped WHERE vector = ?", ((vector,) for vector in ids))
            connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                (_TOMBSTONES, str(len(ids))),
            )

    @property
    def tombstones(self) -> int:
        """The number of vectors deleted since the collection was created; HNSW never reuses their space."""
        rows = self._database.select("SELECT value FROM meta WHERE name = ?", _TOMBSTONES)
        return int(rows[0]["value"]) if rows else 0

    def refill(self) -> None:
        """Add every vector, for an empty collection without tombstones."""
        with self._database.write() as connection:
            connection.execute("INSERT OR IGNORE INTO unstored SELECT id FROM vectors")
            connection.execute("DELETE FROM stale")
            connection.execute("DELETE FROM dropped")
            connection.execute("DELETE FROM meta WHERE name = ?", (_TOMBSTONES,))

    def reconcile(self, ids: Iterable[str]) -> int:
        """Record that the store holds exactly these ids; return the number of wrong records.

        Stored vectors are not upserted again, because that would reduce HNSW's recall; only their metadata is updated.
        """
        with self._database.write() as connection:
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS held (id TEXT PRIMARY KEY) WITHOUT ROWID")
            connection.execute("DELETE FROM held")
            connection.executemany("INSERT OR IGNORE INTO held VALUES (?)", ((vector,) for vector in ids))
            connection.execute("INSERT OR IGNORE INTO stale SELECT vector FROM unstored WHERE vector IN (SELECT id FROM held)")
            connection.execute("DELETE FROM unstored WHERE vector IN (SELECT id FROM held)")
            missing = connection.execute(
                "INSERT OR IGNORE INTO unstored SELECT id FROM vectors WHERE id NOT IN (SELECT id FROM held)"
            )
            connection.execute(
                "DELETE FROM stale WHERE vector IN (SELECT vector FROM unstored) OR vector NOT IN (SELECT id FROM vectors)"
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

    @property
    def dimension(self) -> int | None:
        """The length of a vector, or None while there are no vectors."""
        rows = self._database.select("SELECT embedding FROM vectors LIMIT 1")
        return decode_vectors([rows[0][0]]).shape[1] if rows else None


def _decode(rows: Iterable[sqlite3.Row]) -> list[StoredVector]:
    return [StoredVector(vector, decode_vectors([embedding])[0]) for vector, embedding in rows]


def _metadata(row: sqlite3.Row, pages: Sequence[str]) -> dict[str, Any] | None:
    """Return the public metadata of a vector's first chunk: None for a missing value or page, no empty lists."""
    if row["path"] is None:
        return None
    of_file = {}
    if row["kind"]:
        of_file = {
            "kind": row["kind"],
            "attachment": page_name(row["path"]),
            "page_number": page_number(row["kind"], row["anchor"]),
        }
    return {
        "page_path": row["path"],
        "title": row["title"],
        "section": row["section"],
        "section_path": list(decode_list(row["section_path"])) or None,
        "anchor": row["anchor"],
        "chunk_index": row["ordinal"],
        "total_chunks": row["chunk_count"],
        "page_word_count": row["word_count"],
        "category": row["category"],
        "tags": list(decode_list(row["tags"])) or None,
        "start_line": row["start_line"],
        "end_line": row["end_line"],
        "url": _URLS.of(row["path"], row["anchor"], row["kind"]),
        "updated": iso_time(row["updated"]),
        "commit": row["last_commit"],
        "other_pages": [path for path in pages if path != row["path"]][:_MAX_OTHER_PAGES] or None,
        **of_file,
    }
