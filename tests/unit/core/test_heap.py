"""Freed memory is returned to the system."""

from __future__ import annotations

import subprocess
import sys

_FREE_AND_TRIM = """
import resource
from pathlib import Path
from otterwiki_semantic.core.heap import trim_heap
resident = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
blocks = [bytes([1]) * 50_000 for _ in range(2_000)][-1:]  # the last one is at the end of the heap
before = resident()
trim_heap()
print(before - resident())
"""


def test_memory_below_a_block_that_is_in_use_is_returned() -> None:
    returned = subprocess.run([sys.executable, "-c", _FREE_AND_TRIM], capture_output=True, text=True, check=True)
    assert int(returned.stdout) > 50_000_000
