"""Functions in a process of its own: what they return and raise, and that nothing they do outlives the limits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core import worker_process
from otterwiki_semantic.core.errors import AmbiguousSectionError, LimitExceededError
from otterwiki_semantic.core.worker_process import MEMORY_BYTES, WorkerProcess
from tests.support.paths import ROOT
from tests.support.processes import is_running, wait_until_ended

pytestmark = pytest.mark.real_processes


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    made = WorkerProcess()
    yield made
    made.close()


def refuse(name: str) -> None:
    raise AmbiguousSectionError(f"several are called {name}", ["a", "b"])


def test_results_and_errors_are_those_of_the_function(worker: WorkerProcess) -> None:
    assert worker.call(5, sorted, [3, 1, 2], reverse=True) == [3, 2, 1]
    with pytest.raises(AmbiguousSectionError, match="several are called x") as caught:
        worker.call(5, refuse, "x")
    assert caught.value.nearest == ("a", "b")


def test_one_process_answers_all_calls_until_it_is_closed(worker: WorkerProcess) -> None:
    process = worker.call(5, os.getpid)
    assert process == worker.call(5, os.getpid) != os.getpid()
    worker.close()
    assert not is_running(process)
    with pytest.raises(LimitExceededError):
        worker.call(5, len, "abc")


@pytest.mark.parametrize(
    ("seconds", "call", "message"),
    [
        (0.5, (re.sub, r"(\s+|^)#+\s*$", "", "a" + " " * 150_000 + "x"), "took longer than 0.5 s of processor time"),
        (5, (bytes, MEMORY_BYTES), "takes more than 1,024 MB of memory"),
        (5, (os._exit, 3), "status 3"),
    ],
    ids=["cannot be interrupted", "memory", "ends"],
)
def test_what_exceeds_its_limits_is_ended_and_the_next_call_answered(
    worker: WorkerProcess, seconds: float, call: tuple[Any, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_CLOCK_FACTOR", 100)  # the clock is not what ends it, however busy the machine is
    with pytest.raises(LimitExceededError, match=message):
        worker.call(seconds, *call)
    assert worker.call(5, len, "abc") == 3


def test_a_call_that_waits_is_ended_by_the_clock(worker: WorkerProcess) -> None:
    with pytest.raises(LimitExceededError, match=r"took longer than 1 s$"):
        worker.call(0.1, signal.pause)
    assert worker.call(5, len, "abc") == 3


def test_a_killed_process_is_replaced(worker: WorkerProcess) -> None:
    os.kill(worker.call(5, os.getpid), signal.SIGKILL)
    assert worker.call(5, len, "abc") == 3


def test_an_idle_process_ends_and_another_one_answers() -> None:
    worker = WorkerProcess(idle_seconds=0.1)
    first = worker.call(5, os.getpid)
    wait_until_ended(first)
    assert worker.call(5, os.getpid) != first
    worker.close()


def start_program() -> int:
    return subprocess.Popen(["sleep", "600"]).pid


def test_a_program_that_it_has_started_ends_with_it(worker: WorkerProcess) -> None:
    program = worker.call(5, start_program)
    assert is_running(program)
    worker.close()
    wait_until_ended(program)


def hold(file: Path) -> None:
    program = start_program()
    file.write_text(f"{os.getpid()} {program}")
    signal.pause()


def test_it_ends_with_its_caller_even_during_a_call(tmp_path: Path) -> None:
    file = tmp_path / "process"
    os.mkfifo(file)  # reading waits until it is written
    code = f"from pathlib import Path; from {__name__} import WorkerProcess, hold; WorkerProcess().call"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", f"{code}(60, hold, Path({str(file)!r}))"], env=environment) as caller:
        processes = map(int, file.read_text().split())
        caller.kill()
    for process in processes:
        wait_until_ended(process)
