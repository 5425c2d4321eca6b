"""The catalog: a SQLite file with the pages, chunks and vectors of one generation, and which commit it equals.

It is the truth of the index; ChromaDB only finds ids. Words, names, tags and links change in one transaction with their page;
`lookup` reads them for a search. What ChromaDB has still to be told changes with them, too: a vector is `unstored` until
ChromaDB has it, and one that is no longer needed stays in `dropped` until ChromaDB has forgotten it. After a crash the rest of
the way is simply gone again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from otterwiki_semantic.content.analysis import fold, indexed_text, name_key
from otterwiki_semantic.content.analysis.minhash import comparison_text, minhash_signature
from otterwiki_semantic.content.pages import page_name
from otterwiki_semantic.core.records import Chunk, Page
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage.exact import unit_vectors
from otterwiki_semantic.storage.page_table import PageTable
from otterwiki_semantic.storage.reader import CatalogReader
from otterwiki_semantic.storage.sqlite import SqliteFile, batches, placeholders
from otterwiki_semantic.storage.upkeep import Upkeep

SCHEMA = 4
"""Raised with every change of the tables below: the index is then built again."""

UNFINISHED = ""
"""What stands for the id of a page's content while some of its vectors are lacking: no content has it, so it is read again."""

DEAD_PLACES = "dead places"
"""A fact of `meta`: how many vectors ChromaDB has forgotten since its collection was made. It never uses their places again."""

