"""An exact (brute-force) vector index: all chunks of the catalog in memory, for nearest neighbours and for filters.

Rows are appended in the order of the chunk ids. The rows of deleted pages are masked, and dropped once there are many.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.content.analysis.minhash import Signatures, read_signatures
from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.embedding import WORDS_ONLY, Matrix, is_words_only
from otterwiki_semantic.storage.vector_rows import Floats, ReadVectors, Rows, StoredRows, VectorRows, largest

Mask = npt.NDArray[np.bool_]

_MAX_DELETED, _MAX_DELETED_SHARE = 1_000, 0.1
_ID_BYTES = 16
_MEAN_DIGITS = 5
"""Digits of mean similarities; the digits after them depend on the positions of vectors."""
_RESCORED = 1.25
"""Candidates by int8 to compare again per requested result. A factor of 1.1 missed none of 100."""


class ChunkRef(NamedTuple):
    """A chunk that may be a result."""

    id: int
    vector: str
    path: str
    ordinal: int


class PageRows(NamedTuple):
    """The pages of some chunks, with the number of rows of each."""

    of_chunk: npt.NDArray[np.intp]
    """The index of each chunk's page."""
    rows: Rows
    """The rows of all chunks of the pages, one page after the other."""
    counts: npt.NDArray[np.intp]

    @property
    def starts(self) -> npt.NDArray[np.intp]:
        """The index in `rows` at which each page begins."""
        return np.cumsum(self.counts) - self.counts


class Columns(NamedTuple):
    """The columns of an exact index: rows of chunks in the order of their ids, `live` while they are in the catalog."""

    ids: npt.NDArray[np.int64]
    pages: npt.NDArray[np.int32]
    ordinals: npt.NDArray[np.int32]
    places: npt.NDArray[np.int32]
    """The places of the vectors in the catalog; 0 for a chunk without a vector."""
    vectors: npt.NDArray[np.uint8]
    words_only: Mask
    signatures: Signatures
    live: Mask

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, int | None, str, bytes]]) -> Columns:
        """Return the columns of chunks, from (id, page, ordinal, place, vector, signature). Errors: `CatalogCorruptError`."""
        ids, pages, ordinals, places, vectors, signatures = zip(*rows, strict=True) if rows else ((),) * 6
        try:
            vector_ids = b"".join(bytes.fromhex(vector.removeprefix(WORDS_ONLY)) for vector in vectors)
            return cls(
                np.array(ids, dtype=np.int64),
                np.array(pages, dtype=np.int32),
                np.array(ordinals, dtype=np.int32),
                np.array([place or 0 for place in places], dtype=np.int32),
                np.frombuffer(vector_ids, dtype=np.uint8).reshape(len(rows), _ID_BYTES),
                np.array([is_words_only(vector) for vector in vectors], dtype=np.bool_),
                read_signatures(signatures),
                np.ones(len(rows), dtype=np.bool_),
            )
        except ValueError as error:
            raise CatalogCorruptError(f"the catalog has vector ids or sketches of odd sizes: {error}") from error

    def take(self, rows: Rows) -> Columns:
        """Return the given rows."""
        return Columns._make(column[rows] for column in self)

    def append(self, *others: Columns) -> Columns:
        """Return these rows followed by the rows of `others`."""
        return Columns._make(map(np.concatenate, zip(self, *others, strict=True)))


