"""Return freed memory to the system, and exempt objects from garbage collection."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress


def trim_heap() -> None:
    """Return freed memory to the system. Only glibc needs this: it keeps free memory below a block that is still in use."""
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def freeze_heap() -> None:
    """Exempt all existing objects from garbage collection, which takes a third of a second once a large index is loaded.

    They are still freed once nothing refers to them, unless they refer to each other.
    """
    gc.freeze()
