"""The tables of a catalog, and the rows that store pages and vectors."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np

from otterwiki_semantic.content.analysis import fold, spelled_words
from otterwiki_semantic.content.analysis.minhash import comparison_text, minhash_signature
from otterwiki_semantic.content.pages import page_words
from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.core.records import Indexed, Page, encode_places
from otterwiki_semantic.embedding import WORDS_ONLY, Matrix
from otterwiki_semantic.storage.sqlite import SqliteFile

SCHEMA_VERSION = 11
"""Increased with every change to the tables below, so that the index is rebuilt."""

ADDED_TABLES = {
    "files": "CREATE TABLE files (path TEXT PRIMARY KEY, kind TEXT NOT NULL) WITHOUT ROWID",
    "excluded_pages": "CREATE TABLE excluded_pages (path TEXT PRIMARY KEY, blob TEXT NOT NULL) WITHOUT ROWID",
    "keyword_places": "CREATE VIRTUAL TABLE keyword_places USING fts5vocab (keywords, instance)",
    "page_names": "CREATE TABLE page_names (page INTEGER PRIMARY KEY, title_words TEXT, name_words TEXT, path_words TEXT)",
    "pending": "CREATE TABLE pending (vector TEXT PRIMARY KEY) WITHOUT ROWID",
    "filled": "CREATE TABLE filled (number INTEGER PRIMARY KEY AUTOINCREMENT, vector TEXT NOT NULL)",
}
"""Tables that are also added to catalogs of earlier versions, for reading them; these stay otherwise unchanged."""

INVALID = ""
"""The blob of a page that must be indexed again. No blob has this id."""

IS_EMBEDDED = f"vector NOT GLOB '{WORDS_ONLY}*'"
"""The condition for chunks that have or will have a vector."""

# A new vector takes the `place` of a deleted one. All have the same size, so places fit; appended rows would leave gaps.
# `files` has the rows of `pages` for attached files. `excluded_pages` are excluded by their front matter: nothing else about
# them is stored.
# `page_names` has the words of titles and paths, or no row for pages that an earlier version indexed.
# `places` are the sections and units of a chunk in MessagePack.
# `links` of notes also contain the text of wikilinks: see `resolve_wiki_links`.
# `pending` are the vectors that chunks lack, and `filled` is a log of the vectors added after their chunks.
# The outbox for ChromaDB is `unstored`, `stale` (metadata) and `dropped`; `suspects` are vectors that may have become garbage.
# A vector in `unstored` or `stale` is in `vectors`, and not in both: the first build would otherwise write every id twice.
TABLES = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('revision', '0');
CREATE TABLE pages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, blob TEXT NOT NULL, title TEXT NOT NULL,
    category TEXT, tags TEXT NOT NULL, word_count INTEGER NOT NULL, chunk_count INTEGER NOT NULL, path_key TEXT NOT NULL,
    category_key TEXT, updated INTEGER, last_commit TEXT, problem TEXT, language TEXT NOT NULL
);
CREATE INDEX pages_by_change ON pages (updated DESC, path);
CREATE INDEX pages_with_problem ON pages (path, problem) WHERE problem IS NOT NULL;
CREATE INDEX pages_with_capitals ON pages (path, path_key) WHERE path != path_key;
CREATE TABLE page_tags (tag_key TEXT, path TEXT, PRIMARY KEY (tag_key, path)) WITHOUT ROWID;
CREATE INDEX page_tags_by_path ON page_tags (path);
CREATE TABLE links (path TEXT, target TEXT, PRIMARY KEY (path, target)) WITHOUT ROWID;
CREATE INDEX links_by_target ON links (target);
CREATE TABLE names (key TEXT, path TEXT, ordinal INTEGER, PRIMARY KEY (key, path, ordinal)) WITHOUT ROWID;
CREATE INDEX names_by_path ON names (path);
CREATE TABLE answers (path TEXT, question TEXT, PRIMARY KEY (path, question)) WITHOUT ROWID;
CREATE TABLE words (number INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT NOT NULL UNIQUE, pages INTEGER NOT NULL);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, page INTEGER NOT NULL, path TEXT NOT NULL, ordinal INTEGER NOT NULL,
    vector TEXT NOT NULL, text TEXT NOT NULL, prefix_length INTEGER NOT NULL, overlap_length INTEGER NOT NULL,
    section TEXT NOT NULL, section_path TEXT NOT NULL, headings TEXT NOT NULL, anchor TEXT NOT NULL,
    start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, places BLOB NOT NULL, sketch BLOB NOT NULL, UNIQUE (path, ordinal)
);
CREATE VIRTUAL TABLE keywords USING fts5 (title, headings, body, tokenize = "ascii tokenchars '#+'");
CREATE VIRTUAL TABLE keyword_counts USING fts5vocab (keywords, row);
CREATE INDEX chunks_by_vector ON chunks (vector);
CREATE TABLE vectors (place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, embedding BLOB NOT NULL);
CREATE TABLE free_places (place INTEGER PRIMARY KEY);
CREATE TABLE unstored (vector TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE stale (vector TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE suspects (vector TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE dropped (vector TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema', '{SCHEMA_VERSION}');
"""

