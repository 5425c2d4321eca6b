"""Memory that this process has freed but not yet returned to the system."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def trim_heap() -> None:
    """Return freed memory to the system. Only glibc needs this: it keeps free memory below a block that is still in use."""
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
