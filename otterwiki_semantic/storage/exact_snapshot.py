"""The exact index as a file next to the catalog, from which a start maps it into memory instead of reading every vector.

The catalog knows length and checksum of the whole file. So a file that is damaged, incomplete, of another catalog or of another
time of this one is not used.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.storage.exact_index import Columns, ExactIndex
from otterwiki_semantic.storage.vector_rows import BLOCK, Block, VectorRows

_FORMAT = 1
_HEADER_BYTES = 256
_ALIGNMENT = 64


class Snapshot(NamedTuple):
    """What a file holds of an `ExactIndex`."""

    revision: int
    filled: int
    columns: Columns
    vectors: VectorRows | None
    """None if they were left in the catalog."""


def write_snapshot(path: Path, index: ExactIndex) -> str:
    """Replace the file at a path; return the mark that `read_snapshot` asks for. Errors: `OSError`."""
    scratch, checksum, size = path.with_suffix(".new"), 0, 0
    try:
        with scratch.open("wb") as stream:
            for part in _parts(index):
                checksum, size = zlib.crc32(part, checksum), size + len(part)
                stream.write(part)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
    except OSError:
        with suppress(OSError):
            scratch.unlink()
        raise
    return _mark(size, checksum)


def read_snapshot(path: Path, mark: str) -> Snapshot | None:
    """Map a file into memory; None if it is not the one that got this mark. What is changed there stays in memory."""
    try:
        with path.open("rb") as stream:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):  # there is none, or it is empty
        return None
    if _mark(len(content), zlib.crc32(content)) != mark:
        return None
    version, revision, filled, rows, dimension = json.loads(content[:_HEADER_BYTES])
    if version != _FORMAT:
        return None
    arrays, start = [], _HEADER_BYTES
    for dtype, width in (*_COLUMNS.values(), *([(np.int8, dimension), (np.float32, 1)] if dimension else [])):
        array = np.frombuffer(content, dtype, rows * width, start)
        arrays.append(array if width == 1 else array.reshape(rows, width))
        start += _padded(array.nbytes)
    columns = Columns(*arrays[: len(_COLUMNS)])
    if not dimension:
        return Snapshot(revision, filled, columns, None)
    codes, scales = arrays[len(_COLUMNS) :]
    starts = range(0, rows, BLOCK)
    blocks = [Block(codes[first : first + BLOCK], scales[first : first + BLOCK]) for first in starts]
    return Snapshot(revision, filled, columns, VectorRows(np.int8, blocks))


_COLUMNS: dict[str, tuple[npt.DTypeLike, int]] = {
    "ids": (np.int64, 1),
    "pages": (np.int32, 1),
    "ordinals": (np.int32, 1),
    "places": (np.int32, 1),
    "vectors": (np.uint8, 16),
    "words_only": (np.bool_, 1),
    "signatures": (np.uint32, 8),
    "live": (np.bool_, 1),
}
"""Type and width of each column, in the order of `Columns`."""


def _mark(size: int, checksum: int) -> str:
    return f"{size}-{checksum:08x}"


def _parts(index: ExactIndex) -> Iterator[memoryview | bytes]:
    """Yield the contents of a file: a header, the columns, and of vectors in memory all codes, all scales."""
    vectors = index.in_memory
    header = json.dumps([_FORMAT, index.revision, index.filled, len(index), vectors.dimension if vectors else 0])
    yield header.ljust(_HEADER_BYTES).encode()
    for column in index.columns:
        yield from _bytes([column])
    if vectors is not None:
        yield from _bytes([block.codes for block in vectors.blocks])
        yield from _bytes([block.scales for block in vectors.blocks])


def _bytes(arrays: list[npt.NDArray[Any]]) -> Iterator[memoryview | bytes]:
    for array in arrays:
        if array.size:
            yield np.ascontiguousarray(array).data.cast("B")
    size = sum(array.nbytes for array in arrays)
    yield bytes(_padded(size) - size)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
