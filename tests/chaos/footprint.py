"""What a served wiki holds of its machine: descriptors, threads, memory and files, in a form that can be compared."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path

from tests.support.processes import private_megabytes

_SAMPLES = 8
_SAMPLE_SECONDS = 0.5
_RANDOM_NAME = re.compile(r"(?<=gunicorn-)\w+|(?=[0-9a-f-]*\d)[0-9a-f-]{6,}|\d+")
_POOLED = 3
"""How many more descriptors or threads of a kind there may be: connections of workers wait in pools, and each is served."""
_PROCESS_MEGABYTES = 12.0
_DISK_MEGABYTES = 8.0


@dataclass(frozen=True, slots=True)
class Holding:
    """What processes that do the same hold together, by kind: what random names have in common is one kind."""

    descriptors: Counter[str]
    threads: Counter[str]
    megabytes: float

    def __str__(self) -> str:
        return f"{self.descriptors.total()} descriptors, {self.threads.total()} threads, {self.megabytes:.1f} MB"


@dataclass(frozen=True, slots=True)
class Footprint:
    """The holdings by role, and the files and megabytes in the directories that the wiki writes to."""

    holdings: Mapping[str, Holding]
    files: Counter[str]
    disk_megabytes: float

    def __str__(self) -> str:
        roles = "; ".join(f"{role}: {holding}" for role, holding in self.holdings.items())
        return f"{roles}; {self.files.total()} files, {self.disk_megabytes:.1f} MB"


def measure(roles: Mapping[str, Iterable[int]], directories: Iterable[Path]) -> Footprint:
    """Return what is held throughout a few seconds, which is what is not about to be released."""
    directories = list(directories)
    pids = {role: list(members) for role, members in roles.items()}
    samples = []
    for _ in range(_SAMPLES):
        samples.append(_sample(pids, directories))
        time.sleep(_SAMPLE_SECONDS)
    return Footprint(
        {
            role: Holding(
                reduce(and_, (sample.holdings[role].descriptors for sample in samples)),
                reduce(and_, (sample.holdings[role].threads for sample in samples)),
                min(sample.holdings[role].megabytes for sample in samples),
            )
            for role in pids
        },
        reduce(and_, (sample.files for sample in samples)),
        min(sample.disk_megabytes for sample in samples),
    )


def excess(before: Footprint, after: Footprint) -> Iterator[str]:
    """Yield what is held after, and was not before."""
    for role, old in before.holdings.items():
        new = after.holdings[role]
        for kind, more in (("descriptors", new.descriptors - old.descriptors), ("threads", new.threads - old.threads)):
            if leaked := Counter({name: number for name, number in more.items() if number > _POOLED}):
                yield f"{role}: {leaked.total()} more {kind}: {_named(leaked)}"
        if new.megabytes - old.megabytes > _PROCESS_MEGABYTES:
            yield f"{role}: {new.megabytes:.1f} MB instead of {old.megabytes:.1f}"
    if more := after.files - before.files:
        yield f"{more.total()} more files: {_named(more)}"
    if after.disk_megabytes - before.disk_megabytes > _DISK_MEGABYTES:
        yield f"files of {after.disk_megabytes:.1f} MB instead of {before.disk_megabytes:.1f}"


def processes_of(text: str) -> list[int]:
    """Return the other processes whose command line or environment contains a text."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if text.encode() in (place / "cmdline").read_bytes() + (place / "environ").read_bytes():
                found.append(int(place.name))
    return found


def _sample(roles: Mapping[str, list[int]], directories: list[Path]) -> Footprint:
    holdings = {
        role: Holding(
            Counter(name for pid in pids for name in _descriptors(pid)),
            Counter(name for pid in pids for name in _threads(pid)),
            sum(map(private_megabytes, pids)),
        )
        for role, pids in roles.items()
    }
    files = [path for directory in directories for path in directory.rglob("*") if not path.is_dir()]
    kinds = Counter(_RANDOM_NAME.sub("*", str(path)) for path in files)
    size = 0
    for path in files:
        with suppress(FileNotFoundError):
            size += path.lstat().st_blocks * 512
    return Footprint(holdings, kinds, size / 2**20)


def _descriptors(pid: int) -> Iterator[str]:
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            yield _RANDOM_NAME.sub("*", str(path.readlink()))


def _threads(pid: int) -> Iterator[str]:
    for path in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            yield _RANDOM_NAME.sub("*", (path / "comm").read_text().strip())


def _named(kinds: Counter[str]) -> str:
    return ", ".join(f"{number} × {name}" for name, number in kinds.most_common(8))