# A vector takes the place of one that has gone. All are of one size, so that places fit; appended rows would leave gaps behind.
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('revision', '0');
CREATE TABLE pages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, blob TEXT NOT NULL, title TEXT NOT NULL,
    category TEXT, tags TEXT NOT NULL, word_count INTEGER NOT NULL, chunk_count INTEGER NOT NULL, path_key TEXT NOT NULL,
    category_key TEXT, updated INTEGER
);
CREATE TABLE page_tags (tag_key TEXT, path TEXT, PRIMARY KEY (tag_key, path)) WITHOUT ROWID;
CREATE INDEX page_tags_by_path ON page_tags (path);
CREATE TABLE links (path TEXT, target TEXT, PRIMARY KEY (path, target)) WITHOUT ROWID;
CREATE TABLE names (key TEXT, path TEXT, ordinal INTEGER, PRIMARY KEY (key, path, ordinal)) WITHOUT ROWID;
CREATE INDEX names_by_path ON names (path);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, page INTEGER NOT NULL, path TEXT NOT NULL, ordinal INTEGER NOT NULL,
    vector TEXT NOT NULL, text TEXT NOT NULL, prefix_length INTEGER NOT NULL, overlap_length INTEGER NOT NULL,
    section TEXT NOT NULL, section_path TEXT NOT NULL, headings TEXT NOT NULL, anchor TEXT NOT NULL,
    start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, sketch BLOB NOT NULL, UNIQUE (path, ordinal)
);
CREATE VIRTUAL TABLE keywords USING fts5 (title, headings, body, tokenize = "ascii tokenchars '#+'");
CREATE VIRTUAL TABLE keyword_counts USING fts5vocab (keywords, row);
CREATE INDEX chunks_by_vector ON chunks (vector);
CREATE TABLE vectors (place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, embedding BLOB NOT NULL);
CREATE TABLE free_places (place INTEGER PRIMARY KEY);
CREATE TABLE unstored (vector TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE suspects (vector TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE dropped (vector TEXT PRIMARY KEY) WITHOUT ROWID;
"""

_NEXT_REVISION = "UPDATE meta SET value = value + 1 WHERE name = 'revision'"
"""Counts the changes of what searches look at; what they remember of one revision is no longer true of another."""


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A vector as ChromaDB is to hold it: its id and its values. Where it stands is the catalog's business alone."""

    id: str
    embedding: Matrix


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a catalog holds."""

    pages: int
    chunks: int
    vectors: int


class Catalog:
    """One catalog file; safe for several threads of one process. Writers take turns, readers do not wait for them.

    Errors: `CatalogCorruptError` when the file is no catalog, damaged, or has gone; `CatalogError` for what may pass, such as a
    full disk.
    """

    def __init__(self, path: Path) -> None:
        row = f"INSERT INTO meta VALUES ('schema', '{SCHEMA}');"
        self.path = path
        self._database = SqliteFile(path, _TABLES + row)
        self.lookup = CatalogReader(self._database)
        self.directory = PageTable(self._database)
        self.snapshot = self._database.snapshot
        self._read = self._database.read
        self._write = self._database.write
        self._upkeep = Upkeep(self._database)
        self.tidy = self._upkeep.tidy
        self.copy_to = self._database.copy_to
        self.is_current = self.meta("schema") == str(SCHEMA)
        """Whether its tables are those of this version; it is not written to otherwise."""

    @property
    def is_in_place(self) -> bool:
        """Whether the file is still where it was opened."""
        return self._database.is_in_place

    def close(self) -> None:
        """Close every connection, for good: every later use is an error."""
        self._database.close()

    def check(self) -> None:
        """Read all of it once; `CatalogCorruptError` if the file, a vector or a text is not sound."""
        self._database.check()
        self.lookup.check()

    def check_copy(self) -> None:
        """Do as `check`, and see that the tables fit together: see `Upkeep.check`."""
        self.check()
        self._upkeep.check()

    # Facts about the whole

    def meta(self, name: str) -> str | None:
        """Give a fact about the catalog; None if it is not set."""
        with self._read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    @property
    def is_changing(self) -> bool:
        """Whether pages are on their way to another commit, or were when the last process ended: it equals none."""
        return self.meta("changing") is not None

    @property
    def commit(self) -> str | None:
        """The commit that it equals; None if it equals none."""
        return None if self.is_changing else self.meta("commit")

    def set_meta(self, name: str, value: str | None) -> None:
        """Set a fact; None takes it away."""
        with self._write() as connection:
            connection.execute("DELETE FROM meta WHERE name = ?", (name,))
            if value is not None:
                connection.execute("INSERT INTO meta VALUES (?, ?)", (name, value))

    def begin_change(self, commit: str | None) -> None:
        """Note that pages begin to change towards another commit: until `end_change` the catalog equals none."""
        self.set_meta("changing", commit or "no commit")

    def end_change(self, commit: str | None) -> None:
        """Note that the catalog equals a commit, and how many of its pages are `unfinished`."""
        with self._write() as connection:
            connection.execute("DELETE FROM meta WHERE name IN ('changing', 'commit', 'unfinished')")
            connection.executemany("INSERT INTO meta VALUES ('commit', ?)", [(commit,)] if commit else [])
            connection.execute(
                "INSERT INTO meta SELECT 'unfinished', COUNT(*) FROM pages WHERE blob = ? HAVING COUNT(*) > 0", (UNFINISHED,)
            )

    @property
    def unfinished(self) -> int:
        """Pages that some vectors are lacking of; they are found by their words, and indexed again."""
        return int(self.meta("unfinished") or 0)

    def counts(self) -> Counts:
        """Give the number of pages, chunks and vectors."""
        with self._read() as connection:
            tables = ("pages", "chunks", "vectors")
            return Counts(*(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables))

    def blobs(self) -> dict[str, str]:
        """Give the id of each page's content, by path."""
        with self._read() as connection:
            return dict(connection.execute("SELECT path, blob FROM pages"))

    def updated(self, paths: Sequence[str]) -> dict[str, int]:
        """Give when each of these pages was last changed, as far as it is known."""
        statement = "SELECT path, updated FROM pages WHERE updated IS NOT NULL AND path IN"
        with self._read() as connection:
            return {
                row[0]: row[1]
                for part in batches(paths)
                for row in connection.execute(f"{statement} ({placeholders(part)})", part)
            }

    # Pages

    def put_pages(self, pages: Iterable[tuple[Page, Sequence[str]]]) -> None:
        """Put pages in place of what stood at their paths, in one transaction; each comes with its chunks' vector ids."""
        with self._write() as connection:
            for page, vectors in pages:
                self._forget(connection, page.path)
                _insert(connection, page, vectors)
            connection.execute(_NEXT_REVISION)

    def remove_pages(self, paths: Iterable[str]) -> None:
        """Remove pages and their chunks, in one transaction."""
        with self._write() as connection:
            for path in paths:
                self._forget(connection, path)
            connection.execute(_NEXT_REVISION)

    def _forget(self, connection: sqlite3.Connection, path: str) -> None:
        connection.execute("INSERT OR IGNORE INTO suspects SELECT vector FROM chunks WHERE path = ?", (path,))
        connection.execute("DELETE FROM keywords WHERE rowid IN (SELECT id FROM chunks WHERE path = ?)", (path,))
        self._upkeep.count_gone(connection.execute("DELETE FROM chunks WHERE path = ?", (path,)).rowcount)
        for table in ("pages", "page_tags", "links", "names"):
            connection.execute(f"DELETE FROM {table} WHERE path = ?", (path,))

    def read_again(self, paths: Sequence[str]) -> None:
        """Note that pages have to be indexed again, though their contents are the same: until then the catalog equals none."""
        with self._write() as connection:
            for part in batches(paths):
                connection.execute(f"UPDATE pages SET blob = '{UNFINISHED}' WHERE path IN ({placeholders(part)})", part)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('changing', 'the same commit')")

    def set_updated(self, times: Mapping[str, int]) -> None:
        """Note when pages were last changed, in seconds since 1970."""
        with self._write() as connection:
            connection.executemany(
                "UPDATE pages SET updated = ? WHERE path = ?", ((time, path) for path, time in times.items())
            )
            connection.execute(_NEXT_REVISION)

    def some_texts(self, count: int) -> list[str]:
        """Give up to `count` passages, from anywhere."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT text FROM chunks WHERE id IN (SELECT id FROM chunks ORDER BY RANDOM() LIMIT ?)", (count,)
            )
            return [row[0] for row in rows]

    # Vectors

    def missing_vectors(self, ids: Iterable[str]) -> list[str]:
        """Give those of the ids that have no vector yet, each once and in order."""
        wanted = dict.fromkeys(ids)
        with self._read() as connection:
            known = {row[0] for part in batches(list(wanted)) for row in _vectors(connection, "id", part)}
        return [vector for vector in wanted if vector not in known]

    def vectors(self, ids: Sequence[str]) -> dict[str, Matrix]:
        """Give those of the vectors that are known, by id."""
        with self._read() as connection:
            rows = (row for part in batches(ids) for row in _vectors(connection, "id, embedding", part))
            return {vector: unit_vectors([embedding])[0] for vector, embedding in rows}

    def add_vectors(self, vectors: Sequence[StoredVector]) -> None:
        """Add vectors; until a chunk refers to them they may be collected."""
        with self._write() as connection:
            free = [row[0] for row in connection.execute("SELECT place FROM free_places LIMIT ?", (len(vectors),))]
            for vector in vectors:
                row = (free[-1] if free else None, vector.id, vector.embedding.tobytes())
                if connection.execute("INSERT INTO vectors VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", row).rowcount:
                    connection.execute("INSERT OR IGNORE INTO unstored VALUES (?)", (vector.id,))
                    if free:
                        connection.execute("DELETE FROM free_places WHERE place = ?", (free.pop(),))
            connection.executemany("INSERT OR IGNORE INTO suspects VALUES (?)", ((vector.id,) for vector in vectors))

    def settle_vectors(self) -> None:
        """Collect the vectors that no chunk refers to any more."""
        with self._write() as connection:
            unused = "SELECT vector FROM suspects WHERE vector NOT IN (SELECT vector FROM chunks)"
            connection.execute(f"INSERT OR IGNORE INTO dropped {unused}")
            connection.execute(f"INSERT INTO free_places SELECT place FROM vectors WHERE id IN ({unused})")
            connection.execute(f"DELETE FROM vectors WHERE id IN ({unused})")
            connection.execute(f"DELETE FROM unstored WHERE vector IN ({unused})")
            connection.execute("DELETE FROM suspects")

    # What ChromaDB has still to be told

    def vectors_to_store(self, limit: int) -> list[StoredVector]:
        """Give up to `limit` vectors that ChromaDB does not hold."""
        with self._read() as connection:
            rows = connection.execute("SELECT id, embedding FROM unstored JOIN vectors ON id = vector LIMIT ?", (limit,))
            return _stored(rows)

    def mark_stored(self, vectors: Iterable[StoredVector]) -> None:
        """Note that ChromaDB holds these vectors as given."""
        with self._write() as connection:
            connection.executemany("DELETE FROM unstored WHERE vector = ?", ((vector.id,) for vector in vectors))

    def vectors_to_drop(self, limit: int) -> list[str]:
        """Give up to `limit` ids that ChromaDB has to forget; one that is needed again is not among them."""
        with self._read() as connection:
            if connection.execute("SELECT 1 FROM dropped LIMIT 1").fetchone() is None:
                return []
        with self._write() as connection:
            connection.execute("DELETE FROM dropped WHERE vector IN (SELECT id FROM vectors)")
            return [row[0] for row in connection.execute("SELECT vector FROM dropped LIMIT ?", (limit,))]

    def mark_dropped(self, ids: Sequence[str]) -> None:
        """Note that ChromaDB has forgotten these ids; it keeps their places, which are counted."""
        with self._write() as connection:
            connection.executemany("DELETE FROM dropped WHERE vector = ?", ((vector,) for vector in ids))
            connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                (DEAD_PLACES, str(len(ids))),
            )

    def store_all_again(self) -> None:
        """Note that ChromaDB holds nothing."""
        with self._write() as connection:
            connection.execute("INSERT OR IGNORE INTO unstored SELECT id FROM vectors")
            connection.execute("DELETE FROM dropped")

    def note_stored(self, ids: Iterable[str]) -> int:
        """Note that ChromaDB holds just these ids; gives how many of them the notes were wrong about.

        One that it lacks is stored again, one that no chunk needs is dropped. One that it holds is not stored again: that makes
        ChromaDB find others worse.
        """
        with self._write() as connection:
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS held (id TEXT PRIMARY KEY) WITHOUT ROWID")
            connection.execute("DELETE FROM held")
            connection.executemany("INSERT OR IGNORE INTO held VALUES (?)", ((vector,) for vector in ids))
            connection.execute("DELETE FROM unstored WHERE vector IN (SELECT id FROM held)")
            lost = connection.execute(
                "INSERT OR IGNORE INTO unstored SELECT id FROM vectors WHERE id NOT IN (SELECT id FROM held)"
            )
            extra = connection.execute(
                "INSERT OR IGNORE INTO dropped SELECT id FROM held WHERE id NOT IN (SELECT id FROM vectors)"
            )
            connection.execute("DELETE FROM dropped WHERE vector NOT IN (SELECT id FROM held)")
            return lost.rowcount + extra.rowcount

    def some_vectors(self, count: int) -> list[StoredVector]:
        """Give up to `count` vectors that ChromaDB holds, from anywhere."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT id, embedding FROM vectors WHERE id IN"
                " (SELECT id FROM vectors WHERE id NOT IN (SELECT vector FROM unstored) ORDER BY RANDOM() LIMIT ?)",
                (count,),
            )
            return _stored(rows)


def _stored(rows: Iterable[tuple[str, bytes]]) -> list[StoredVector]:
    return [StoredVector(vector, unit_vectors([embedding])[0]) for vector, embedding in rows]


def _insert(connection: sqlite3.Connection, page: Page, vectors: Sequence[str]) -> None:
    """Insert a page with all that is known of it: ids of chunks are those of their words in the keyword index."""
    facts = (
        *(page.path, page.blob, page.title, page.category, _dump(page.tags), page.word_count, len(page.chunks)),
        *(fold(page.path), fold(page.category) if page.category else None, page.updated),
    )
    number = connection.execute(f"INSERT INTO pages VALUES (NULL, {placeholders(facts)})", facts).lastrowid
    tags = {fold(tag) for tag in page.tags}
    connection.executemany("INSERT INTO page_tags VALUES (?, ?)", ((tag, page.path) for tag in tags))
    connection.executemany("INSERT INTO links VALUES (?, ?)", ((page.path, target) for target in page.links_to))
    title_words = indexed_text(f"{page.title} {page.path.replace('/', ' ')}")
    for ordinal, (chunk, vector) in enumerate(zip(page.chunks, vectors, strict=True)):
        headings = dict.fromkeys((*chunk.section_path, *chunk.headings))
        headings.pop(page.title, None)
        heading_words, body = indexed_text(" / ".join(headings)), indexed_text(chunk.text[chunk.prefix_length :])
        mark = minhash_signature(comparison_text(f"{title_words} {heading_words}", body))
        row = (number, page.path, ordinal, vector, *_chunk_facts(chunk), mark)
        identity = connection.execute(f"INSERT INTO chunks VALUES (NULL, {placeholders(row)})", row).lastrowid
        connection.execute(
            "INSERT INTO keywords (rowid, title, headings, body) VALUES (?, ?, ?, ?)",
            (identity, title_words, heading_words, body),
        )
    connection.executemany("INSERT INTO names VALUES (?, ?, ?)", _names(page))


def _names(page: Page) -> Iterator[tuple[str, str, int]]:
    """Give the keys of the page's names: title, path and last part of it (ordinal -1), and each heading's first chunk."""
    keys = {name_key(page.title), name_key(page_name(page.path)), name_key(page.path)} - {""}
    yield from ((key, page.path, -1) for key in keys)
    for ordinal, chunk in enumerate(page.chunks):
        for key in dict.fromkeys(map(name_key, chunk.headings)):
            if key and key not in keys:
                keys.add(key)
                yield key, page.path, ordinal


def _chunk_facts(chunk: Chunk) -> tuple[str | int, ...]:
    return (
        *(chunk.text, chunk.prefix_length, chunk.overlap_length),
        *(chunk.section, _dump(chunk.section_path), _dump(chunk.headings), chunk.anchor),
        *(chunk.start_line, chunk.end_line),
    )


def _vectors(connection: sqlite3.Connection, columns: str, ids: Sequence[str]) -> sqlite3.Cursor:
    return connection.execute(f"SELECT {columns} FROM vectors WHERE id IN ({placeholders(ids)})", ids)


def _dump(values: tuple[str, ...]) -> str:
    return json.dumps(values, ensure_ascii=False)
