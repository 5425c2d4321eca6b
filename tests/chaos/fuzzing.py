"""Many made-up inputs, in batches over all cores: a batch's number and the seed decide its inputs."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path

_BATCH = 250
_PROGRESS_SECONDS = 5.0
_LONGEST_SHOWN = 400
_MOST_SHOWN = 10
SLOW_SECONDS = 10.0
"""Longer than any input may take; a machine with other work needs some of it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An input, as Python would write it, and what is wrong with what became of it."""

    source: str
    fault: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch of inputs gave: how many there were, the longest time one of them took, and the findings."""

    count: int
    slowest: float
    findings: tuple[Finding, ...]
    timed: tuple[tuple[float, str], ...] = ()
    """The seconds of the slowest inputs, if each is worth a look."""


Work = Callable[[Path, str, int], Batch]
"""Makes and tries so many inputs of a seed; may keep files in a directory. A function of a module: another process calls it."""


def fuzz(name: str, work: Work, total: int, seed: int, place: Path) -> bool:
    """Try so many inputs in all; prints how it goes and tells whether all went well."""
    if not total:
        return True
    processes = min(os.cpu_count() or 1, math.ceil(total / _BATCH))
    size = min(_BATCH, math.ceil(total / processes))
    sizes = [min(size, total - start) for start in range(0, total, size)]
    start = shown = time.monotonic()
    done, slowest, findings = 0, 0.0, 0
    timed: list[tuple[float, str]] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        futures = [pool.submit(work, place, f"{name} {seed} {number}", size) for number, size in enumerate(sizes)]
        for future in as_completed(futures):
            batch = future.result()
            done, slowest = done + batch.count, max(slowest, batch.slowest)
            timed = nlargest(_MOST_SHOWN, [*timed, *batch.timed])
            for finding in batch.findings:
                findings += 1
                _report(name, finding, place / f"{name}-{findings}.txt", findings)
            if time.monotonic() - shown > _PROGRESS_SECONDS or done == total:
                shown = time.monotonic()
                rate = done / (shown - start)
                print(f"[{done:6}/{total}] {name}: {rate:.0f} a second, slowest {slowest:.2f} s, {findings} failed", flush=True)
    for seconds, source in timed:
        print(f"       {seconds:6.2f} s  {source}")
    return not findings


def _report(name: str, finding: Finding, file: Path, number: int) -> None:
    file.write_text(f"{finding.fault}\n\n{finding.source}\n")
    if number <= _MOST_SHOWN:
        print(f"       {name} FAILED: {finding.fault}\n       input: {finding.source[:_LONGEST_SHOWN]}\n       kept: {file}")


def attempt(check: Callable[[], str]) -> tuple[str, float]:
    """Return what a check says is wrong (an exception is wrong, too, and so is taking too long), and the seconds it took."""
    start = time.process_time()
    try:
        with _limited(SLOW_SECONDS):
            fault = check()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        fault = f"{type(error).__name__}: {error}"
    return fault, time.process_time() - start


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise in this process's main thread when it has worked on something for so long."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it takes more than {seconds:.0f} s of processor time")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
