"""The exact index as a file next to the catalog, so that a start need not read every vector.

The file is a NumPy archive, with a checksum for each array. The catalog stores the mark of its file; a file from another
catalog, or from another time, is ignored.
"""

from __future__ import annotations

import os
import uuid
import zipfile
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from otterwiki_semantic.storage.exact_index import Columns, ExactIndex
from otterwiki_semantic.storage.vector_rows import Block, VectorRows


class Snapshot(NamedTuple):
    """The contents of an `ExactIndex` in a file."""

    revision: int
    filled: int
    columns: Columns
    vectors: VectorRows | None
    """None if the vectors stayed in the catalog."""


def write_snapshot(path: Path, index: ExactIndex) -> str:
    """Replace the file at `path`; return the mark that `read_snapshot` requires. Errors: `OSError`."""
    mark, scratch = uuid.uuid4().hex, path.with_suffix(".new")
    arrays = {field.name: getattr(index.columns, field.name) for field in fields(Columns)}
    for number, block in enumerate(index.in_memory.blocks if index.in_memory else ()):
        arrays |= {f"codes {number}": block.codes, f"scales {number}": block.scales}
    try:
        with scratch.open("wb") as stream:
            np.savez(stream, mark=mark, state=[index.revision, index.filled], **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
    except OSError:
        with suppress(OSError):
            scratch.unlink()
        raise
    return mark


def read_snapshot(path: Path, mark: str) -> Snapshot | None:
    """Return the contents of a file, or None if it is damaged or has another mark."""
    try:
        with path.open("rb") as stream, np.load(stream) as arrays:
            if arrays["mark"] != mark:
                return None
            columns = Columns(*(arrays[field.name] for field in fields(Columns)))
            numbers = range(sum(name.startswith("codes") for name in arrays))
            blocks = [Block(arrays[f"codes {number}"], arrays[f"scales {number}"]) for number in numbers]
            revision, filled = arrays["state"].tolist()
            return Snapshot(revision, filled, columns, VectorRows(np.int8, blocks) if blocks else None)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError):
        return None
