"""Work in a process of its own, so that nothing of this one counts; and what a process takes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from otterwiki_semantic.core.files import directory_size

P = ParamSpec("P")
T = TypeVar("T")


def in_fresh_process(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return what a function of a module gives when it is called in a fresh interpreter, which ends with it."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments, **named).result()


def resident(pid: int | str = "self") -> float:
    """Return a process's resident memory in MB (2^20 bytes)."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def tree_bytes(directory: Path) -> int:
    """Return the bytes of all files below a directory; a file that goes meanwhile counts nothing."""
    return directory_size(directory)
