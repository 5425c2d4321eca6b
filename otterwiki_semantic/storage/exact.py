"""A flat index: every passage's place and vector in memory, for exact search and for filters.

What a search asks of many passages at once is answered from here, in microseconds: which are the nearest, how near a few
of them are, which ones a filter lets pass. It follows the catalog by its revision. Rows are only ever added, in the order of
the chunks' ids; those of pages that have gone are masked, and left out for good once they are many.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.content.analysis.minhash import Signatures, read_signatures
from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage.sqlite import SqliteFile

Rows = npt.NDArray[np.intp]
"""Places of passages in the index, ascending."""
Mask = npt.NDArray[np.bool_]
"""One truth value for each row."""

_BLOCK = 4_096
_MANY_BLOCKS = 4
_HELPER = ThreadPoolExecutor(1, "comparing")
"""Compares one half of many vectors: how fast they come from memory is what limits a core."""
_MOST_DEAD, _DEAD_SHARE = 1_000, 0.1
_GATHERED_SHARE = 0.25
"""Up to this share of the rows is copied to be compared; of more, each is compared where it is."""
_ROUNDING = 0.01
_STATES = 2
"""States kept: a search that began before the last change still reads the one before it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may be a result: the ids of chunk and vector, its page, and its place there, from 0."""

    id: int
    vector: str
    path: str
    ordinal: int


class ExactIndex:
    """The passages of one state of the catalog, by rows. It does not change."""

    def __init__(
        self,
        revision: int,
        candidates: Sequence[Candidate],
        ids: npt.NDArray[np.int64],
        pages: npt.NDArray[np.int64],
        sketches: Signatures,
        blocks: Sequence[Matrix],
        embedded: Mask,
        live: Mask,
    ) -> None:
        self.revision = revision
        self._candidates = candidates
        self._ids = ids
        self._pages = pages
        self._sketches = sketches
        self._blocks = blocks
        self._embedded = embedded
        self.live = live
        """The rows of the passages that the catalog has."""
        self.size = int(np.count_nonzero(live))
        """The number of passages."""

    def __len__(self) -> int:
        return len(self._ids)

    def nearest(self, vector: Matrix, count: int, allowed: Mask | None = None) -> list[tuple[Candidate, float]]:
        """Give the `count` nearest passages of all, or of the allowed ones, with their cosines, by comparing every one."""
        mask = self._embedded & (self.live if allowed is None else allowed)
        passing = np.count_nonzero(mask)
        if not passing:
            return []
        if passing <= _GATHERED_SHARE * len(mask):
            rows = np.flatnonzero(mask)
            cosines = self._gather(rows) @ vector
        else:
            cosines = self._cosines(vector)
            cosines[~mask] = -np.inf
            rows = np.arange(len(mask))
        if count < len(rows):
            best = np.argpartition(cosines, -count)[-count:]
            rows, cosines = rows[best], cosines[best]
        found = np.isfinite(cosines)
        order = np.argsort(-cosines[found], kind="stable")
        rows, cosines = rows[found][order], cosines[found][order]
        return [(self._candidates[row], cosine) for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True)]

    def nearest_to_each(self, vectors: Matrix, count: int, allowed: Mask) -> list[list[tuple[Candidate, float]]]:
        """Give the `count` nearest allowed passages to each of some vectors with their cosines; all are compared, in parts."""
        mask = self._embedded & self.live & allowed
        best = np.empty((len(vectors), 0), dtype=np.float32)
        rows = np.empty((len(vectors), 0), dtype=np.intp)
        for number, block in enumerate(self._blocks):
            start = number * _BLOCK
            if not block.shape[1] or not mask[start : start + len(block)].any():
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
            [(self._candidates[row], cosine) for row, cosine in zip(*pair, strict=True) if np.isfinite(cosine)]
            for pair in zip(rows.tolist(), best.tolist(), strict=True)
        ]

    def cosines(self, vector: Matrix, ids: Sequence[int]) -> dict[int, float]:
        """Give how near these chunks are, by id; one without a vector is left out."""
        matrix, known = self.vectors(ids)
        if not known:
            return {}
        return dict(zip(known, (matrix @ vector).tolist(), strict=True))

    def vectors(self, ids: Sequence[int]) -> tuple[Matrix, list[int]]:
        """Give the vectors of chunks, one a row, and whose they are: of those that are known and have one, in this order."""
        rows, known = self._rows(ids)
        has_one = self._embedded[rows]
        return self._gather(rows[has_one]), [chunk for chunk, has in zip(known, has_one.tolist(), strict=True) if has]

    def sketches(self, ids: Sequence[int]) -> Signatures:
        """Give the sketches of chunks that are known, one a row."""
        return self._sketches[self._rows(ids)[0]]

    def candidates(self, ids: Sequence[int], allowed: Mask | None = None) -> list[Candidate]:
        """Give the candidates of chunks, in this order; what is unknown or not allowed is left out."""
        rows, _ = self._rows(ids)
        mask = self.live if allowed is None else allowed
        return [self._candidates[row] for row in rows[mask[rows]].tolist()]

    def passing(self, pages: Iterable[int]) -> Mask:
        """Give the mask of the passages of the pages with these numbers."""
        return self.live & np.isin(self._pages, np.fromiter(pages, np.int64))

    def of_chunks(self, ids: Iterable[int]) -> Mask:
        """Give the mask of the chunks with these ids."""
        rows, _ = self._rows(list(ids))
        mask = np.zeros(len(self), dtype=bool)
        mask[rows] = True
        return mask & self.live

    def ids(self, allowed: Mask) -> list[int]:
        """Give the ids of the allowed chunks."""
        found: list[int] = self._ids[allowed].tolist()
        return found

    def page_means(self) -> tuple[list[str], Matrix]:
        """Give the paths of the pages that have a vector, and the mean of each one's, of unit length."""
        rows = np.flatnonzero(self.live & self._embedded)
        is_first = np.diff(self._pages[rows], prepend=-1) != 0  # a page's rows follow each other
        page = np.cumsum(is_first) - 1
        means = np.zeros((np.count_nonzero(is_first), self.dimension), dtype=np.float32)
        for number, block in enumerate(self._blocks):
            first, end = np.searchsorted(rows, (number * _BLOCK, number * _BLOCK + len(block)))
            if first < end:
                of_block, starts = np.unique(page[first:end], return_index=True)
                means[of_block] += np.add.reduceat(block[rows[first:end] % _BLOCK], starts)
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        return [self._candidates[row].path for row in rows[is_first].tolist()], means / np.maximum(lengths, 1e-9)

    def without_dead(self) -> ExactIndex:
        """Give the same without the rows of passages that have gone, if they are many."""
        dead = len(self) - self.size
        if dead <= max(_MOST_DEAD, _DEAD_SHARE * len(self)):
            return self
        rows = np.flatnonzero(self.live)
        kept = [self._candidates[row] for row in rows.tolist()]
        blocks = [self._gather(rows[start : start + _BLOCK]) for start in range(0, len(rows), _BLOCK)]
        all_live = np.ones(len(rows), dtype=bool)
        columns = (self._ids[rows], self._pages[rows], self._sketches[rows])
        return ExactIndex(self.revision, kept, *columns, blocks, self._embedded[rows], all_live)

    def followed_by(self, revision: int, added: _Added, live_pages: npt.NDArray[np.int64]) -> ExactIndex:
        """Give the next state: with further passages at the end, and those of just these pages alive."""
        pages = np.concatenate((self._pages, np.array(added.pages, dtype=np.int64)))
        return ExactIndex(
            revision,
            [*self._candidates, *added.candidates],
            np.concatenate((self._ids, np.array([candidate.id for candidate in added.candidates], dtype=np.int64))),
            pages,
            np.concatenate((self._sketches, added.sketches)),
            list(_appended(self._blocks, added.matrix)),
            np.concatenate((self._embedded, added.embedded)),
            np.isin(pages, live_pages),
        )

    @property
    def last_id(self) -> int:
        """The id of the last chunk; 0 if there is none."""
        return int(self._ids[-1]) if len(self._ids) else 0

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 if there is none."""
        return max((block.shape[1] for block in self._blocks), default=0)

    def _rows(self, ids: Sequence[int]) -> tuple[Rows, list[int]]:
        """Give the rows of those chunks that are known, and which they are."""
        wanted = np.array(ids, dtype=np.int64)
        places = np.searchsorted(self._ids, wanted)
        known = places < len(self._ids)
        known[known] = self._ids[places[known]] == wanted[known]
        return places[known], wanted[known].tolist()

    def _gather(self, rows: Rows) -> Matrix:
        matrix = np.zeros((len(rows), self.dimension), dtype=np.float32)
        blocks = rows // _BLOCK
        for number in np.unique(blocks).tolist():
            if self._blocks[number].shape[1]:  # else none of its passages has a vector
                of_block = blocks == number
                matrix[of_block] = self._blocks[number][rows[of_block] % _BLOCK]
        return matrix

    def _cosines(self, vector: Matrix) -> npt.NDArray[np.float32]:
        cosines = np.zeros(len(self), dtype=np.float32)

        def compare(first: int, end: int) -> None:
            for number in range(first, end):
                block = self._blocks[number]
                if block.shape[1]:
                    np.matmul(block, vector, out=cosines[number * _BLOCK : number * _BLOCK + len(block)])

        half = len(self._blocks) // 2 if len(self._blocks) >= _MANY_BLOCKS else 0
        other = _HELPER.submit(compare, 0, half) if half else None
        compare(half, len(self._blocks))
        if other is not None:
            other.result()
        return cosines


@dataclass(frozen=True, slots=True)
class _Added:
    """Passages that come to the index: what they are, the numbers of their pages, their vectors, and whether they have one."""

    candidates: list[Candidate]
    pages: list[int]
    sketches: Signatures
    matrix: Matrix
    embedded: Mask


class ExactIndexCache:
    """Gives the `ExactIndex` of the state of the catalog that the calling thread reads. Errors: those of `SqliteFile`."""

    def __init__(self, database: SqliteFile) -> None:
        self._database = database
        self._loading = threading.Lock()
        self._states: tuple[ExactIndex, ...] = ()
        """The newest first."""

    def at_this_state(self) -> ExactIndex:
        """Give the passages of the state that is read: within `SqliteFile.snapshot`, of the one that all of it reads."""
        with self._database.read() as connection:
            revision = revision_of(connection)
            for flat in self._states:
                if flat.revision == revision:
                    return flat
            with self._loading:
                return self._state(connection, revision)

    def _state(self, connection: sqlite3.Connection, revision: int) -> ExactIndex:
        base = next((flat for flat in self._states if flat.revision <= revision), _EMPTY)
        if base.revision == revision:
            return base
        live = np.array([row[0] for row in connection.execute("SELECT number FROM pages")], dtype=np.int64)
        flat = base
        for added in _added(connection, base.last_id):
            flat = flat.followed_by(revision, added, live)
        flat = flat.without_dead()
        newest_first = sorted((flat, *self._states), key=lambda state: -state.revision)
        self._states = tuple(newest_first[:_STATES])
        return flat


_EMPTY = ExactIndex(
    -1, [], np.empty(0, np.int64), np.empty(0, np.int64), read_signatures(()), [], np.empty(0, np.bool_), np.empty(0, np.bool_)
)


def revision_of(connection: sqlite3.Connection) -> int:
    """Give the revision of the state that a connection reads; `CatalogCorruptError` if it tells none."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'revision'").fetchone()
    if row is None:
        raise CatalogCorruptError("the catalog does not tell its revision")
    return int(row[0])