NEXT_REVISION = "UPDATE meta SET value = value + 1 WHERE name = 'revision'"
"""Counts the changes to everything that searches read and cache."""

FIND_INCONSISTENCY = f"""
SELECT CASE
    WHEN (SELECT COUNT(*) FROM chunks) != (SELECT COALESCE(SUM(chunk_count), 0) FROM pages) THEN 'it lacks passages of pages'
    WHEN EXISTS (SELECT id FROM chunks EXCEPT SELECT id FROM keywords_docsize) THEN 'it lacks words of passages'
    WHEN EXISTS (SELECT vector FROM chunks WHERE {IS_EMBEDDED} EXCEPT SELECT id FROM vectors)
        THEN 'it lacks vectors of passages'
END"""

_MAX_CACHED_LISTS = 4_000
_ROUNDING = 0.01


def read_facts(database: SqliteFile) -> dict[str, str]:
    """Return the facts about a catalog."""
    return database.memoised("SELECT name, value FROM meta", database.mapping)


def read_revision(database: SqliteFile) -> int:
    """Return the revision of this thread's state. Errors: `CatalogCorruptError` if there is none."""
    revision = read_facts(database).get("revision")
    if revision is None:
        raise CatalogCorruptError("the catalog has no revision")
    return int(revision)


def insert_page(connection: sqlite3.Connection, page: Page, vectors: Sequence[str], changes: WordChanges) -> None:
    """Insert a page and its chunks with these vectors; the keyword index uses the ids of the chunks."""
    if page.indexed is Indexed.NOT:
        connection.execute("INSERT INTO excluded_pages VALUES (?, ?)", (page.path, page.blob))
        return
    row = (
        *(page.path, page.blob, page.title, page.category, _encode_list(page.tags), page.word_count, len(page.chunks)),
        *(fold(page.path), fold(page.category) if page.category else None, *(page.last_change or (None, None))),
        *(page.problem, page.language),
    )
    number = _insert_row(connection, "pages", row)
    if page.kind is not None:
        connection.execute("INSERT INTO files VALUES (?, ?)", (page.path, page.kind))
    tags = {fold(tag) for tag in page.tags}
    connection.executemany("INSERT INTO page_tags VALUES (?, ?)", ((tag, page.path) for tag in tags))
    connection.executemany("INSERT INTO links VALUES (?, ?)", ((page.path, target) for target in page.links_to))
    words = page.words or page_words(page)
    connection.executemany("INSERT INTO names VALUES (?, ?, ?)", ((key, page.path, ordinal) for key, ordinal in words.names))
    connection.execute("INSERT INTO page_names VALUES (?, ?, ?, ?)", (number, *words.title_and_path))
    connection.executemany("INSERT INTO answers VALUES (?, ?)", ((page.path, question) for question in page.answers))
    changes.add("words", words.spelled)
    for ordinal, (chunk, vector, (headings, body)) in enumerate(zip(page.chunks, vectors, words.chunks, strict=True)):
        signature = minhash_signature(comparison_text(f"{words.title} {headings}", body))
        chunk_row = (
            *(number, page.path, ordinal, vector, chunk.text, chunk.prefix_length, chunk.overlap_length, chunk.section),
            *(_encode_list(chunk.section_path), _encode_list(chunk.headings), chunk.anchor),
            *(chunk.start_line, chunk.end_line, encode_places(chunk.sections, chunk.units), signature),
        )
        chunk_id = _insert_row(connection, "chunks", chunk_row)
        connection.execute(
            "INSERT INTO keywords (rowid, title, headings, body) VALUES (?, ?, ?, ?)",
            (chunk_id, words.title, headings, body),
        )
    mark_stale(connection, page.path)


