"""Vectors as rows: in memory as float32, or as scaled int8, which is smaller and faster; or in the catalog.

Rows in memory are stored in blocks, which the states of an index can share. Rows in the catalog are read each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import simsimd

from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage.schema import decode_vectors

Rows = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float32]

BLOCK = 4_096
"""Rows of float32 in a block, and vectors that are read at once. NumPy requests huge pages for arrays of at least 4 MB."""
_HELPER = ThreadPoolExecutor(1, "comparing")
"""Compares some of many blocks, while it has nothing else to do."""
_GATHERED_SHARE = 0.25
"""Up to this share of a block's rows is copied for a comparison; above it, the whole block is compared in place."""
_LARGEST = 127
_GROUP = 64
"""Values per group; only the largest of a group is examined first."""


ReadVectors = Callable[[Sequence[int]], Mapping[int, tuple[str, bytes]]]
"""Returns ids and stored vectors by their places in the catalog."""


class Block(NamedTuple):
    """Vectors as codes times a scale each; zeros represent a missing vector."""

    codes: npt.NDArray[Any]
    """Integers up to 127 as int8, or the vectors themselves as float32: rows x dimension."""
    scales: Floats

    @classmethod
    def of(cls, vectors: Matrix, dtype: npt.DTypeLike) -> Block:
        """Encode vectors in a format."""
        if np.dtype(dtype) == np.float32:
            return cls(vectors, np.ones(len(vectors), dtype=np.float32))
        scales = (np.abs(vectors).max(axis=1, initial=0.0) / _LARGEST).astype(np.float32)
        codes = np.rint(vectors / np.maximum(scales, np.finfo(np.float32).tiny)[:, np.newaxis])
        return cls(codes.astype(np.int8), scales)

    @classmethod
    def zeros(cls, count: int, dimension: int, dtype: npt.DTypeLike) -> Block:
        """Return a block of missing vectors."""
        return cls(np.zeros((count, dimension), dtype=dtype), np.zeros(count, dtype=np.float32))

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self.codes.shape[1])

    def take(self, rows: Any) -> Block:
        """Return some of the vectors, by number, slice or mask."""
        return Block(self.codes[rows], self.scales[rows])

    def vectors(self) -> Matrix:
        """Return the vectors, as close to the originals as the format allows."""
        if self.codes.dtype == np.float32:
            return self.codes
        return self.codes.astype(np.float32) * self.scales[:, np.newaxis]

    def compare(self, query: Block) -> Floats:
        """Return the cosine similarity of each vector to a `query` in the same format."""
        if self.codes.dtype == np.float32:
            cosines: Floats = self.codes @ query.codes[0]
            return cosines
        products = np.asarray(simsimd.cdist(self.codes, query.codes, metric="dot", out_dtype="float32"))[:, 0]
        similarities: Floats = products * (self.scales * query.scales[0])
        return similarities


