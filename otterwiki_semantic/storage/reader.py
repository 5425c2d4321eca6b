"""What a search asks of the catalog: words, names, filters, vectors, and the passages it shows."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np

from otterwiki_semantic.content.pages import page_name
from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.core.records import StoredChunk
from otterwiki_semantic.embedding import Matrix, vector_id
from otterwiki_semantic.storage.exact import Candidate, ExactIndex, ExactIndexCache, Mask, revision_of, unit_vectors
from otterwiki_semantic.storage.filters import Scope
from otterwiki_semantic.storage.sqlite import SqliteFile, batches, placeholders

_TITLE_WEIGHT, _HEADINGS_WEIGHT, _BODY_WEIGHT = 5.0, 3.0, 1.0
"""What a word counts in the page's title, in the heading path and in the text. Half or twice as much ranks about the same."""
_MOST_NAMED = 50
_MOST_REMEMBERED = 20_000
_CHECKED_AT_A_TIME = 1_000
_FEW = 4_000
"""Up to so many passages of a scope the keyword index is told; of more, those are taken that pass among what it finds."""
_SPARE, _GROWTH = 1.3, 4
_MOST_SCOPES = 64
_MOST_LISTS = 4_000


@dataclass(frozen=True, slots=True)
class Allowed:
    """The passages of one state of the catalog that are in a scope: their mask and number, and while they are few their ids."""

    flat: ExactIndex
    mask: Mask
    size: int
    few: str | None
    """The ids as JSON."""

    @classmethod
    def of(cls, flat: ExactIndex, mask: Mask) -> Allowed:
        """Give the passages of a mask."""
        size = int(np.count_nonzero(mask))
        return cls(flat, mask, size, json.dumps(flat.ids(mask)) if size <= _FEW else None)

    def enough(self, count: int) -> int:
        """Give how many passages of all are likely to have `count` that are allowed; there has to be one at all."""
        return math.ceil(_SPARE * count * self.flat.size / self.size)

    def among(self, ids: Sequence[int]) -> list[int]:
        """Give those of the chunks that are allowed, in their order."""
        return [candidate.id for candidate in self.flat.candidates(ids, self.mask)]