def _insert_row(connection: sqlite3.Connection, table: str, values: tuple[object, ...]) -> int | None:
    statement = f"INSERT INTO {table} VALUES (NULL{', ?' * len(values)})"
    return connection.execute(statement, values).lastrowid


def delete_page(connection: sqlite3.Connection, path: str, changes: WordChanges) -> int:
    """Delete a page and its chunks, make their vectors candidates for garbage collection; return the number of chunks."""
    vectors = "SELECT vector FROM chunks JOIN vectors ON vectors.id = vector WHERE path = ?"
    connection.execute(f"INSERT OR IGNORE INTO suspects {vectors}", (path,))
    mark_stale(connection, path)
    texts = [row["text"] for row in connection.execute("SELECT text FROM chunks WHERE path = ?", (path,))]
    changes.remove("words", spelled_words(*texts))
    connection.execute("DELETE FROM keywords WHERE rowid IN (SELECT id FROM chunks WHERE path = ?)", (path,))
    chunks = connection.execute("DELETE FROM chunks WHERE path = ?", (path,)).rowcount
    connection.execute("DELETE FROM page_names WHERE page IN (SELECT number FROM pages WHERE path = ?)", (path,))
    for table in ("pages", "excluded_pages", "page_tags", "links", "names", "answers", "files"):
        connection.execute(f"DELETE FROM {table} WHERE path = ?", (path,))
    return chunks


def mark_stale(connection: sqlite3.Connection, path: str) -> None:
    """Record that ChromaDB's metadata of a page's chunks may be outdated."""
    connection.execute(
        "INSERT OR IGNORE INTO stale SELECT vector FROM chunks JOIN vectors ON vectors.id = vector"
        " WHERE path = ? AND vector NOT IN (SELECT vector FROM unstored)",
        (path,),
    )


class WordChanges:
    """How many more or fewer pages have each word. Written once for all pages of a transaction, which share most words."""

    def __init__(self) -> None:
        self._changes = {"words": Counter[str](), "label_words": Counter[str]()}

    def add(self, table: str, words: Collection[str]) -> None:
        self._changes[table].update(words)

    def remove(self, table: str, words: Collection[str]) -> None:
        self._changes[table].subtract(words)

    def write(self, connection: sqlite3.Connection) -> None:
        """Change the vocabularies; words without pages are deleted."""
        for table, words in self._changes.items():
            upsert = "VALUES (?, ?) ON CONFLICT (word) DO UPDATE SET pages = pages + excluded.pages"
            changed = [(word, count) for word, count in words.items() if count]
            connection.executemany(f"INSERT INTO {table} (word, pages) {upsert}", changed)
            fewer = [(word,) for word, count in changed if count < 0]
            connection.executemany(f"DELETE FROM {table} WHERE word = ? AND pages <= 0", fewer)


def _encode_list(values: tuple[str, ...]) -> str:
    return json.dumps(values, ensure_ascii=False)


@lru_cache(_MAX_CACHED_LISTS)
def decode_list(value: str) -> tuple[str, ...]:
    """Decode a stored list of texts. Errors: `CatalogCorruptError` if it is not a list."""
    try:
        return tuple(json.loads(value))
    except (TypeError, ValueError) as error:
        raise CatalogCorruptError(f"the catalog has a list that cannot be read: {error}") from error


def decode_vectors(embeddings: Sequence[bytes]) -> Matrix:
    """Decode stored vectors, as rows. Errors: `CatalogCorruptError` unless all have the same size and unit length."""
    if not embeddings:
        return np.empty((0, 0), dtype=np.float32)
    try:
        matrix = np.frombuffer(b"".join(embeddings), dtype=np.float32).reshape(len(embeddings), -1)
    except ValueError as error:
        raise CatalogCorruptError(f"the catalog has vectors of odd sizes: {error}") from error
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.einsum("ij,ij->i", matrix, matrix)
    if not np.all(np.abs(lengths - 1) < _ROUNDING):
        raise CatalogCorruptError("the catalog has vectors that are not of unit length")
    return matrix


def iso_time(seconds: int | None) -> str | None:
    """Format a Unix time as ISO 8601; None if it is unknown or out of range, as a commit's time may be any number."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return None
