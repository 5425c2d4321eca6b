"""What a search asks of the catalog: words, names, filters, vectors, and the passages it shows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from otterwiki_semantic.database import Database, marks, parts
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.pages import page_name
from otterwiki_semantic.query import Query, all_phrases, any_phrase
from otterwiki_semantic.records import Filters, Hit
from otterwiki_semantic.terms import fold

_TITLE_WEIGHT, _HEADINGS_WEIGHT, _BODY_WEIGHT = 5.0, 3.0, 1.0
"""What a word counts in the page's title, in the heading path and in the text. Half or twice as much ranks about the same."""
_MOST_NAMED = 50
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Scope:
    """Which chunks may answer: an SQL condition on the table `chunks`; an empty one lets all pass."""

    condition: str = ""
    values: tuple[str | int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.condition)

    @property
    def also(self) -> str:
        """The condition as a further one of a statement."""
        return f" AND {self.condition}" if self else ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may be a result: the ids of chunk and vector, its page, and its place there, from 0."""

    id: int
    vector: str
    path: str
    ordinal: int


def scope_of(filters: Filters, query: Query) -> Scope:
    """Give the scope of a query: its page filters, the phrases that have to be there, and the words that must not."""
    pages: list[tuple[str, tuple[str | int, ...]]] = []
    if filters.category is not None:
        pages.append(("category_key = ?", (fold(filters.category),)))
    pages += [("path IN (SELECT path FROM page_tags WHERE tag_key = ?)", (fold(tag),)) for tag in filters.tags]
    if filters.path is not None:
        start = fold(filters.path.lstrip("/"))
        pages.append(("path_key >= ? AND path_key < ?", (start, start + _LAST_CHARACTER)))
    if filters.updated_since is not None:
        pages.append(("updated >= ?", (filters.updated_since,)))
    conditions = []
    if pages:
        condition = " AND ".join(condition for condition, _ in pages)
        values = tuple(value for _, values in pages for value in values)
        conditions.append((f"chunks.path IN (SELECT path FROM pages WHERE {condition})", values))
    matching = "(SELECT rowid FROM keywords WHERE keywords MATCH ?)"
    if query.phrases:
        conditions.append((f"chunks.id IN {matching}", (all_phrases(query.phrases),)))
    if query.without:
        conditions.append((f"chunks.id NOT IN {matching}", (any_phrase(query.without),)))
    return Scope(
        " AND ".join(condition for condition, _ in conditions), tuple(value for _, values in conditions for value in values)
    )


class Lookup:
    """Reads a catalog for searches. Errors: those of `Database`."""

    def __init__(self, database: Database) -> None:
        self._read = database.read

    # Words and names

    def frequencies(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Give the number of chunks, and for each of the stored words the number of chunks that have it."""
        with self._read() as connection:
            total = connection.execute("SELECT COUNT(*) FROM chunks").fetchone()[0]
            found = dict.fromkeys(words, 0)
            for part in parts(words):
                found.update(
                    connection.execute(f"SELECT term, doc FROM keyword_counts WHERE term IN ({marks(part)})", part).fetchall()
                )
        return total, found

    def keyword_scores(self, expression: str, scope: Scope, limit: int) -> dict[int, float]:
        """Give up to `limit` chunks that match, best first, with their BM25 scores (Robertson et al., 1994)."""
        statement = (
            f"SELECT rowid, -bm25(keywords, {_TITLE_WEIGHT}, {_HEADINGS_WEIGHT}, {_BODY_WEIGHT}) AS score FROM keywords"
            f" WHERE keywords MATCH ?{_scoped('rowid', scope)} ORDER BY score DESC, rowid LIMIT ?"
        )
        with self._read() as connection:
            return dict(connection.execute(statement, (expression, *scope.values, limit)).fetchall())

    def holders(self, expression: str, scope: Scope, limit: int) -> list[int]:
        """Give up to `limit` chunks that match an expression, in no order."""
        statement = f"SELECT rowid FROM keywords WHERE keywords MATCH ?{_scoped('rowid', scope)} LIMIT ?"
        with self._read() as connection:
            return [row[0] for row in connection.execute(statement, (expression, *scope.values, limit))]

    def named(self, key: str, scope: Scope) -> tuple[list[Candidate], list[Candidate]]:
        """Give the first chunks of the pages with this name, and those of the sections with this heading."""
        statement = (
            "SELECT names.ordinal < 0 AS is_page, chunks.id, chunks.vector, chunks.path, chunks.ordinal"
            " FROM names JOIN chunks ON chunks.path = names.path AND chunks.ordinal = MAX(names.ordinal, 0)"
            f" WHERE names.key = ?{scope.also} ORDER BY is_page DESC, names.path LIMIT ?"
        )
        with self._read() as connection:
            rows = connection.execute(statement, (key, *scope.values, _MOST_NAMED)).fetchall()
        pages, sections = ([Candidate(*row[1:]) for row in rows if bool(row["is_page"]) is wanted] for wanted in (True, False))
        return pages, sections

    def stored_words(self, ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Give the stored words of chunks: those of the page's title and headings, and those of the text."""
        with self._read() as connection:
            return {
                row[0]: (f"{row[1]} {row[2]}", row[3])
                for part in parts(ids)
                for row in connection.execute(
                    f"SELECT rowid, title, headings, body FROM keywords WHERE rowid IN ({marks(part)})", part
                )
            }

    # Chunks and vectors

    def size(self, scope: Scope) -> int:
        """Give the number of chunks in a scope."""
        with self._read() as connection:
            where = f" WHERE {scope.condition}" if scope else ""
            return int(connection.execute(f"SELECT COUNT(*) FROM chunks{where}", scope.values).fetchone()[0])

    def candidates(self, scope: Scope, *, ids: Iterable[int] = (), vectors: Iterable[str] = ()) -> list[Candidate]:
        """Give the chunks in a scope that have one of these ids or one of these vectors."""
        found: list[Candidate] = []
        with self._read() as connection:
            for column, values in (("id", list(ids)), ("vector", list(vectors))):
                for part in parts(values):
                    statement = f"SELECT id, vector, path, ordinal FROM chunks WHERE {column} IN ({marks(part)}){scope.also}"
                    found += [Candidate(*row) for row in connection.execute(statement, (*part, *scope.values))]
        return found

    def nearest(self, vector: Matrix, count: int, scope: Scope | None = None) -> dict[str, float]:
        """Give the ids of the `count` nearest vectors with their cosine distances, nearest first, by looking at every one."""
        chosen = f" WHERE id IN (SELECT vector FROM chunks WHERE {scope.condition})" if scope else ""
        with self._read() as connection:
            rows = connection.execute(f"SELECT id, embedding FROM vectors{chosen}", scope.values if scope else ()).fetchall()
        if not rows:
            return {}
        distances = 1 - _matrix(rows) @ vector
        return {rows[index]["id"]: float(distances[index]) for index in np.argsort(distances, kind="stable")[:count]}

    # What is shown

    def hits(self, ids: Sequence[int]) -> dict[int, Hit]:
        """Give chunks as they are shown, by id; what depends on the query is not set yet."""
        with self._read() as connection:
            return {
                row["id"]: _hit(row)
                for part in parts(ids)
                for row in connection.execute(f"{_HITS} WHERE chunks.id IN ({marks(part)})", part)
            }

    def page_hits(self, path: str, first: int, last: int) -> list[Hit]:
        """Give the chunks of a page from one place to another, both included, in order."""
        with self._read() as connection:
            rows = connection.execute(
                f"{_HITS} WHERE chunks.path = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal", (path, first, last)
            )
            return [_hit(row) for row in rows]

    def page_labels(self, paths: Sequence[str]) -> dict[str, tuple[str | None, tuple[str, ...]]]:
        """Give the category and the tags of pages."""
        with self._read() as connection:
            return {
                row["path"]: (row["category"], _load(row["tags"]))
                for part in parts(paths)
                for row in connection.execute(f"SELECT path, category, tags FROM pages WHERE path IN ({marks(part)})", part)
            }

    # Pages as a whole

    def page_vectors(self, paths: Sequence[str]) -> dict[str, tuple[list[int], Matrix]]:
        """Give for each page the ids of its chunks, in order, and their vectors (chunks x dimension)."""
        found: dict[str, list[sqlite3.Row]] = {}
        with self._read() as connection:
            for part in parts(paths):
                statement = (
                    "SELECT chunks.path, chunks.id, embedding FROM chunks JOIN vectors ON vectors.id = chunks.vector"
                    f" WHERE chunks.path IN ({marks(part)}) ORDER BY chunks.path, ordinal"
                )
                for row in connection.execute(statement, part):
                    found.setdefault(row["path"], []).append(row)
        return {path: ([row["id"] for row in rows], _matrix(rows)) for path, rows in found.items()}

    def path_like(self, path: str) -> str | None:
        """Give the path of the page with this path, whatever its case; the very same if there is one."""
        with self._read() as connection:
            rows = connection.execute("SELECT path FROM pages WHERE path_key = ?", (fold(path),)).fetchall()
        paths = [str(row["path"]) for row in rows]
        return path if path in paths else min(paths, default=None)

    def links_of(self, path: str) -> set[str]:
        """Give the keys of the pages that a page links to."""
        with self._read() as connection:
            return {row["target"] for row in connection.execute("SELECT target FROM links WHERE path = ?", (path,))}


_HITS = """
SELECT chunks.id, path, title, category, tags, updated, text, prefix_length, overlap_length, section, section_path, headings,
       anchor, start_line, end_line, ordinal, chunk_count, word_count
FROM chunks JOIN pages USING (path)"""


def _scoped(column: str, scope: Scope) -> str:
    return f" AND {column} IN (SELECT id FROM chunks WHERE {scope.condition})" if scope else ""


def _matrix(rows: Sequence[sqlite3.Row]) -> Matrix:
    return np.frombuffer(b"".join(row["embedding"] for row in rows), dtype=np.float32).reshape(len(rows), -1)


def _hit(row: sqlite3.Row) -> Hit:
    return Hit(
        name=page_name(row["path"]),
        path=row["path"],
        title=row["title"],
        category=row["category"],
        tags=_load(row["tags"]),
        snippet=row["text"],
        prefix_length=row["prefix_length"],
        overlap_length=row["overlap_length"],
        distance=None,
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
        updated=None if row["updated"] is None else _iso(row["updated"]),
    )


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _load(value: str) -> tuple[str, ...]:
    return tuple(json.loads(value))
