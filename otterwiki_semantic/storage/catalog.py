"""The catalog: a SQLite file with the pages, chunks and vectors of one generation, and the commit that they equal.

The catalog is the source of truth; ChromaDB only mirrors its vectors. A page, its words, names, tags and links, and the outbox
for ChromaDB change in one transaction, so work continues after a crash.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.core.records import Indexed, LastChange, Page
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage import schema
from otterwiki_semantic.storage.catalog_reader import CatalogReader
from otterwiki_semantic.storage.keyword_index import KeywordIndex
from otterwiki_semantic.storage.labels import TABLES as LABEL_TABLES
from otterwiki_semantic.storage.labels import LabelTable, add_labels, delete_labels
from otterwiki_semantic.storage.outbox import Outbox
from otterwiki_semantic.storage.page_table import PageTable
from otterwiki_semantic.storage.pending import PendingVectors, expect_vectors, fill_vector, forget_vectors, shorten_log
from otterwiki_semantic.storage.sqlite import IN_LIST, SqliteFile
from otterwiki_semantic.storage.vector_store import StoredVector
from otterwiki_semantic.storage.wiki_links import resolve_wiki_links

_EXCLUDE = "exclude"
_ATTACHMENTS = "attachments"
_MERGE = "INSERT INTO keywords (keywords, rank) VALUES ('merge', ?)"
_MERGED_PER_CHUNK, _MAX_MERGED = 2, 512
"""FTS5 pages (4 KB) to merge for each deleted chunk, and the most to merge at once, which takes about 30 ms."""
_CHANGES_OF_A_MERGE = 2
"""Fewer changes mean that nothing was left to merge."""


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
        """`vectors` is the format of vectors in memory: float32, int8 or auto."""
        super().__init__(path, schema.TABLES)
        self.pages = PageTable(self)
        self.outbox = Outbox(self)
        self.pending = PendingVectors(self)
        self._pages_to_merge = 0
        self._counted = -1, 0, 0, 0
        """The last revision that was counted, and its numbers of pages, chunks and files."""
        self.is_current = self.meta("schema") == str(schema.SCHEMA_VERSION)
        """Whether the tables have this version's schema; a catalog with another schema is read-only."""
        self.keywords = KeywordIndex(self, is_current=self.is_current)
        self.reader = CatalogReader(self, is_current=self.is_current, vectors=vectors)
        self.labels = LabelTable(self)
        if not self.select("SELECT 1 FROM sqlite_master WHERE name = 'files'"):
            with self.write() as connection:
                connection.execute(schema.FILES)
        if not self.select("SELECT 1 FROM sqlite_master WHERE name = 'label_words'"):
            with self.write() as connection:  # a new file, or one of an earlier version
                for statement in LABEL_TABLES:
                    connection.execute(statement)
                if self.is_current:
                    connection.execute("CREATE INDEX pages_by_change ON pages (updated DESC, path)")

    def check(self) -> None:
        """Read the whole file. Errors: `CatalogCorruptError` if the file, a vector or a text is damaged."""
        super().check()
        self.reader.check()

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
        """Return unused space to the disk, within a moment.

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

    @property
    def exclude(self) -> tuple[str, ...]:
        """The patterns of excluded pages."""
        return schema.decode_list(self.meta(_EXCLUDE) or "[]")

    def set_exclude(self, patterns: Sequence[str], paths: Iterable[str]) -> None:
        """Set the patterns of excluded pages and remove these pages. The catalog equals no commit until `end_change`."""
        with self.write() as connection:
            for path in paths:
                self._delete(connection, path)
            values = ((_EXCLUDE, json.dumps(patterns)), ("changing", "other pages"))
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)
            connection.execute(schema.NEXT_REVISION)

    @property
    def attachment_rule(self) -> tuple[str, ...]:
        """The key of the rule that selects attached files for the index."""
        return schema.decode_list(self.meta(_ATTACHMENTS) or "[]")

    def set_attachment_rule(self, key: Sequence[str]) -> None:
        """Set the rule that selects attached files for the index. The catalog equals no commit until `end_change`."""
        with self.write() as connection:
            values = ((_ATTACHMENTS, json.dumps(key)), ("changing", "other files"))
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)

    def begin_change(self, commit: str | None) -> None:
        """Record that pages begin to change towards `commit`. The catalog equals no commit until `end_change`."""
        with self.write() as connection:
            connection.execute("DELETE FROM meta WHERE name = 'stored'")
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('changing', ?)", (commit or "no commit",))

    def end_storing(self, commit: str | None) -> None:
        """Record that all pages of a commit are stored, possibly without their vectors."""
        self.set_meta("stored", commit)

    def end_change(self, commit: str | None) -> None:
        """Record that the catalog equals a commit, and count its `unfinished` pages."""
        with self.write() as connection:
            connection.execute("DELETE FROM meta WHERE name IN ('changing', 'stored', 'commit', 'unfinished')")
            connection.executemany("INSERT INTO meta VALUES ('commit', ?)", [(commit,)] if commit else [])
            connection.execute(
                "INSERT INTO meta SELECT 'unfinished', COUNT(DISTINCT path) FROM pending"
                " CROSS JOIN chunks ON chunks.vector = pending.vector HAVING COUNT(*) > 0"
            )
            shorten_log(connection)

    def counts(self) -> Counts:
        """Return the number of pages, chunks, vectors and attached files."""
        with self.snapshot():
            revision = schema.read_revision(self)
            if self._counted[0] != revision:
                tables = ("pages", "chunks", "files")
                pages, chunks, files = self.select(f"SELECT {', '.join(f'(SELECT COUNT(*) FROM {name})' for name in tables)}")[
                    0
                ]
                self._counted = revision, pages - files, chunks, files
            _, pages, chunks, files = self._counted
            return Counts(pages, chunks, self._count_vectors(), files)

    def _count_vectors(self) -> int:
        """Return the number of vectors: every place up to the last one is either used or free."""
        if not self.is_current:
            return int(self.select("SELECT COUNT(*) FROM vectors")[0][0])
        count = "SELECT (SELECT COALESCE(MAX(place), 0) FROM vectors) - (SELECT COUNT(*) FROM free_places WHERE place <= {})"
        return int(self.select(count.format("(SELECT MAX(place) FROM vectors)"))[0][0])

    def blobs(self) -> dict[str, str]:
        """Return the blob id of each page, by path."""
        return {row["path"]: row["blob"] for row in self.select("SELECT path, blob FROM pages")}

    def excluded_blobs(self) -> dict[str, str]:
        """Return the blob id of each page that its front matter excludes, by path."""
        if not self.is_current:
            return {}
        return {row["path"]: row["blob"] for row in self.select("SELECT path, blob FROM excluded_pages")}

    def file_states(self) -> dict[str, Indexed]:
        """Return the indexed state of each attached file, by path. `excluded_blobs` has the files of excluded pages."""
        words_only = f"EXISTS (SELECT 1 FROM chunks WHERE chunks.path = files.path AND NOT {schema.IS_EMBEDDED})"
        rows = self.select(f"SELECT path, {words_only} AS words_only FROM files")
        return {row["path"]: Indexed.WORDS_ONLY if row["words_only"] else Indexed.FULLY for row in rows}

    def page_states(self, paths: Sequence[str]) -> dict[str, Indexed]:
        """Return the indexed state of pages, by path; unknown paths count as fully indexed."""
        excluded = self.excluded_blobs()
        statement = f"SELECT DISTINCT path FROM chunks WHERE path {IN_LIST} AND NOT {schema.IS_EMBEDDED}"
        words_only = {row["path"] for row in self.select(statement, paths)}
        return {
            path: Indexed.NOT if path in excluded else Indexed.WORDS_ONLY if path in words_only else Indexed.FULLY
            for path in paths
        }

    def updated(self, paths: Sequence[str]) -> dict[str, int]:
        """Return the Unix times at which pages last changed, by path; unknown times are missing."""
        rows = self.select(f"SELECT path, updated FROM pages WHERE updated IS NOT NULL AND path {IN_LIST}", paths)
        return {row["path"]: row["updated"] for row in rows}

    def last_changes(self, paths: Sequence[str]) -> dict[str, LastChange]:
        """Return the last changes of pages, by path; unknown changes are missing."""
        columns = "path, updated, last_commit"
        rows = self.select(f"SELECT {columns} FROM pages WHERE updated IS NOT NULL AND path {IN_LIST}", paths)
        return {path: LastChange(*change) for path, *change in rows}

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
        with self.write() as connection:
            for page, vectors in pages:
                self._delete(connection, page.path)
                schema.insert_page(connection, page, vectors)
                add_labels(connection, page.path, page.aliases)
                expect_vectors(connection, page.path)
            connection.execute(schema.NEXT_REVISION)

    def remove_pages(self, paths: Iterable[str]) -> None:
        """Remove pages and their chunks, in one transaction."""
        with self.write() as connection:
            for path in paths:
                self._delete(connection, path)
            connection.execute(schema.NEXT_REVISION)

    def resolve_wiki_links(self) -> None:
        """Update the targets of wikilinks in notes to the pages that the names refer to now."""
        with self.write() as connection:
            if resolve_wiki_links(connection):
                connection.execute(schema.NEXT_REVISION)

    def _delete(self, connection: sqlite3.Connection, path: str) -> None:
        forget_vectors(connection, path)
        delete_labels(connection, path)
        self._pages_to_merge += _MERGED_PER_CHUNK * schema.delete_page(connection, path)

    def invalidate_pages(self, paths: Sequence[str]) -> None:
        """Record that unchanged pages must be indexed again. The catalog equals no commit until then."""
        with self.write() as connection:
            invalid = ((schema.INVALID, path) for path in paths)
            connection.executemany("UPDATE pages SET blob = ? WHERE path = ?", invalid)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('changing', 'the same commit')")

    def sample_texts(self, count: int) -> list[str]:
        """Return the texts of up to `count` random embedded chunks."""
        sample = f"SELECT id FROM chunks WHERE {schema.IS_EMBEDDED} ORDER BY RANDOM() LIMIT ?"
        return [row["text"] for row in self.select(f"SELECT text FROM chunks WHERE id IN ({sample})", count)]

    def missing_vectors(self, ids: Iterable[str]) -> list[str]:
        """Return the ids without a vector, in order and without duplicates."""
        wanted = dict.fromkeys(ids)
        known = {row["id"] for row in self.select(f"SELECT id FROM vectors WHERE id {IN_LIST}", wanted)}
        return [vector for vector in wanted if vector not in known]

    def get_vectors(self, ids: Sequence[str]) -> dict[str, Matrix]:
        """Return the known vectors, by id."""
        rows = self.select(f"SELECT id, embedding FROM vectors WHERE id {IN_LIST}", ids)
        return {row["id"]: schema.decode_vectors([row["embedding"]])[0] for row in rows}

    def add_vectors(self, vectors: Sequence[StoredVector]) -> None:
        """Add vectors. They are candidates for garbage collection until a chunk refers to them."""
        with self.write() as connection:
            free = [row[0] for row in connection.execute("SELECT place FROM free_places LIMIT ?", (len(vectors),))]
            for vector in vectors:
                row = (free[-1] if free else None, vector.id, vector.embedding.tobytes())
                if connection.execute("INSERT INTO vectors VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", row).rowcount:
                    connection.execute("INSERT OR IGNORE INTO unstored VALUES (?)", (vector.id,))
                    if not fill_vector(connection, vector.id):
                        connection.execute("INSERT OR IGNORE INTO suspects VALUES (?)", (vector.id,))
                    if free:
                        connection.execute("DELETE FROM free_places WHERE place = ?", (free.pop(),))

    def collect_garbage(self) -> None:
        """Delete unreferenced vectors, and add them to the outbox for ChromaDB.

        Checks suspects only: the vectors of deleted chunks, and new vectors that no chunk refers to yet.
        """
        unused = "SELECT vector FROM suspects WHERE vector NOT IN (SELECT vector FROM chunks)"
        with self.write() as connection:
            connection.execute(f"INSERT OR IGNORE INTO dropped {unused}")
            connection.execute(f"INSERT INTO free_places SELECT place FROM vectors WHERE id IN ({unused})")
            connection.execute(f"DELETE FROM vectors WHERE id IN ({unused})")
            for table in ("unstored", "stale"):
                connection.execute(f"DELETE FROM {table} WHERE vector IN ({unused})")
            connection.execute("DELETE FROM suspects")
