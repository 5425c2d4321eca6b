"""Processes that outlive the tests that started them."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from tests.support.processes import is_running

_SESSION = "OTTERWIKI_TEST_SESSION"
"""The environment variable by which all processes of a session are known."""
_ENDING_WITH_SESSION = ("multiprocessing.forkserver", "multiprocessing.resource_tracker")
"""Processes that Python starts for others, and that end with this one."""
_SECONDS = 60.0
"""An index daemon ends five seconds after its last client, in order; nothing else has a reason to take so long."""


def note_session() -> None:
    """Have all processes that are started from now on known as this session's."""
    os.environ.setdefault(_SESSION, str(os.getpid()))


def outliving_processes() -> list[str]:
    """Wait until this session's processes have ended; describe those that do not: the command, and the test that started it."""
    started = {pid: described for pid in _others() if (described := _of_session(pid))}
    deadline = time.monotonic() + _SECONDS
    while (left := [pid for pid in started if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [started[pid] for pid in left]


def _others() -> list[int]:
    return [int(place.name) for place in Path("/proc").glob("[0-9]*") if int(place.name) != os.getpid()]


def _of_session(pid: int) -> str:
    """Describe a process that was started by this session; empty if it was not."""
    place = Path(f"/proc/{pid}")
    with suppress(OSError):
        environment = dict(each.partition("=")[::2] for each in (place / "environ").read_text(errors="replace").split("\0"))
        if environment.get(_SESSION) == os.environ[_SESSION]:
            command = (place / "cmdline").read_text(errors="replace").replace("\0", " ")[:200]
            if any(module in command for module in _ENDING_WITH_SESSION):
                return ""
            return f"{pid} of {environment.get('PYTEST_CURRENT_TEST', 'no test')}: {command}"
    return ""
