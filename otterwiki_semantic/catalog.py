"""The catalog: a SQLite file with the pages, chunks and vectors of one generation, and which commit it equals.

It is the truth of the index; ChromaDB only finds ids. What ChromaDB has still to be told is kept here, too, and changes in the
same transaction as the pages: a vector is `stored` once ChromaDB has it, and one that is no longer needed stays in `dropped`
until ChromaDB has forgotten it. After a crash the rest of the way is simply gone again.
"""

from __future__ import annotations

import json
import queue
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.errors import CatalogDamagedError, CatalogError
from otterwiki_semantic.pages import page_name
from otterwiki_semantic.records import Chunk, Hit, Page

SCHEMA = 1
"""Raised with every change of the tables below: the index is then built again."""

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pages (
    path TEXT PRIMARY KEY, blob TEXT NOT NULL, title TEXT NOT NULL, category TEXT, tags TEXT NOT NULL,
    word_count INTEGER NOT NULL, chunk_count INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE chunks (
    path TEXT NOT NULL, ordinal INTEGER NOT NULL, vector TEXT NOT NULL, text TEXT NOT NULL, prefix_length INTEGER NOT NULL,
    overlap_length INTEGER NOT NULL, section TEXT NOT NULL, section_path TEXT NOT NULL, headings TEXT NOT NULL,
    anchor TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, PRIMARY KEY (path, ordinal)
);
CREATE INDEX chunks_by_vector ON chunks (vector);
CREATE TABLE vectors (id TEXT PRIMARY KEY, embedding BLOB NOT NULL, path TEXT NOT NULL, stored INTEGER NOT NULL DEFAULT 0);
CREATE INDEX vectors_to_store ON vectors (id) WHERE stored = 0;
CREATE TABLE suspects (vector TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE dropped (vector TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_VARIABLES = 500
_BUSY_SECONDS = 30
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A vector as ChromaDB is to hold it: its id, its values, and a page it stands on."""

    id: str
    embedding: Matrix
    path: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a catalog holds."""

    pages: int
    chunks: int
    vectors: int


class Catalog:
    """One catalog file; safe for several threads of one process. Writers take turns, readers do not wait for them.

    Errors: `CatalogDamagedError` when the file is no catalog, damaged, or of another schema; `CatalogError` for what may pass,
    such as a full disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._writing = threading.Lock()
        self._is_closed = False
        is_new = not path.exists()
        with self._errors():
            self._writer = self._connect()
            if is_new:
                row = f"INSERT INTO meta VALUES ('schema', '{SCHEMA}');"
                self._writer.executescript(f"PRAGMA journal_mode = WAL; BEGIN; {_TABLES} {row} COMMIT;")
        if not is_new and not self._has_tables():
            raise CatalogDamagedError(f"the catalog {path} has no tables")
        if self.meta("schema") != str(SCHEMA):
            raise CatalogDamagedError(f"{path} has schema {self.meta('schema')}, this version reads {SCHEMA}")

    def _has_tables(self) -> bool:
        with self._read() as connection:
            return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is not None

    def close(self) -> None:
        """Close every connection, for good: every later use is an error."""
        self._is_closed = True
        with self._writing:
            self._writer.close()
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    # Connections

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

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that sees one state of the catalog throughout."""
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
            if self._is_closed:
                connection.close()
            else:
                self._idle.put(connection)

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
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

    # Facts about the whole

    def meta(self, name: str) -> str | None:
        """Give a fact about the catalog; None if it is not set."""
        with self._read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, name: str, value: str) -> None:
        """Set a fact."""
        with self._write() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def begin_change(self, commit: str | None) -> None:
        """Note that pages begin to change towards another commit: until `end_change` the catalog equals none."""
        self.set_meta("changing", commit or "no commit")

    def end_change(self, commit: str | None) -> None:
        """Note that the catalog equals a commit."""
        with self._write() as connection:
            connection.execute("DELETE FROM meta WHERE name IN ('changing', 'commit')")
            connection.executemany("INSERT INTO meta VALUES ('commit', ?)", [(commit,)] if commit else [])

    def counts(self) -> Counts:
        """Give the number of pages, chunks and vectors."""
        with self._read() as connection:
            tables = ("pages", "chunks", "vectors")
            return Counts(*(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables))

    def blobs(self) -> dict[str, str]:
        """Give the id of each page's content, by path."""
        with self._read() as connection:
            return dict(connection.execute("SELECT path, blob FROM pages"))

    # Pages

    def put_pages(self, pages: Iterable[tuple[Page, Sequence[str]]]) -> None:
        """Put pages in place of what stood at their paths, in one transaction; each comes with its chunks' vector ids."""
        with self._write() as connection:
            for page, vectors in pages:
                _forget(connection, page.path)
                connection.execute(
                    "INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (page.path, page.blob, page.title, page.category, _dump(page.tags), page.word_count, len(page.chunks)),
                )
                connection.executemany(
                    f"INSERT INTO chunks VALUES ({_marks('x' * 12)})",
                    (
                        _chunk_row(page.path, ordinal, vector, chunk)
                        for ordinal, (chunk, vector) in enumerate(zip(page.chunks, vectors, strict=True))
                    ),
                )

    def remove_pages(self, paths: Iterable[str]) -> None:
        """Remove pages and their chunks, in one transaction."""
        with self._write() as connection:
            for path in paths:
                _forget(connection, path)

    # Vectors

    def missing_vectors(self, ids: Iterable[str]) -> list[str]:
        """Give those of the ids that have no vector yet, each once and in order."""
        wanted = dict.fromkeys(ids)
        with self._read() as connection:
            known = {row[0] for part in _parts(list(wanted)) for row in _vectors(connection, "id", part)}
        return [vector for vector in wanted if vector not in known]

    def vectors(self, ids: Sequence[str]) -> dict[str, Matrix]:
        """Give those of the vectors that are known, by id."""
        with self._read() as connection:
            rows = (row for part in _parts(ids) for row in _vectors(connection, "id, embedding", part))
            return {vector: np.frombuffer(embedding, dtype=np.float32) for vector, embedding in rows}

    def add_vectors(self, vectors: Sequence[StoredVector]) -> None:
        """Add vectors; until a chunk refers to them they may be collected."""
        with self._write() as connection:
            rows = ((vector.id, vector.embedding.tobytes(), vector.path) for vector in vectors)
            connection.executemany("INSERT OR IGNORE INTO vectors (id, embedding, path) VALUES (?, ?, ?)", rows)
            connection.executemany("INSERT OR IGNORE INTO suspects VALUES (?)", ((vector.id,) for vector in vectors))

    def settle_vectors(self) -> None:
        """Collect the vectors that no chunk refers to any more, and note on which page each of the others stands."""
        with self._write() as connection:
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS settled (id TEXT PRIMARY KEY, path TEXT)")
            connection.execute("DELETE FROM settled")
            connection.execute(
                "INSERT INTO settled SELECT suspects.vector, MIN(chunks.path) FROM suspects"
                " LEFT JOIN chunks ON chunks.vector = suspects.vector GROUP BY suspects.vector"
            )
            connection.execute("INSERT OR IGNORE INTO dropped SELECT id FROM settled WHERE path IS NULL")
            connection.execute("DELETE FROM vectors WHERE id IN (SELECT id FROM settled WHERE path IS NULL)")
            connection.execute(
                "UPDATE vectors SET path = settled.path, stored = 0 FROM settled"
                " WHERE vectors.id = settled.id AND vectors.path != settled.path"
            )
            connection.execute("DELETE FROM suspects")

    # What ChromaDB has still to be told

    def vectors_to_store(self, limit: int) -> list[StoredVector]:
        """Give up to `limit` vectors that ChromaDB does not hold, or holds with another page."""
        with self._read() as connection:
            rows = connection.execute("SELECT id, embedding, path FROM vectors WHERE stored = 0 LIMIT ?", (limit,))
            return [StoredVector(vector, np.frombuffer(embedding, np.float32), path) for vector, embedding, path in rows]

    def mark_stored(self, vectors: Iterable[StoredVector]) -> None:
        """Note that ChromaDB holds these vectors as given."""
        with self._write() as connection:
            connection.executemany("UPDATE vectors SET stored = 1 WHERE id = ?", ((vector.id,) for vector in vectors))

    def vectors_to_drop(self, limit: int) -> list[str]:
        """Give up to `limit` ids that ChromaDB has to forget; one that is needed again is not among them."""
        with self._write() as connection:
            connection.execute("DELETE FROM dropped WHERE vector IN (SELECT id FROM vectors)")
            return [row[0] for row in connection.execute("SELECT vector FROM dropped LIMIT ?", (limit,))]

    def mark_dropped(self, ids: Iterable[str]) -> None:
        """Note that ChromaDB has forgotten these ids."""
        with self._write() as connection:
            connection.executemany("DELETE FROM dropped WHERE vector = ?", ((vector,) for vector in ids))

    def store_all_again(self) -> None:
        """Note that ChromaDB holds nothing."""
        with self._write() as connection:
            connection.execute("UPDATE vectors SET stored = 0")
            connection.execute("DELETE FROM dropped")

    def stored_range(self) -> tuple[int, int]:
        """Give the least and the most vectors that ChromaDB may hold: after a crash it may be a step ahead of the notes."""
        with self._read() as connection:
            total, unstored, dropped = connection.execute(
                "SELECT (SELECT COUNT(*) FROM vectors), (SELECT COUNT(*) FROM vectors WHERE stored = 0),"
                " (SELECT COUNT(*) FROM dropped)"
            ).fetchone()
            return total - unstored, total + dropped

    def nearest(self, vector: Matrix, count: int) -> dict[str, float]:
        """Give the ids of the `count` nearest vectors with their cosine distances, nearest first, by looking at every one."""
        with self._read() as connection:
            rows = connection.execute("SELECT id, embedding FROM vectors").fetchall()
        if not rows:
            return {}
        matrix = np.frombuffer(b"".join(row["embedding"] for row in rows), dtype=np.float32).reshape(len(rows), -1)
        distances = 1 - matrix @ vector
        return {rows[index]["id"]: float(distances[index]) for index in np.argsort(distances, kind="stable")[:count]}

    def any_vector(self) -> StoredVector | None:
        """Give some vector that ChromaDB holds; None if it holds none."""
        with self._read() as connection:
            row = connection.execute("SELECT id, embedding, path FROM vectors WHERE stored = 1 LIMIT 1").fetchone()
        return None if row is None else StoredVector(row[0], np.frombuffer(row[1], np.float32), row[2])

    # Search

    def hits(self, distances: dict[str, float]) -> list[Hit]:
        """Give the chunks with these vectors, nearest first; equally near ones by path and place."""
        with self._read() as connection:
            rows = [row for part in _parts(list(distances)) for row in connection.execute(_HITS.format(_marks(part)), part)]
        found = [_hit(row, distances[row["vector"]]) for row in rows]
        return sorted(found, key=lambda hit: (hit.distance, hit.path, hit.chunk_index))


_HITS = """
SELECT vector, path, title, category, tags, text, prefix_length, overlap_length, section, section_path, headings, anchor,
       start_line, end_line, ordinal, chunk_count, word_count
FROM chunks JOIN pages USING (path) WHERE vector IN ({})
"""


def _hit(row: sqlite3.Row, distance: float) -> Hit:
    return Hit(
        name=page_name(row["path"]),
        path=row["path"],
        title=row["title"],
        category=row["category"],
        tags=_load(row["tags"]),
        snippet=row["text"],
        prefix_length=row["prefix_length"],
        overlap_length=row["overlap_length"],
        distance=distance,
        section=row["section"],
        section_path=_load(row["section_path"]),
        headings=_load(row["headings"]),
        anchor=row["anchor"],
        start_line=row["start_line"],
        end_line=row["end_line"],
        chunk_index=row["ordinal"],
        total_chunks=row["chunk_count"],
        page_word_count=row["word_count"],
        text=row["text"],
        text_start_line=row["start_line"],
        text_end_line=row["end_line"],
    )


def _chunk_row(path: str, ordinal: int, vector: str, chunk: Chunk) -> tuple[str | int, ...]:
    return (
        path,
        ordinal,
        vector,
        chunk.text,
        chunk.prefix_length,
        chunk.overlap_length,
        chunk.section,
        _dump(chunk.section_path),
        _dump(chunk.headings),
        chunk.anchor,
        chunk.start_line,
        chunk.end_line,
    )


def _forget(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("INSERT OR IGNORE INTO suspects SELECT vector FROM chunks WHERE path = ?", (path,))
    connection.execute("DELETE FROM chunks WHERE path = ?", (path,))
    connection.execute("DELETE FROM pages WHERE path = ?", (path,))


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _VARIABLES] for start in range(0, len(ids), _VARIABLES))


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _vectors(connection: sqlite3.Connection, columns: str, ids: Sequence[str]) -> sqlite3.Cursor:
    return connection.execute(f"SELECT {columns} FROM vectors WHERE id IN ({_marks(ids)})", ids)


def _dump(values: tuple[str, ...]) -> str:
    return json.dumps(values, ensure_ascii=False)


def _load(value: str) -> tuple[str, ...]:
    return tuple(json.loads(value))
