"""The catalog: a SQLite file with the pages, chunks and vectors of one generation, and the commit that they equal.

The catalog is the source of truth; ChromaDB only mirrors its vectors. A page, its words, names, tags and links, and the outbox
for ChromaDB change in one transaction, so work continues after a crash.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.core.records import LastChange, Page
from otterwiki_semantic.storage import schema
from otterwiki_semantic.storage.catalog_reader import CatalogReader, check_text
from otterwiki_semantic.storage.keyword_index import KeywordIndex
from otterwiki_semantic.storage.labels import TABLES as LABEL_TABLES
from otterwiki_semantic.storage.labels import LabelTable, add_labels, delete_labels
from otterwiki_semantic.storage.outbox import Outbox
from otterwiki_semantic.storage.page_table import PageTable
from otterwiki_semantic.storage.sqlite import SqliteFile
from otterwiki_semantic.storage.vector_table import VectorTable, expect_vectors, forget_vectors

_MERGE = "INSERT INTO keywords (keywords, rank) VALUES ('merge', ?)"
_MERGED_PER_CHUNK, _MAX_MERGED = 2, 512
"""FTS5 pages (4 KB) to merge for each deleted chunk, and the most to merge at once, which takes about 30 ms."""
_CHANGES_OF_A_MERGE = 2
"""Fewer changes mean that nothing was left to merge."""
_CHECK_BATCH = 1_000
_MAX_FILLED = 10_000
"""Maximum entries in the log of vectors that were added late. A reader that lacks older ones reads all vectors again."""
_COUNTED = "counts"
"""A fact: the last counts and their revision. To count a million chunks, SQLite reads 45 MB from all over the disk."""
_COUNT = "SELECT (SELECT COUNT(*) FROM pages), (SELECT COUNT(*) FROM chunks), (SELECT COUNT(*) FROM files)"
_COUNT_VECTORS = """
SELECT COALESCE(last, 0) - (SELECT COUNT(*) FROM free_places WHERE place <= last)
FROM (SELECT MAX(place) AS last FROM vectors)"""
"""Every place up to the last one is either used or free."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of records in a catalog."""

    pages: int
    chunks: int
    vectors: int
    files: int = 0
    """Attached files; not included in `pages`."""