class CatalogReader:
    """Reads a catalog for searches. Errors: those of `SqliteFile`."""

    def __init__(self, database: SqliteFile) -> None:
        self._database = database
        self._read = database.read
        self._frequencies: tuple[int, dict[str, int]] = -1, {}
        self._flat = ExactIndexCache(database)
        self._asking = threading.Lock()
        self._allowed: tuple[ExactIndex | None, dict[Scope, Allowed]] = None, {}

    # Words and names

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """Give for each of the stored words the number of chunks that have it.

        Counting walks through all places of a word; what was counted is remembered until the catalog's next revision.
        """
        with self._read() as connection:
            known = self._counted(revision_of(connection))
            missing = [word for word in dict.fromkeys(words) if word not in known]
            for part in batches(missing):
                statement = f"SELECT term, doc FROM keyword_counts WHERE term IN ({placeholders(part)})"
                known.update(dict.fromkeys(part, 0) | dict(connection.execute(statement, part).fetchall()))
        return {word: known[word] for word in words}

    def _counted(self, revision: int) -> dict[str, int]:
        """Give what was counted in a state of the catalog."""
        at, known = self._frequencies
        if at != revision or len(known) > _MOST_REMEMBERED:
            known = {}
            self._frequencies = revision, known
        return known

    def keyword_scores(self, expression: str, limit: int, allowed: Allowed | None = None) -> dict[int, float]:
        """Give up to `limit` chunks that match, best first, with their BM25 scores (Robertson et al., 1994).

        A word in more than half of all chunks scores next to nothing: FTS5 takes its weight for 0.000001.
        """
        if allowed is None or allowed.few is not None:
            return self._scored(expression, limit, allowed.few if allowed else None)
        wanted = allowed.enough(limit)
        while True:
            found = self._scored(expression, wanted)
            passing = allowed.among(list(found))
            if len(passing) >= limit or len(found) < wanted:
                return {chunk: found[chunk] for chunk in passing[:limit]}
            wanted *= _GROWTH

    def _scored(self, expression: str, limit: int, only: str | None = None) -> dict[int, float]:
        among = " AND +rowid IN (SELECT value FROM json_each(?))" if only is not None else ""
        statement = (
            f"SELECT rowid, -bm25(keywords, {_TITLE_WEIGHT}, {_HEADINGS_WEIGHT}, {_BODY_WEIGHT}) AS score FROM keywords"
            f" WHERE keywords MATCH ?{among} ORDER BY score DESC, rowid LIMIT ?"
        )
        values = (expression, limit) if only is None else (expression, only, limit)
        with self._read() as connection:
            return dict(connection.execute(statement, values).fetchall())

    def holders(self, expression: str, limit: int) -> list[int]:
        """Give up to `limit` chunks that match an expression, in no order."""
        with self._read() as connection:
            rows = connection.execute("SELECT rowid FROM keywords WHERE keywords MATCH ? LIMIT ?", (expression, limit))
            return [row[0] for row in rows]

    def named(self, key: str, scope: Scope) -> tuple[list[Candidate], list[Candidate]]:
        """Give the first chunks of the pages with this name, and those of the sections with this heading."""
        also = scope.also()
        statement = (
            "SELECT names.ordinal < 0 AS is_page, chunks.id, chunks.vector, chunks.path, chunks.ordinal"
            " FROM names JOIN chunks ON chunks.path = names.path AND chunks.ordinal = MAX(names.ordinal, 0)"
            f" JOIN pages ON pages.path = names.path WHERE names.key = ?{also.text} ORDER BY is_page DESC, names.path LIMIT ?"
        )
        with self._read() as connection:
            rows = connection.execute(statement, (key, *also.values, _MOST_NAMED)).fetchall()
        pages, sections = ([Candidate(*row[1:]) for row in rows if bool(row["is_page"]) is wanted] for wanted in (True, False))
        return pages, sections

    def stored_words(self, ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Give the stored words of chunks: those of the page's title and headings, and those of the text."""
        with self._read() as connection:
            return {
                row[0]: (f"{row[1]} {row[2]}", row[3])
                for part in batches(ids)
                for row in connection.execute(
                    f"SELECT rowid, title, headings, body FROM keywords WHERE rowid IN ({placeholders(part)})", part
                )
            }

    # Chunks and vectors

    def flat(self) -> ExactIndex:
        """Give all passages in memory."""
        return self._flat.at_this_state()

    def allowed(self, flat: ExactIndex, scope: Scope) -> Allowed | None:
        """Give the passages in a scope; None if it lets all pass. What was asked lately is remembered."""
        if not scope:
            return None
        with self._asking:
            at, known = self._allowed
            if at is not flat or len(known) > _MOST_SCOPES:
                known = {}
                self._allowed = flat, known
        if scope not in known:
            known[scope] = Allowed.of(flat, self._mask(flat, scope))
        return known[scope]

    def _mask(self, flat: ExactIndex, scope: Scope) -> Mask:
        with self._read() as connection:
            if scope.chunks.text:
                return flat.of_chunks(row[0] for row in connection.execute(scope.ids.text, scope.ids.values))
            statement = f"SELECT number FROM pages WHERE {scope.pages.text}"
            return flat.passing(row[0] for row in connection.execute(statement, scope.pages.values))

    def with_vectors(self, vectors: Iterable[str]) -> list[Candidate]:
        """Give the chunks that have one of these vectors."""
        found: list[Candidate] = []
        with self._read() as connection:
            for part in batches(list(vectors)):
                statement = f"SELECT id, vector, path, ordinal FROM chunks WHERE vector IN ({placeholders(part)})"
                found += [Candidate(*row) for row in connection.execute(statement, part)]
        return found

    def check(self) -> None:
        """Look at every vector and every text; `CatalogCorruptError` if one of them is not what was stored."""
        with self._read() as connection:
            vectors = connection.execute("SELECT embedding FROM vectors")
            while rows := vectors.fetchmany(_CHECKED_AT_A_TIME):
                unit_vectors([row["embedding"] for row in rows])
            for row in connection.execute("SELECT path, vector, text FROM chunks"):
                _check_text(*row)

    # What is shown

    def hits(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return chunks by id."""
        with self._read() as connection:
            return {
                row[0]: _stored_chunk(row)
                for part in batches(ids)
                for row in connection.execute(f"{_HITS} WHERE chunks.id IN ({placeholders(part)})", part)
            }

    def page_hits(self, path: str, first: int, last: int) -> list[StoredChunk]:
        """Give the chunks of a page from one place to another, both included, in order."""
        with self._read() as connection:
            rows = connection.execute(
                f"{_HITS} WHERE chunks.path = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal", (path, first, last)
            )
            return [_stored_chunk(row) for row in rows]

    def page_labels(self, paths: Sequence[str]) -> dict[str, tuple[str | None, tuple[str, ...]]]:
        """Give the category and the tags of pages."""
        with self._read() as connection:
            return {
                row["path"]: (row["category"], load_list(row["tags"]))
                for part in batches(paths)
                for row in connection.execute(
                    f"SELECT path, category, tags FROM pages WHERE path IN ({placeholders(part)})", part
                )
            }

    # Pages as a whole

    def page_chunks(self, path: str) -> tuple[str, list[int]]:
        """Give the title of a page that the catalog has, and the ids of its chunks, in order."""
        with self._read() as connection:
            title = connection.execute("SELECT title FROM pages WHERE path = ?", (path,)).fetchone()[0]
            rows = connection.execute("SELECT id FROM chunks WHERE path = ? ORDER BY ordinal", (path,))
            return title, [row[0] for row in rows]

    def page_vectors(self, paths: Sequence[str]) -> dict[str, tuple[list[int], Matrix]]:
        """Give for each page the ids of its chunks, in order, and their vectors (chunks x dimension)."""
        found: dict[str, list[sqlite3.Row]] = {}
        with self._read() as connection:
            for part in batches(paths):
                statement = (
                    "SELECT chunks.path, chunks.id, embedding FROM chunks JOIN vectors ON vectors.id = chunks.vector"
                    f" WHERE chunks.path IN ({placeholders(part)}) ORDER BY chunks.path, ordinal"
                )
                for row in connection.execute(statement, part):
                    found.setdefault(row["path"], []).append(row)
        return {
            path: ([row["id"] for row in rows], unit_vectors([row["embedding"] for row in rows]))
            for path, rows in found.items()
        }


_HITS = """
SELECT chunks.id, vector, path, title, category, tags, updated, text, prefix_length, overlap_length, section, section_path,
       headings, anchor, start_line, end_line, ordinal, chunk_count, word_count
FROM chunks JOIN pages USING (path)"""


def _check_text(path: str, vector: str, text: str) -> None:
    if vector_id(text) != vector:
        raise CatalogCorruptError(f"the catalog's text of {path!r} is not the one that was indexed")


def _stored_chunk(row: sqlite3.Row) -> StoredChunk:
    # A row is asked for a column by its place: by its name takes several times as long, and an answer has hundreds of them.
    (_, vector, path, title, category, tags, updated, text, prefix_length, overlap_length, *place) = row
    (section, section_path, headings, anchor, start_line, end_line, ordinal, chunk_count, word_count) = place
    _check_text(path, vector, text)
    return StoredChunk(
        name=page_name(path),
        path=path,
        title=title,
        category=category,
        tags=load_list(tags),
        text=text,
        prefix_length=prefix_length,
        overlap_length=overlap_length,
        section=section,
        section_path=load_list(section_path),
        headings=load_list(headings),
        anchor=anchor,
        start_line=start_line,
        end_line=end_line,
        chunk_index=ordinal,
        total_chunks=chunk_count,
        page_word_count=word_count,
        updated=None if updated is None else iso_time(updated),
    )


def iso_time(seconds: int) -> str | None:
    """Give a moment in ISO 8601; None for one that no calendar has."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):  # a commit's time can be any number
        return None


@lru_cache(_MOST_LISTS)
def load_list(value: str) -> tuple[str, ...]:
    """Give a stored list of texts; `CatalogCorruptError` if it is none."""
    try:
        return tuple(json.loads(value))
    except (TypeError, ValueError) as error:
        raise CatalogCorruptError(f"the catalog has a list that is none: {error}") from error