class ExactIndex:
    """All chunks in one state of the catalog, with their vectors. Immutable except for the masking of rows."""

    def __init__(
        self,
        revision: int,
        columns: Columns,
        vectors: VectorRows | None,
        paths: dict[int, str],
        read: ReadVectors,
        filled: int = 0,
    ) -> None:
        """`vectors` has a row per chunk, zeros for one without a vector; None leaves vectors in the catalog.

        `paths` are the pages' paths by number; other states share and extend the dictionary.
        """
        self.revision = revision
        self.filled = filled
        """The number of the last vector added after its chunk, in the table `filled`."""
        self.columns = columns
        self.live = columns.live
        self.last_id = int(columns.ids[-1]) if len(columns.ids) else 0
        self._stored = StoredRows(columns.vectors, columns.places, read)
        self.in_memory = vectors
        self._rows = self._stored if vectors is None else vectors
        self.paths = paths
        self._last = threading.local()
        """This thread's last comparison with all chunks: the vector, the rows and their similarities."""
        self._read = read
        self.size = int(np.count_nonzero(columns.live))
        self.embedded: Mask = columns.places > 0

    def __len__(self) -> int:
        return len(self.columns.ids)

    def nearest(self, vector: Matrix, count: int, mask: Mask | None = None) -> list[tuple[ChunkRef, float]]:
        """Return the `count` chunks nearest to a vector, with their cosine similarities, nearest first."""
        rows = np.flatnonzero(self.embedded & (self.live if mask is None else mask))
        if not len(rows):
            return []
        cosines = self._rows.compare(vector, rows)
        if mask is None:
            self._last.comparison = vector, rows, cosines
        if not self._rows.is_exact:
            near = np.sort(largest(cosines, int(_RESCORED * count) + 1))
            rows, cosines = rows[near], self._compare_exactly(vector, rows[near], cosines[near])
        best = largest(cosines, count)
        rows, cosines = rows[best], cosines[best]
        order = np.argsort(-cosines, kind="stable")
        return list(zip(self._chunks(rows[order]), cosines[order].tolist(), strict=True))

    def similarities(self, vector: Matrix, ids: Sequence[int]) -> dict[int, float]:
        """Return each chunk's cosine similarity to a vector, by id, without chunks that have no vector."""
        rows = np.unique(self.find(ids))
        rows = rows[self.embedded[rows]]
        cosines = self._cosines(vector, rows) if self._rows.is_exact else self._compare_exactly(vector, rows)
        return dict(zip(self.columns.ids[rows].tolist(), cosines.tolist(), strict=True))

    def find(self, ids: Sequence[int]) -> Rows:
        """Return the rows of the known chunks, in this order."""
        wanted = np.array(ids, dtype=np.int64)
        known_ids = self.columns.ids
        rows = np.searchsorted(known_ids, wanted)
        known = rows < len(known_ids)
        known[known] = known_ids[rows[known]] == wanted[known]
        return rows[known]

    def pages_of(self, rows: Rows) -> PageRows:
        """Return the pages of some rows, with all rows of each page."""
        numbers, page = np.unique(self.columns.pages[rows], return_inverse=True)
        # The rows of a page are adjacent, and a changed page gets the next number, so pages are in order.
        starts, ends = (np.searchsorted(self.columns.pages, numbers, side) for side in ("left", "right"))
        counts = ends - starts
        skipped = np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return PageRows(page, skipped + np.arange(len(skipped)), counts)

    def page_similarities(self, vector: Matrix, pages: PageRows) -> Floats | None:
        """Return each page's mean cosine similarity to a vector, NaN without vectors; None if vectors are not in memory."""
        if self.in_memory is None:
            return None
        embedded = self.embedded[pages.rows]
        cosines = np.zeros(len(embedded), dtype=np.float32)
        cosines[embedded] = self._cosines(vector, pages.rows[embedded])
        counts = np.add.reduceat(embedded, pages.starts, dtype=np.float32)
        means = np.add.reduceat(cosines, pages.starts) / np.where(counts, counts, np.nan)
        rounded: Floats = means.round(_MEAN_DIGITS).astype(np.float32)
        return rounded

    def vectors(self, ids: Sequence[int]) -> tuple[Matrix, list[int]]:
        """Return the vectors of chunks as rows, and the ids of the chunks that are known and have one, in this order."""
        rows = self.find(ids)
        rows = rows[self.embedded[rows]]
        return self._rows.vectors(rows), self.columns.ids[rows].tolist()

    def vectors_or_zeros(self, ids: Sequence[int]) -> Matrix:
        """Return the vectors of chunks as rows; zeros for chunks that are unknown or have none."""
        vectors, known = self.vectors(ids)
        rows = {chunk: row for row, chunk in enumerate(ids)}
        matrix = np.zeros((len(ids), self._rows.dimension), dtype=np.float32)
        matrix[[rows[chunk] for chunk in known]] = vectors
        return matrix

    def signatures(self, ids: Sequence[int]) -> Signatures:
        """Return the MinHash signatures of the known chunks, as rows."""
        return self.columns.signatures[self.find(ids)]

    def candidates(self, ids: Sequence[int], mask: Mask | None = None) -> list[ChunkRef]:
        """Return the candidates of chunks, in this order, without unknown and masked chunks."""
        rows = self.find(ids)
        mask = self.live if mask is None else mask
        return self._chunks(rows[mask[rows]])

    def mask_of_pages(self, numbers: Iterable[int]) -> Mask:
        """Return the mask of the chunks on the pages with these numbers."""
        return self.live & np.isin(self.columns.pages, np.fromiter(numbers, np.int32))

    def mask_of_chunks(self, ids: Iterable[int]) -> Mask:
        """Return the mask of the chunks with these ids."""
        mask = np.zeros(len(self), dtype=bool)
        mask[self.find(list(ids))] = True
        return mask & self.live

    def page_means(self) -> tuple[list[str], Matrix]:
        """Return the paths of the pages with vectors, and the normalised mean vector of each page."""
        rows = np.flatnonzero(self.live & self.embedded)
        pages = self.columns.pages[rows]
        is_first = np.diff(pages, prepend=-1) != 0  # the rows of a page are adjacent
        page = np.cumsum(is_first) - 1
        means = np.zeros((np.count_nonzero(is_first), self._rows.dimension), dtype=np.float32)
        for places, block in self._rows.each_block(rows):
            of_block, starts = np.unique(page[places], return_index=True)
            means[of_block] += np.add.reduceat(block, starts)
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        return [self.paths[number] for number in pages[is_first].tolist()], means / np.maximum(lengths, 1e-9)

    def extended(
        self, revision: int, added: Sequence[Columns], vectors: VectorRows | None, live_pages: npt.NDArray[np.int32]
    ) -> ExactIndex:
        """Return the next state: more chunks, with `vectors` for all, and only those of `live_pages` in the catalog."""
        columns = self.columns.append(*added)
        columns = columns._replace(live=np.isin(columns.pages, live_pages))
        return ExactIndex(revision, columns, vectors, self.paths, self._read, self.filled)

    def with_vectors(self, filled: int, ids: Sequence[int], places: Sequence[int], vectors: Matrix | None) -> ExactIndex:
        """Return the next state, with vectors and places for chunks that had none; unknown chunks are ignored.

        Vectors in memory are written in place, because no earlier state reads the rows of chunks without a vector.
        """
        wanted = np.array(ids, dtype=np.int64)
        known = np.isin(wanted, self.columns.ids)
        rows = np.searchsorted(self.columns.ids, wanted[known])
        order = np.argsort(rows)
        now = self.columns.places.copy()
        now[rows] = np.array(places, dtype=np.int32)[known]
        in_memory = self.in_memory
        if in_memory is not None and vectors is not None:
            in_memory = in_memory.fill(rows[order], vectors[known][order])
        return ExactIndex(self.revision, self.columns._replace(places=now), in_memory, self.paths, self._read, filled)

    def compacted(self) -> ExactIndex:
        """Return the same state without the rows of deleted pages, if there are many."""
        deleted = len(self) - self.size
        if deleted <= max(_MAX_DELETED, _MAX_DELETED_SHARE * len(self)):
            return self
        rows = np.flatnonzero(self.live)
        columns = self.columns.take(rows)
        paths = {number: self.paths[number] for number in np.unique(columns.pages).tolist()}
        return ExactIndex(self.revision, columns, self.in_memory and self.in_memory.take(rows), paths, self._read, self.filled)

    def _chunks(self, rows: Rows) -> list[ChunkRef]:
        columns = self.columns
        pages = (self.paths[number] for number in columns.pages[rows].tolist())
        vectors = columns.vectors[rows]
        digits, width = vectors.tobytes().hex(), 2 * vectors.shape[1]
        names = (digits[start : start + width] for start in range(0, len(digits), width))
        words_only = columns.words_only[rows].tolist()
        if any(words_only):
            names = (WORDS_ONLY * each + name for each, name in zip(words_only, names, strict=True))
        return list(map(ChunkRef, columns.ids[rows].tolist(), names, pages, columns.ordinals[rows].tolist()))

    def _cosines(self, vector: Matrix, rows: Rows) -> Floats:
        """Return the cosine similarity of embedded rows; known of live ones if this thread has just compared all."""
        compared: tuple[Matrix, Rows, Floats] | None = getattr(self._last, "comparison", None)
        if compared is None or compared[0] is not vector or not self.live[rows].all():
            return self._rows.compare(vector, rows)
        _, known, cosines = compared
        return cosines[np.searchsorted(known, rows)]

    def _compare_exactly(self, vector: Matrix, rows: Rows, approximate: Floats | None = None) -> Floats:
        """Compare with the catalog's vectors; for vectors that it no longer has, return the `approximate` similarity."""
        found, vectors = self._stored.find(rows)
        if len(found) < len(rows) and approximate is None:
            approximate = self._rows.compare(vector, rows)
        cosines = np.empty(len(rows), dtype=np.float32) if approximate is None else approximate.copy()
        if found:
            cosines[found] = vectors @ vector
        return cosines