class Catalog(SqliteFile):
    """One catalog file. Raises the errors of `SqliteFile`; a file with other contents also counts as corrupt."""

    def __init__(self, path: Path, vectors: str = "auto") -> None:
        """`vectors` is the format of vectors in memory: float32, int8, auto, or disk to leave them in the catalog."""
        super().__init__(path, schema.TABLES)
        self.pages = PageTable(self)
        self.vectors = VectorTable(self)
        self.outbox = Outbox(self)
        self._pages_to_merge = 0
        self._counted = -1, 0, 0, 0
        """The last revision that was counted, and its numbers of pages, chunks and files."""
        self.is_current = self.meta("schema") == str(schema.SCHEMA_VERSION)
        """Whether the tables have this version's schema; a catalog with another schema is read-only."""
        self._vectors_in_memory = vectors
        self._forget()
        known = {row["name"] for row in self.select("SELECT name FROM sqlite_master")}
        added = {**schema.ADDED_TABLES, **LABEL_TABLES}
        if not added.keys() <= known:
            with self.write() as connection:
                for name in added.keys() - known:
                    connection.execute(added[name])

    def _forget(self) -> None:
        """Free what was read into memory, without a garbage collection, from which it may be exempt."""
        self.keywords = KeywordIndex(self)
        self.reader = CatalogReader(self, is_current=self.is_current, vectors=self._vectors_in_memory)
        self.labels = LabelTable(self)

    def close(self) -> None:
        """Close every connection, and free what was read; any later use is an error."""
        super().close()
        self._forget()

    def check(self) -> None:
        """Read the whole file. Errors: `CatalogCorruptError` if the file, a vector or a text is damaged."""
        super().check()
        with self.read() as connection:
            vectors = connection.execute("SELECT embedding FROM vectors")
            while rows := vectors.fetchmany(_CHECK_BATCH):
                schema.decode_vectors([row["embedding"] for row in rows])
            for row in connection.execute("SELECT path, vector, text FROM chunks"):
                check_text(*row)

    def check_copy(self) -> None:
        """Run `check`, and check that the tables and the keyword index are consistent.

        The catalog must not lack vectors, and is locked meanwhile: only use this on a catalog that nobody else writes to.
        """
        self.check()
        with self.write() as connection:
            connection.execute("INSERT INTO keywords (keywords) VALUES ('integrity-check')")
            connection.execute("INSERT INTO labels (labels) VALUES ('integrity-check')")
            inconsistency = connection.execute(schema.FIND_INCONSISTENCY).fetchone()[0]
        if inconsistency:
            raise CatalogCorruptError(f"the catalog {self.path} is damaged: {inconsistency}")

    def compact(self) -> None:
        """Return unused space to the disk, within a moment, and save the counts for the next start.

        FTS5 keeps the words of a deleted chunk until it merges the segments that hold them. It merges automatically only when
        several segments have the same size. So each call merges slightly more of the keyword index than was rewritten: first
        the merge in progress, then the rest.
        """
        pages = min(self._pages_to_merge, _MAX_MERGED)
        if pages:
            with self.write() as connection:
                before = connection.total_changes
                connection.execute(_MERGE, (pages,))
                if connection.total_changes - before < _CHANGES_OF_A_MERGE:
                    connection.execute(_MERGE, (-pages,))
                self._pages_to_merge -= pages
        self.counts()
        counted = " ".join(map(str, self._counted))
        if counted != self.meta(_COUNTED):
            self.set_meta(_COUNTED, counted)
        super().compact()

    def meta(self, name: str) -> str | None:
        """Return a fact about the catalog, or None if it is not set."""
        value = schema.read_facts(self).get(name)
        return None if value is None else str(value)

    def set_meta(self, name: str, value: str | None) -> None:
        """Set a fact; None removes it."""
        with self.write() as connection:
            connection.execute("DELETE FROM meta WHERE name = ?", (name,))
            if value is not None:
                connection.execute("INSERT INTO meta VALUES (?, ?)", (name, value))

    @property
    def is_changing(self) -> bool:
        """Whether a sync is running, or was interrupted. The catalog then equals no commit."""
        return self.meta("changing") is not None

    @property
    def commit(self) -> str | None:
        """The commit that the catalog equals, or None."""
        return None if self.is_changing else self.meta("commit")

    @property
    def stored_commit(self) -> str | None:
        """The commit whose pages are all stored, possibly without their vectors, or None."""
        return self.meta("stored") if self.is_changing else self.meta("commit")

    @property
    def unfinished(self) -> int:
        """The number of pages that the last sync left without vectors. Only keyword search finds them until the model works."""
        return int(self.meta("unfinished") or 0)

    def rule(self, name: str) -> tuple[str, ...]:
        """Return a rule that the catalog was last synced with: `exclude`, `attachments` or `wikilinks`."""
        return schema.decode_list(self.meta(name) or "[]")

    def set_rule(self, name: str, rule: Sequence[str], removed: Iterable[str] = ()) -> None:
        """Set a rule, and remove the pages that it excludes. The catalog equals no commit until `end_change`."""
        with self._write_pages() as (connection, changes):
            for path in removed:
                self._delete(connection, path, changes)
            values = ((name, json.dumps(rule)), ("changing", f"another rule: {name}"))
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)

    def begin_change(self, commit: str | None) -> None:
        """Record that pages begin to change towards `commit`. The catalog equals no commit until `end_change`."""
        with self.write() as connection:
            connection.execute("DELETE FROM meta WHERE name = 'stored'")
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('changing', ?)", (commit or "no commit",))

    def end_change(self, commit: str | None) -> None:
        """Record that the catalog equals a commit, and count its `unfinished` pages."""
        with self.write() as connection:
            connection.execute("DELETE FROM meta WHERE name IN ('changing', 'stored', 'commit', 'unfinished')")
            connection.executemany("INSERT INTO meta VALUES ('commit', ?)", [(commit,)] if commit else [])
            connection.execute(
                "INSERT INTO meta SELECT 'unfinished', COUNT(DISTINCT path) FROM pending"
                " CROSS JOIN chunks ON chunks.vector = pending.vector HAVING COUNT(*) > 0"
            )
            connection.execute("DELETE FROM filled WHERE number <= (SELECT MAX(number) FROM filled) - ?", (_MAX_FILLED,))

    def counts(self) -> Counts:
        """Return the number of pages, chunks, vectors and attached files."""
        with self.snapshot():
            revision = schema.read_revision(self)
            if self._counted[0] != revision:
                saved = (self.meta(_COUNTED) or "").split()
                self._counted = revision, *(map(int, saved[1:]) if saved[:1] == [str(revision)] else self.select(_COUNT)[0])
            _, pages, chunks, files = self._counted
            return Counts(pages - files, chunks, self.select(_COUNT_VECTORS)[0][0], files)

    def set_last_changes(self, changes: Mapping[str, LastChange]) -> None:
        """Record the last changes of pages."""
        update = "UPDATE pages SET updated = ?1, last_commit = ?2 WHERE path = ?3 AND (updated, last_commit) IS NOT (?1, ?2)"
        with self.write() as connection:
            changed = [path for path, change in changes.items() if connection.execute(update, (*change, path)).rowcount]
            for path in changed:
                schema.mark_stale(connection, path)
            if changed:
                connection.execute(schema.NEXT_REVISION)

    def put_pages(self, pages: Iterable[tuple[Page, Sequence[str]]]) -> None:
        """Insert or replace pages in one transaction. Each comes with the vector ids of its chunks."""
        with self._write_pages() as (connection, changes):
            for page, vectors in pages:
                self._delete(connection, page.path, changes)
                schema.insert_page(connection, page, vectors, changes)
                add_labels(connection, page.path, page.aliases, changes)
                expect_vectors(connection, page.path)

    def remove_pages(self, paths: Iterable[str]) -> None:
        """Remove pages and their chunks, in one transaction."""
        with self._write_pages() as (connection, changes):
            for path in paths:
                self._delete(connection, path, changes)

    @contextmanager
    def _write_pages(self) -> Iterator[tuple[sqlite3.Connection, schema.WordChanges]]:
        """Yield the writing connection for one transaction, and the changes to the vocabularies that it ends with."""
        changes = schema.WordChanges()
        with self.write() as connection:
            yield connection, changes
            changes.write(connection)
            connection.execute(schema.NEXT_REVISION)

    def _delete(self, connection: sqlite3.Connection, path: str, changes: schema.WordChanges) -> None:
        forget_vectors(connection, path)
        delete_labels(connection, path, changes)
        self._pages_to_merge += _MERGED_PER_CHUNK * schema.delete_page(connection, path, changes)

    def invalidate_pages(self, paths: Sequence[str]) -> None:
        """Record that unchanged pages must be indexed again. The catalog equals no commit until then."""
        with self.write() as connection:
            invalid = ((schema.INVALID, path) for path in paths)
            connection.executemany("UPDATE pages SET blob = ? WHERE path = ?", invalid)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('changing', 'the same commit')")
