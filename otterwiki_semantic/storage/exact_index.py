"""An exact (brute-force) vector index: all chunks of the catalog in memory, for nearest neighbours and for filters.

It follows the catalog by its revision. Rows are only ever appended, in the order of the chunks' ids; those of deleted pages
are masked, and dropped once they are many.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.content.analysis.minhash import Signatures, read_signatures
from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.embedding import WORDS_ONLY, Matrix
from otterwiki_semantic.storage.schema import decode_vectors, read_revision
from otterwiki_semantic.storage.sqlite import SqliteFile

Rows = npt.NDArray[np.intp]
"""Row numbers, ascending."""
Mask = npt.NDArray[np.bool_]
"""One truth value for each row."""

_BLOCK = 4_096
_MANY_BLOCKS = 4
_HELPER = ThreadPoolExecutor(1, "comparing")
"""Compares one half of many vectors: the speed of a core is limited by how fast they come from memory."""
_MAX_DELETED, _MAX_DELETED_SHARE = 1_000, 0.1
_GATHERED_SHARE = 0.25
"""Up to this share of the rows is copied for a comparison; above it, all rows are compared in place."""
_STATES = 2
"""States kept: a search that began before the last change still reads the previous one."""


@dataclass(frozen=True, slots=True)
class ChunkRef:
    """A chunk that may be a result."""

    id: int
    vector: str
    """The id of its vector."""
    path: str
    """The path of its page."""
    ordinal: int
    """Its position in the page, from 0."""

    @property
    def is_words_only(self) -> bool:
        """Whether it is never embedded."""
        return self.vector.startswith(WORDS_ONLY)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What is known of the chunks of an exact index, one row each, in the order of their ids."""

    candidates: npt.NDArray[np.object_]
    """As `ChunkRef`."""
    ids: npt.NDArray[np.int64]
    pages: npt.NDArray[np.int64]
    """The numbers of their pages."""
    signatures: Signatures
    """Their MinHash signatures."""
    embedded: Mask
    """Whether a chunk has a vector."""
    live: Mask
    """Whether a chunk is still in the catalog."""

    @classmethod
    def of(cls, candidates: list[ChunkRef], pages: Sequence[int], signatures: Signatures, embedded: Mask) -> Columns:
        """Return the columns of chunks that are in the catalog."""
        ids = np.array([candidate.id for candidate in candidates], dtype=np.int64)
        live = np.ones(len(candidates), dtype=np.bool_)
        return cls(np.array(candidates, dtype=object), ids, np.array(pages, dtype=np.int64), signatures, embedded, live)

    def __len__(self) -> int:
        return len(self.candidates)

    def take(self, rows: Rows) -> Columns:
        """Return some of the rows."""
        return Columns(*(column[rows] for column in self._columns()))

    def append(self, other: Columns) -> Columns:
        """Return these rows, followed by others."""
        return Columns(*map(np.concatenate, zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> Iterator[npt.NDArray[Any]]:
        return (getattr(self, field.name) for field in fields(self))


class ExactIndex:
    """All chunks in one state of the catalog, with their vectors. Immutable."""

    def __init__(self, revision: int, columns: Columns, blocks: Sequence[Matrix], filled: int = 0) -> None:
        self.revision = revision
        self.filled = filled
        """The number of the last vector that was taken over after its chunk; see `storage.pending`."""
        self._columns = columns
        self._blocks = blocks
        """The vectors, one a row, zeros for chunks without one; all blocks but the last are full."""
        self.size = int(np.count_nonzero(columns.live))
        """The number of chunks in the catalog."""

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def live(self) -> Mask:
        """The mask of all chunks in the catalog."""
        return self._columns.live

    @property
    def embedded(self) -> Mask:
        """The mask of the chunks that have a vector."""
        return self._columns.embedded

    @property
    def last_id(self) -> int:
        """The id of the last chunk; 0 if there is none."""
        return int(self._columns.ids[-1]) if len(self) else 0

    @property
    def dimension(self) -> int:
        """The length of a vector; 0 if there is none."""
        return self._blocks[0].shape[1] if self._blocks else 0

    def nearest(self, vector: Matrix, count: int, mask: Mask | None = None) -> list[tuple[ChunkRef, float]]:
        """Return the `count` chunks nearest to a vector, with their cosine similarities, nearest first."""
        rows = np.flatnonzero(self._columns.embedded & (self.live if mask is None else mask))
        if not len(rows):
            return []
        is_gathered = len(rows) <= _GATHERED_SHARE * len(self)
        cosines = self._gather(rows) @ vector if is_gathered else self._compare(vector)[rows]
        if count < len(rows):
            best = np.argpartition(cosines, -count)[-count:]
            rows, cosines = rows[best], cosines[best]
        order = np.argsort(-cosines, kind="stable")
        return list(zip(self._columns.candidates[rows[order]].tolist(), cosines[order].tolist(), strict=True))

    def nearest_to_each(self, vectors: Matrix, count: int, mask: Mask) -> list[list[tuple[ChunkRef, float]]]:
        """Return what `nearest` returns for each of several vectors."""
        mask = self._columns.embedded & self.live & mask
        best = np.empty((len(vectors), 0), dtype=np.float32)
        rows = np.empty((len(vectors), 0), dtype=np.intp)
        for number, block in enumerate(self._blocks):
            start = number * _BLOCK
            if not mask[start : start + len(block)].any():
                continue
            cosines = vectors @ block.T
            cosines[:, ~mask[start : start + len(block)]] = -np.inf
            few = min(count, len(block))
            near = np.argpartition(cosines, -few, axis=1)[:, -few:]
            best = np.concatenate((best, np.take_along_axis(cosines, near, axis=1)), axis=1)
            rows = np.concatenate((rows, start + near), axis=1)
        found = np.argsort(-best, axis=1, kind="stable")[:, :count]
        best, rows = np.take_along_axis(best, found, axis=1), np.take_along_axis(rows, found, axis=1)
        return [
            [(candidate, cosine) for candidate, cosine in zip(*pair, strict=True) if np.isfinite(cosine)]
            for pair in zip(self._columns.candidates[rows].tolist(), best.tolist(), strict=True)
        ]

    def similarities(self, vector: Matrix, ids: Sequence[int]) -> dict[int, float]:
        """Return the cosine similarity of each chunk to a vector, by id, without those that have no vector."""
        matrix, known = self.vectors(ids)
        if not known:
            return {}
        return dict(zip(known, (matrix @ vector).tolist(), strict=True))

    def vectors(self, ids: Sequence[int]) -> tuple[Matrix, list[int]]:
        """Return the vectors of chunks, one a row, and the ids of those that are known and have one, in this order."""
        rows, known = self._find(ids)
        has_one = self._columns.embedded[rows]
        return self._gather(rows[has_one]), [chunk for chunk, has in zip(known, has_one.tolist(), strict=True) if has]

    def vectors_or_zeros(self, ids: Sequence[int]) -> Matrix:
        """Return the vectors of chunks, one a row; zeros for those that are unknown or have none."""
        vectors, known = self.vectors(ids)
        rows = {chunk: row for row, chunk in enumerate(ids)}
        matrix = np.zeros((len(ids), self.dimension), dtype=np.float32)
        matrix[[rows[chunk] for chunk in known]] = vectors
        return matrix

    def signatures(self, ids: Sequence[int]) -> Signatures:
        """Return the MinHash signatures of the known chunks, one a row."""
        return self._columns.signatures[self._find(ids)[0]]

    def candidates(self, ids: Sequence[int], mask: Mask | None = None) -> list[ChunkRef]:
        """Return the candidates of chunks, in this order, without those that are unknown or masked."""
        rows, _ = self._find(ids)
        mask = self.live if mask is None else mask
        found: list[ChunkRef] = self._columns.candidates[rows[mask[rows]]].tolist()
        return found

    def ids(self, mask: Mask) -> list[int]:
        """Return the ids of the chunks of a mask."""
        found: list[int] = self._columns.ids[mask].tolist()
        return found

    def mask_of_pages(self, numbers: Iterable[int]) -> Mask:
        """Return the mask of the chunks of the pages with these numbers."""
        return self.live & np.isin(self._columns.pages, np.fromiter(numbers, np.int64))

    def mask_of_chunks(self, ids: Iterable[int]) -> Mask:
        """Return the mask of the chunks with these ids."""
        rows, _ = self._find(list(ids))
        mask = np.zeros(len(self), dtype=bool)
        mask[rows] = True
        return mask & self.live

    def page_means(self) -> tuple[list[str], Matrix]:
        """Return the paths of the pages that have vectors, and for each the unit vector of their mean."""
        columns = self._columns
        rows = np.flatnonzero(columns.live & columns.embedded)
        is_first = np.diff(columns.pages[rows], prepend=-1) != 0  # the rows of a page are adjacent
        page = np.cumsum(is_first) - 1
        means = np.zeros((np.count_nonzero(is_first), self.dimension), dtype=np.float32)
        for number, block in enumerate(self._blocks):
            first, end = np.searchsorted(rows, (number * _BLOCK, number * _BLOCK + len(block)))
            if first < end:
                of_block, starts = np.unique(page[first:end], return_index=True)
                means[of_block] += np.add.reduceat(block[rows[first:end] % _BLOCK], starts)
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        return [candidate.path for candidate in columns.candidates[rows[is_first]]], means / np.maximum(lengths, 1e-9)

    def extended(self, revision: int, added: Columns, vectors: Matrix, live_pages: npt.NDArray[np.int64]) -> ExactIndex:
        """Return the next state: with more chunks at the end, of which only those of these pages are in the catalog."""
        columns = self._columns.append(added)
        columns = replace(columns, live=np.isin(columns.pages, live_pages))
        return ExactIndex(revision, columns, _append_rows(self._blocks, vectors), self.filled)

    def with_vectors(self, filled: int, ids: Sequence[int], vectors: Matrix) -> ExactIndex:
        """Return the next state: with the vectors of chunks that had none; unknown chunks are ignored.

        They are written in place, as no earlier state reads the rows of chunks without a vector.
        """
        wanted = np.array(ids, dtype=np.int64)
        rows = np.searchsorted(self._columns.ids, wanted)
        known = np.isin(wanted, self._columns.ids)
        rows, vectors = rows[known], vectors[known]
        blocks = _append_rows(self._blocks, np.empty((0, vectors.shape[1]), np.float32)) if len(rows) else self._blocks
        for number in np.unique(rows // _BLOCK).tolist():
            of_block = rows // _BLOCK == number
            blocks[number][rows[of_block] % _BLOCK] = vectors[of_block]
        embedded = self._columns.embedded.copy()
        embedded[rows] = True
        return ExactIndex(self.revision, replace(self._columns, embedded=embedded), blocks, filled)

    def compacted(self) -> ExactIndex:
        """Return the same state without the rows of deleted pages, if they are many."""
        deleted = len(self) - self.size
        if deleted <= max(_MAX_DELETED, _MAX_DELETED_SHARE * len(self)):
            return self
        rows = np.flatnonzero(self.live)
        blocks = [self._gather(rows[start : start + _BLOCK]) for start in range(0, len(rows), _BLOCK)]
        return ExactIndex(self.revision, self._columns.take(rows), blocks, self.filled)

    def _find(self, ids: Sequence[int]) -> tuple[Rows, list[int]]:
        """Return the rows of the known chunks, and their ids."""
        wanted = np.array(ids, dtype=np.int64)
        known_ids = self._columns.ids
        rows = np.searchsorted(known_ids, wanted)
        known = rows < len(known_ids)
        known[known] = known_ids[rows[known]] == wanted[known]
        return rows[known], wanted[known].tolist()

    def _gather(self, rows: Rows) -> Matrix:
        matrix = np.zeros((len(rows), self.dimension), dtype=np.float32)
        blocks = rows // _BLOCK
        for number in np.unique(blocks).tolist():
            of_block = blocks == number
            matrix[of_block] = self._blocks[number][rows[of_block] % _BLOCK]
        return matrix

    def _compare(self, vector: Matrix) -> npt.NDArray[np.float32]:
        """Return the cosine similarity of every row to a vector; 0 for a chunk without one."""
        cosines = np.zeros(len(self), dtype=np.float32)

        def compare(first: int, end: int) -> None:
            for number in range(first, end):
                block = self._blocks[number]
                np.matmul(block, vector, out=cosines[number * _BLOCK : number * _BLOCK + len(block)])

        half = len(self._blocks) // 2 if len(self._blocks) >= _MANY_BLOCKS else 0
        other = _HELPER.submit(compare, 0, half) if half else None
        compare(half, len(self._blocks))
        if other is not None:
            other.result()
        return cosines


class ExactIndexCache:
    """The exact indexes of the last states of a catalog. Errors: those of `SqliteFile`."""

    def __init__(self, database: SqliteFile, *, has_log: bool = True) -> None:
        """`has_log` says whether the catalog has the table `filled`."""
        self._database = database
        self._has_log = has_log
        self._loading = threading.Lock()
        self._states: tuple[ExactIndex, ...] = ()
        """The newest first."""

    def get(self) -> ExactIndex:
        """Return the index of the state that the calling thread reads; see `SqliteFile.snapshot`."""
        with self._database.snapshot():
            revision, filled = read_revision(self._database), self._last_filled()
            index = self._last_until(revision)
            if index.revision != revision or index.filled < filled:
                with self._loading:
                    index = self._load(revision, filled)
            return index

    def _last_filled(self) -> int:
        """Return the number of the last vector that was added after its chunk."""
        if not self._has_log:
            return 0
        return int(self._database.select("SELECT COALESCE(MAX(number), 0) FROM filled")[0][0])

    def _last_until(self, revision: int) -> ExactIndex:
        return next((index for index in self._states if index.revision <= revision), _EMPTY)

    def _fill(self, index: ExactIndex, filled: int) -> ExactIndex:
        """Return an index with the vectors that were added after their chunks; an empty one if the log lacks some of them."""
        oldest = self._database.select("SELECT COALESCE(MIN(number), 0) FROM filled")[0][0]
        if not len(index) or index.filled + 1 < oldest:
            return ExactIndex(-1, _EMPTY._columns, [], filled)  # all vectors are read in any case
        rows = self._database.select(
            "SELECT chunks.id, embedding FROM filled JOIN vectors ON vectors.id = filled.vector"
            " JOIN chunks ON chunks.vector = filled.vector WHERE number > ?",
            index.filled,
        )
        return index.with_vectors(filled, [row[0] for row in rows], decode_vectors([row[1] for row in rows]))

    def _load(self, revision: int, filled: int) -> ExactIndex:
        index = self._last_until(revision)
        if index.filled < filled:
            index = self._fill(index, filled)
        if index.revision != revision:
            live_pages = np.array([row["number"] for row in self._database.select("SELECT number FROM pages")], dtype=np.int64)
            with self._database.read() as connection:
                for columns, vectors in _read_after(connection, index.last_id):
                    index = index.extended(revision, columns, vectors, live_pages)
            index = index.compacted()
        if index not in self._states:
            newest_first = sorted((index, *self._states), key=lambda state: (-state.revision, -state.filled))
            self._states = tuple(newest_first[:_STATES])
        return index


_EMPTY = ExactIndex(-1, Columns.of([], [], read_signatures(()), np.empty(0, np.bool_)), [])


def _read_after(connection: sqlite3.Connection, last_id: int) -> Iterator[tuple[Columns, Matrix]]:
    """Read the chunks after the one with this id, and their vectors, in blocks; yields at least once."""
    rows = connection.execute(
        "SELECT chunks.id, vector, path, ordinal, page, embedding, sketch FROM chunks"
        " LEFT JOIN vectors ON vectors.id = chunks.vector WHERE chunks.id > ? ORDER BY chunks.id",
        (last_id,),
    )
    paths: dict[str, str] = {}
    is_last = False
    while not is_last:
        part = rows.fetchmany(_BLOCK)
        is_last = len(part) < _BLOCK
        candidates = [ChunkRef(row[0], row[1], paths.setdefault(row[2], row[2]), row[3]) for row in part]
        embedded = np.array([row[5] is not None for row in part], dtype=bool)
        vectors = decode_vectors([row[5] for row in part if row[5] is not None])
        matrix = np.zeros((len(part), vectors.shape[1]), dtype=np.float32)
        matrix[embedded] = vectors
        try:
            signatures = read_signatures([row[6] for row in part])
        except ValueError as error:
            raise CatalogCorruptError(f"the catalog has sketches of odd sizes: {error}") from error
        yield Columns.of(candidates, [row[4] for row in part], signatures, embedded), matrix


def _append_rows(blocks: Sequence[Matrix], rows: Matrix) -> list[Matrix]:
    """Return the blocks with more rows; blocks from before the first vector get its dimension."""
    dimension = max(block.shape[1] for block in (*blocks, rows))
    widened = [block if block.shape[1] else np.zeros((len(block), dimension), dtype=np.float32) for block in (*blocks, rows)]
    full = [block for block in widened[:-1] if len(block) == _BLOCK]
    try:
        rest = np.concatenate(widened[len(full) :])
    except ValueError as error:
        raise CatalogCorruptError(f"the catalog has vectors of odd sizes: {error}") from error
    return [*full, *(rest[start : start + _BLOCK] for start in range(0, len(rest), _BLOCK))]
