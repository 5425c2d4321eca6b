"""The memory of this process: what it has freed but not yet returned to the system, and garbage collections."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress


def trim_heap() -> None:
    """Return freed memory to the system. Only glibc needs this: it keeps free memory below a block that is still in use."""
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def freeze_heap() -> None:
    """Exclude all present objects from garbage collections, which take a third of a second with those of a large index.

    They are still freed as soon as nothing refers to them, except in cycles.
    """
    gc.freeze()