def _added(connection: sqlite3.Connection, last_id: int) -> Iterator[_Added]:
    """Give the passages after a chunk, as many at a time as a block holds; once at least, though there be none."""
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
        candidates = [Candidate(row[0], row[1], paths.setdefault(row[2], row[2]), row[3]) for row in part]
        embedded = np.array([row[5] is not None for row in part], dtype=bool)
        vectors = unit_vectors([row[5] for row in part if row[5] is not None])
        matrix = np.zeros((len(part), vectors.shape[1]), dtype=np.float32)
        matrix[embedded] = vectors
        try:
            marks = read_signatures([row[6] for row in part])
        except ValueError as error:
            raise CatalogCorruptError(f"the catalog has sketches of odd sizes: {error}") from error
        yield _Added(candidates, [row[4] for row in part], marks, matrix, embedded)


def _appended(blocks: Sequence[Matrix], matrix: Matrix) -> Iterator[Matrix]:
    """Give the blocks with further rows; only the last block is not full."""
    if not len(matrix):
        yield from blocks
        return
    full, rest = list(blocks), matrix
    if full and len(full[-1]) < _BLOCK:
        rest = _joined(full.pop(), matrix)
    yield from full
    for start in range(0, len(rest), _BLOCK):
        yield rest[start : start + _BLOCK]


def _joined(matrix: Matrix, following: Matrix) -> Matrix:
    if not following.shape[1]:  # none of them has a vector
        following = np.zeros((len(following), matrix.shape[1]), dtype=np.float32)
    if not matrix.shape[1]:
        matrix = np.zeros((len(matrix), following.shape[1]), dtype=np.float32)
    try:
        return np.concatenate((matrix, following))
    except ValueError as error:
        raise CatalogCorruptError(f"the catalog has vectors of odd sizes: {error}") from error


def unit_vectors(embeddings: Sequence[bytes]) -> Matrix:
    """Give stored vectors, one a row; `CatalogCorruptError` if one is not what was stored: its length is not 1."""
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
