"""Where in the package's work a process dies: a place in its code, which time it is reached, and how long after that."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import otterwiki_semantic
from otterwiki_semantic.core import files

_WATCHED = ("storage/**/*.py", "indexing/*.py", "daemon/engine.py")
_ON_BEHALF = (pathlib.__file__, shutil.__file__, files.__file__, "/chromadb/api/rust.py")
"""Ends of the names of files that are watched where they touch the disk for those: by the system, or ChromaDB's core."""
_DISK = "disk "
_TOUCHING = {"sqlite3", "posix", "_io", "io", "chromadb_rust_bindings"}
_HARMLESS = {"fspath", "text_encoding"}
_FRAMES_BACK = 25
_SHORTEST, _LONGEST = -5.0, -1.5
"""Exponents of the seconds between reaching a location and dying: then it happens within a call into C or Rust, too."""


@dataclass(frozen=True, slots=True)
class Point:
    """The `occurrence`-th time (from 1) that a location is reached, and `delay` seconds later."""

    location: str
    occurrence: int
    delay: float

    def __str__(self) -> str:
        later = f" +{self.delay * 1000:.2f} ms" if self.delay else ""
        return f"{self.location} #{self.occurrence}{later}"


def draw_point(random: Random, counts: Mapping[str, int], most: int | None = None) -> Point:
    """Draw a point: a location is as likely as any other, however often it is reached. Half of them touch the disk."""
    locations = sorted(counts)
    if random.random() < 0.5:
        locations = [location for location in locations if location.startswith(_DISK)] or locations
    location = random.choice(locations)
    occurrence = random.randint(1, min(counts[location], most or counts[location]))
    return Point(location, occurrence, 0.0 if random.random() < 0.5 else 10 ** random.uniform(_SHORTEST, _LONGEST))


class Watch:
    """A profile function that counts the calls and returns in the package's work, and ends the process at a point of it.

    A location is a function of the package, or one that touches the disk on its behalf, the line and the event there, and the
    lines of other modules of the package that led to it: the same statement is another location in another phase.
    """

    def __init__(self, point: Point | None = None) -> None:
        package = Path(otterwiki_semantic.__file__).parent
        self._modules = {str(path): str(path.relative_to(package)) for pattern in _WATCHED for path in package.glob(pattern)}
        self._is_watched: dict[CodeType, bool] = {}
        self._point = point
        self.counts: Counter[str] = Counter()

    def install(self) -> None:
        """Watch every thread that is started from now on."""
        threading.setprofile(self)

    @contextmanager
    def here(self) -> Iterator[None]:
        """Watch this thread, too."""
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        is_watched = self._is_watched.get(code)
        if is_watched is None:
            file = code.co_filename
            is_watched = self._is_watched[code] = file in self._modules or file.endswith(_ON_BEHALF)
        if is_watched:
            location = self._location(frame, event, argument)
            if location:
                self._reached(location)

    def _location(self, frame: FrameType, event: str, argument: Any) -> str:
        """Return the name of where a frame is; empty for one that does nothing for the package."""
        touches = event.startswith("c_") and _touches_the_disk(argument)
        module = self._modules.get(frame.f_code.co_filename)
        if module is None and not touches:
            return ""
        callers = self._callers(frame, module)
        if module is None and not callers:
            return ""
        called = f":{argument.__name__}" if event.startswith("c_") else ""
        where = f"{module or Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}:{frame.f_lineno}:{event}{called}"
        return " < ".join((f"{_DISK if touches else ''}{where}", *callers))

    def _callers(self, frame: FrameType, module: str | None) -> list[str]:
        """Return the modules and lines that led to a frame; of several calls within a module, the innermost."""
        callers: list[str] = []
        last = module
        caller = frame.f_back
        for _ in range(_FRAMES_BACK):
            if caller is None:
                break
            module = self._modules.get(caller.f_code.co_filename)
            if module is not None and module != last:
                callers.append(f"{module}:{caller.f_lineno}")
                last = module
            caller = caller.f_back
        return callers

    def _reached(self, location: str) -> None:
        self.counts[location] += 1
        point = self._point
        if point is None or location != point.location or self.counts[location] < point.occurrence:
            return
        self._point = None
        if point.delay:
            signal.setitimer(signal.ITIMER_REAL, point.delay)  # nobody handles its signal: it ends the process as a kill does
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def _touches_the_disk(function: Any) -> bool:
    """Return whether a function of C or Rust is one of SQLite, the system or ChromaDB."""
    if function.__name__ in _HARMLESS:
        return False
    owner = getattr(function, "__self__", None)
    modules = {getattr(function, "__module__", None), type(owner).__module__}
    return not modules.isdisjoint(_TOUCHING) or type(owner).__name__ == "Bindings"