class VectorRows:
    """The vectors of an index, in blocks shared with other states of it. All but the last block are full."""

    def __init__(self, dtype: npt.DTypeLike, blocks: Sequence[Block] = ()) -> None:
        self.dtype = np.dtype(dtype)
        self.blocks = blocks
        self.rows_per_block = BLOCK * np.dtype(np.float32).itemsize // self.dtype.itemsize

    @property
    def dimension(self) -> int:
        """The length of a vector; 0 while there are no vectors."""
        return self.blocks[0].dimension if self.blocks else 0

    @property
    def is_exact(self) -> bool:
        """Whether the format preserves vectors exactly."""
        return self.dtype == np.float32

    def append(self, vectors: Matrix, embedded: npt.NDArray[np.bool_]) -> VectorRows:
        """Return these rows plus one row per boolean: the next vector where it is true. Errors: `CatalogCorruptError`."""
        dimension = vectors.shape[1] if len(vectors) else self.dimension
        more = Block.zeros(len(embedded), dimension, self.dtype)
        more.codes[embedded], more.scales[embedded] = Block.of(vectors, self.dtype) if len(vectors) else (0, 0)
        blocks = self._widened(dimension)
        full = [block for block in blocks if len(block.codes) == self.rows_per_block]
        rest = Block(*map(np.concatenate, zip(*blocks[len(full) :], more, strict=True)))
        starts = range(0, len(rest.codes), self.rows_per_block)
        return VectorRows(self.dtype, [*full, *(rest.take(slice(start, start + self.rows_per_block)) for start in starts)])

    def fill(self, rows: Rows, vectors: Matrix) -> VectorRows:
        """Return these rows with vectors for some that had none, written in place: no other state reads them."""
        if not len(rows):
            return self
        blocks, block = self._widened(vectors.shape[1]), Block.of(vectors, self.dtype)
        for number, places, inner in self._by_block(rows):
            blocks[number].codes[inner], blocks[number].scales[inner] = block.take(places)
        return VectorRows(self.dtype, blocks)

    def take(self, rows: Rows) -> VectorRows:
        """Return the given rows."""
        starts = range(0, len(rows), self.rows_per_block)
        return VectorRows(self.dtype, [self._gather(rows[start : start + self.rows_per_block]) for start in starts])

    def vectors(self, rows: npt.NDArray[np.intp]) -> Matrix:
        """Return the vectors of rows, in this order."""
        return self._gather(rows).vectors()

    def compare(self, vector: Matrix, rows: Rows) -> Floats:
        """Return the cosine similarity of each row to a vector."""
        query, cosines = Block.of(vector[np.newaxis], self.dtype), np.empty(len(rows), dtype=np.float32)
        parts = deque(self._by_block(rows))

        def compare() -> None:
            while True:
                try:
                    number, places, inner = parts.popleft()
                except IndexError:
                    return
                block = self.blocks[number]
                if len(inner) <= _GATHERED_SHARE * len(block.codes):
                    cosines[places] = block.take(inner).compare(query)
                else:
                    compared = block.compare(query)
                    cosines[places] = compared if len(inner) == len(compared) else compared[inner]

        other = _HELPER.submit(compare) if len(rows) > self.rows_per_block else None
        compare()
        if other is not None and not other.cancel():
            other.result()
        return cosines

    def each_block(self, rows: Rows) -> Iterator[tuple[slice, Matrix]]:
        """Yield the vectors of the rows in each block, and their positions among the rows."""
        for number, places, inner in self._by_block(rows):
            block = self.blocks[number]
            yield places, (block if len(inner) == len(block.codes) else block.take(inner)).vectors()

    def _gather(self, rows: npt.NDArray[np.intp]) -> Block:
        gathered = Block.zeros(len(rows), self.dimension, self.dtype)
        numbers = rows // self.rows_per_block
        for number in np.unique(numbers).tolist():
            of_block = numbers == number
            taken = self.blocks[number].take(rows[of_block] % self.rows_per_block)
            gathered.codes[of_block], gathered.scales[of_block] = taken
        return gathered

    def _by_block(self, rows: Rows) -> Iterator[tuple[int, slice, Rows]]:
        """Yield the number of each block with some of these rows, their positions among them and their numbers in it."""
        if not len(rows):
            return
        size = self.rows_per_block
        numbers = range(int(rows[0]) // size, int(rows[-1]) // size + 1)
        ends = np.searchsorted(rows, [size * number for number in (*numbers, numbers.stop)]).tolist()
        for number, start, end in zip(numbers, ends, ends[1:], strict=False):
            if start < end:
                yield number, slice(start, end), rows[start:end] - size * number

    def _widened(self, dimension: int) -> list[Block]:
        if self.dimension not in {0, dimension}:
            raise CatalogCorruptError(f"the catalog has vectors of odd sizes: {self.dimension} and {dimension} numbers")
        return [each if each.dimension else Block.zeros(len(each.codes), dimension, self.dtype) for each in self.blocks]


def largest(values: Floats, count: int) -> npt.NDArray[np.intp]:
    """Return the positions of the `count` largest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    whole = len(values) // _GROUP * _GROUP
    maxima = values[:whole].reshape(-1, _GROUP).max(axis=1) if whole else values[:0]
    if len(maxima) <= count:
        return np.argpartition(values, -count)[-count:]
    # At least `count` values reach the `count`-th largest group maximum: only these are worth sorting.
    near = np.flatnonzero(values >= np.partition(maxima, -count)[-count])
    return near[np.argpartition(values[near], -count)[-count:]]


class StoredRows:
    """The methods of `VectorRows` for vectors in the catalog; zeros for vectors that are no longer there."""

    is_exact = True

    def __init__(self, ids: npt.NDArray[np.uint8], places: npt.NDArray[np.int32], read: ReadVectors) -> None:
        """`ids` (rows x 16) and `places` (one per row) refer to the vectors; the place is 0 without a vector."""
        self._ids = ids
        self._places = places
        self._read = read

    @cached_property
    def dimension(self) -> int:
        return int(self.find(np.flatnonzero(self._places)[:1])[1].shape[1])

    def find(self, rows: npt.NDArray[np.intp]) -> tuple[list[int], Matrix]:
        """Return the positions among the rows that have a vector, and these vectors."""
        places = self._places[rows].tolist()
        stored = self._read(places)
        ids = [each.tobytes().hex() for each in self._ids[rows]]
        found = [number for number, place in enumerate(places) if place in stored and stored[place][0] == ids[number]]
        return found, decode_vectors([stored[places[number]][1] for number in found])

    def vectors(self, rows: npt.NDArray[np.intp]) -> Matrix:
        found, vectors = self.find(rows)
        if len(found) == len(rows):
            return vectors
        matrix = np.zeros((len(rows), self.dimension), dtype=np.float32)
        if found:
            matrix[found] = vectors
        return matrix

    def compare(self, vector: Matrix, rows: Rows) -> Floats:
        parts = [block @ vector for _, block in self.each_block(rows)]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.float32)

    def each_block(self, rows: Rows) -> Iterator[tuple[slice, Matrix]]:
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            yield part, self.vectors(rows[part])
