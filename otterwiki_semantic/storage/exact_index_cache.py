"""Caches the exact index of a catalog in memory, in the state that a search reads.

The cache follows the catalog's revision, and its log of vectors that were added after their chunks. A file next to the catalog,
a NumPy archive with checksums, saves the next start from reading every vector. The catalog stores the file's mark: one from
another catalog, or from another time, is ignored.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import uuid
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.storage import vector_rows
from otterwiki_semantic.storage.exact_index import Columns, ExactIndex
from otterwiki_semantic.storage.schema import decode_vectors, read_revision
from otterwiki_semantic.storage.sqlite import IN_LIST, SqliteFile
from otterwiki_semantic.storage.vector_rows import Block, VectorRows

_STATES = 2
"""Cached states: a search that began before the last change still reads the previous one."""
_FLOAT32_UP_TO = 20_000
"""Up to this many chunks float32 is as fast. int8 reads some vectors from the catalog again, in about 1 ms."""
_SNAPSHOT_SHARE = 0.05
"""The share of new rows from which another snapshot is written."""
_FILE, _MARK = "exact_index.bin", "exact_index_2"
"""The file, and the name of its mark in the catalog, which changes with the file's form."""

log = logging.getLogger(__name__)


class ExactIndexCache:
    """The exact indexes of the last states of a catalog. Raises the errors of `SqliteFile`."""

    def __init__(self, database: SqliteFile, vectors: str = "auto") -> None:
        """`vectors` is the format in memory: float32, int8, auto, or disk to leave vectors in the catalog."""
        self._database = database
        self._vectors = vectors
        self._is_in_memory = vectors != "disk"
        self._embedding = "embedding" if self._is_in_memory else "NULL"
        self._file = database.path.with_name(_FILE)
        self._loading = threading.Lock()
        self._states: tuple[ExactIndex, ...] = ()
        self._saved = 0, 0
        """The last chunk and the last filled vector in the snapshot."""

    def get(self) -> ExactIndex:
        """Return the index for the calling thread's state; see `SqliteFile.snapshot`."""
        with self._database.snapshot():
            return self._database.memoised("exact index", lambda _: self._current())

    def save(self) -> None:
        """Write a snapshot for the next start if much is new, except for float32 vectors. A full disk is only logged."""
        if self._vectors == "float32":
            return
        index = self.get()
        last_id, filled = self._saved
        new = np.count_nonzero(index.columns.ids > last_id) + index.filled - filled
        if _is_float32(index) or new <= _SNAPSHOT_SHARE * len(index):
            return
        try:
            mark = self._write(index)
        except OSError as error:
            with suppress(OSError):
                self._file.with_suffix(".new").unlink()
            log.warning("the next start takes longer, as the vectors in memory could not be saved: %s", error)
            return
        with self._database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_MARK, mark))
        self._saved = index.last_id, index.filled

    def _current(self) -> ExactIndex:
        revision = read_revision(self._database)
        filled: int = self._database.select("SELECT COALESCE(MAX(number), 0) FROM filled")[0][0]
        index = self._last_until(revision, filled)
        if index is None or index.revision != revision or index.filled < filled:
            with self._loading:
                index = self._load(revision, filled)
        return index

    def _last_until(self, revision: int, filled: int) -> ExactIndex | None:
        """Return the last state that is no newer than `revision`, except possibly for vectors."""
        states = [index for index in self._states if index.revision <= revision]
        return next((index for index in states if index.filled <= filled), states[-1] if states else None)

    def _load(self, revision: int, filled: int) -> ExactIndex:
        index = self._last_until(revision, filled) or self._restored() or self._empty(filled)
        if index.filled < filled:
            index = self._fill(index, filled)
        if index.revision != revision:
            index = self._extend(index, revision).compacted()
        if self._vectors == "auto" and _is_float32(index) and len(index) > _FLOAT32_UP_TO:
            index = self._extend(self._empty(filled, np.int8), revision)
        if index not in self._states:
            newest_first = sorted((index, *self._states), key=lambda state: (-state.revision, -state.filled))
            self._states = tuple(newest_first[:_STATES])
        return index

    def _empty(self, filled: int, dtype: npt.DTypeLike | None = None) -> ExactIndex:
        """Return an index without chunks, whose vectors are all read along with them."""
        if dtype is None:
            size = self._database.select("SELECT COUNT(*) FROM chunks")[0][0] if self._vectors == "auto" else 0
            dtype = np.int8 if self._vectors == "int8" or size > _FLOAT32_UP_TO else np.float32
        vectors = VectorRows(dtype) if self._is_in_memory else None
        return ExactIndex(-1, Columns.of([]), vectors, {}, partial(_read_vectors, self._database), filled)

    def _restored(self) -> ExactIndex | None:
        """Return the index from the file; None if there is none, or if it is damaged or of another catalog."""
        marks = self._database.select("SELECT value FROM meta WHERE name = ?", _MARK)
        if not marks or self._vectors == "float32":
            return None
        try:
            with self._file.open("rb") as stream, np.load(stream) as arrays:
                if arrays["mark"] != marks[0]["value"]:
                    return None
                revision, filled = arrays["state"].tolist()
                columns = Columns(*(arrays[name] for name in Columns._fields))
                numbers = range(sum(name.startswith("codes") for name in arrays) if self._is_in_memory else 0)
                blocks = [Block(arrays[f"codes {number}"], arrays[f"scales {number}"]) for number in numbers]
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError):
            return None
        if self._is_in_memory and not blocks:
            return None
        vectors = VectorRows(np.int8, blocks) if blocks else None
        self._saved = int(columns.ids[-1]), filled
        paths = self._paths_after(0, int(columns.pages[-1]))
        return ExactIndex(revision, columns, vectors, paths, partial(_read_vectors, self._database), filled)

    def _write(self, index: ExactIndex) -> str:
        mark, scratch = uuid.uuid4().hex, self._file.with_suffix(".new")
        arrays = index.columns._asdict()
        for number, block in enumerate(index.in_memory.blocks if index.in_memory else ()):
            arrays |= {f"codes {number}": block.codes, f"scales {number}": block.scales}
        with scratch.open("wb") as stream:
            np.savez(stream, mark=mark, state=[index.revision, index.filled], **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(self._file)
        return mark

    def _fill(self, index: ExactIndex, filled: int) -> ExactIndex:
        """Return an index with the vectors added after their chunks, or an empty one if the log lacks some of them."""
        oldest = self._database.select("SELECT COALESCE(MIN(number), 0) FROM filled")[0][0]
        if index.filled + 1 < oldest:
            return self._empty(filled)
        rows = self._database.select(
            f"SELECT chunks.id, place, {self._embedding} FROM filled JOIN vectors ON vectors.id = filled.vector"
            " JOIN chunks ON chunks.vector = filled.vector WHERE number > ?",
            index.filled,
        )
        ids, places, vectors = ([row[column] for row in rows] for column in range(3))
        return index.with_vectors(filled, ids, places, decode_vectors(vectors) if self._is_in_memory else None)

    def _extend(self, index: ExactIndex, revision: int) -> ExactIndex:
        """Return an index with the chunks added since, and without the chunks of deleted pages."""
        numbers = json.loads(self._database.select("SELECT json_group_array(number) FROM pages")[0][0])  # faster than rows
        added, vectors = [], index.in_memory
        with self._database.read() as connection:
            for columns, embeddings in _read_after(connection, index.last_id, self._embedding):
                added.append(columns)
                vectors = vectors and vectors.append(decode_vectors(embeddings), columns.places > 0)
        last_page = int(index.columns.pages[-1]) if len(index) else 0
        index.paths.update(self._paths_after(last_page, max(numbers, default=0)))
        return index.extended(revision, added, vectors, np.array(numbers, dtype=np.int32))

    def _paths_after(self, number: int, last: int) -> dict[int, str]:
        return self._database.mapping("SELECT number, path FROM pages WHERE number > ? AND number <= ?", number, last)


def _read_vectors(database: SqliteFile, places: Sequence[int]) -> Mapping[int, tuple[str, bytes]]:
    rows = database.select(f"SELECT rowid, id, embedding FROM vectors WHERE rowid {IN_LIST}", places)
    return {place: (vector, embedding) for place, vector, embedding in rows}


def _is_float32(index: ExactIndex) -> bool:
    return index.in_memory is not None and index.in_memory.is_exact


def _read_after(connection: sqlite3.Connection, last_id: int, embedding: str) -> Iterator[tuple[Columns, list[bytes]]]:
    """Read the chunks after `last_id` and their vectors, in blocks, at least one."""
    rows = connection.execute(
        f"SELECT {embedding}, chunks.id, page, ordinal, vectors.rowid, vector, sketch FROM chunks"
        " LEFT JOIN vectors ON vectors.id = chunks.vector WHERE chunks.id > ? ORDER BY chunks.id",
        (last_id,),
    )
    is_last = False
    while not is_last:
        part = rows.fetchmany(vector_rows.BLOCK)
        is_last = len(part) < vector_rows.BLOCK
        yield Columns.of([tuple(row)[1:] for row in part]), [row[0] for row in part if row[0] is not None]
