"""Vectors that stay in the catalog, one a row, and are read each time they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage.schema import decode_vectors
from otterwiki_semantic.storage.vector_rows import BLOCK, Floats, Rows

ReadVectors = Callable[[Sequence[int]], Mapping[int, tuple[str, bytes]]]
"""Returns the ids of vectors and the vectors themselves as the catalog has them, by their places in it."""


class StoredRows:
    """The vectors of an index as the catalog has them now; zeros for those that it no longer has."""

    is_exact = True
    """Whether vectors are as they were stored."""

    def __init__(self, ids: npt.NDArray[np.uint8], places: npt.NDArray[np.int32], read: ReadVectors) -> None:
        """`ids` and `places` are those of the vectors: rows x 16, and one a row; the place is 0 where there is none."""
        self._ids = ids
        self._places = places
        self._read = read

    @cached_property
    def dimension(self) -> int:
        """The length of a vector; 0 if there is none."""
        return int(self.find(np.flatnonzero(self._places)[:1])[1].shape[1])

    def find(self, rows: npt.NDArray[np.intp]) -> tuple[list[int], Matrix]:
        """Return which of the rows have a vector, by their positions among them, and these vectors."""
        places = self._places[rows].tolist()
        stored = self._read(places)
        ids = [each.tobytes().hex() for each in self._ids[rows]]
        found = [number for number, place in enumerate(places) if place in stored and stored[place][0] == ids[number]]
        return found, decode_vectors([stored[places[number]][1] for number in found])

    def vectors(self, rows: npt.NDArray[np.intp]) -> Matrix:
        """Return the vectors of rows, in this order."""
        found, vectors = self.find(rows)
        if len(found) == len(rows):
            return vectors
        matrix = np.zeros((len(rows), self.dimension), dtype=np.float32)
        if found:
            matrix[found] = vectors
        return matrix

    def compare(self, vector: Matrix, rows: Rows) -> Floats:
        """Return the cosine similarity of each of the rows to a vector."""
        parts = [block @ vector for _, block in self.each_block(rows)]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.float32)

    def each_block(self, rows: Rows) -> Iterator[tuple[slice, Matrix]]:
        """Yield the vectors of the rows in parts, and the places that they have among the rows."""
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            yield part, self.vectors(rows[part])
