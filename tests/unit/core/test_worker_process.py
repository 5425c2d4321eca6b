"""Functions in a process of its own: what they return and raise, and that nothing they do outlives the limits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import AmbiguousSectionError, LimitExceededError
from otterwiki_semantic.core.worker_process import MEMORY_BYTES, WorkerProcess
from tests.support.live_wiki import eventually
from tests.support.paths import ROOT
from tests.support.processes import is_running

_SAMPLED = -8
"""The clock that Linux limits processor time by: whatever runs at a tick of the kernel has run since the one before."""
_DRIFT_SECONDS = 1.4
"""More than the calls that follow may take, even in whole seconds."""


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


def test_one_process_answers_all_calls(worker: WorkerProcess) -> None:
    assert worker.call(5, os.getpid) == worker.call(5, os.getpid) != os.getpid()


def test_what_cannot_be_interrupted_is_ended(worker: WorkerProcess) -> None:
    with pytest.raises(LimitExceededError, match="took longer than 1 s of processor time"):
        worker.call(1, re.sub, r"(\s+|^)#+\s*$", "", "a" + " " * 150_000 + "x")
    assert worker.call(5, len, "abc") == 3


def run_at_ticks() -> float:
    """Run at each tick and sleep in between, for a few seconds; return what the sampled clock is ahead of the exact one."""

    def drift() -> float:
        return time.clock_gettime(_SAMPLED) - time.process_time()

    end = time.monotonic() + 20
    while drift() < _DRIFT_SECONDS and time.monotonic() < end:
        now = time.clock_gettime(_SAMPLED)
        while time.clock_gettime(_SAMPLED) == now:
            pass
        time.sleep(0.002)
    return drift()


def run(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_calls_before_do_not_count_by_any_clock(worker: WorkerProcess) -> None:
    if worker.call(30, run_at_ticks) < _DRIFT_SECONDS:
        pytest.skip("both clocks of this kernel are the same")
    worker.call(0.3, run, 0.05)
    worker.call(0.3, run, 0.05)


def test_a_call_that_only_waits_is_ended(worker: WorkerProcess) -> None:
    with pytest.raises(LimitExceededError, match="took longer than 1 s"):
        worker.call(0.1, signal.pause)
    assert worker.call(5, len, "abc") == 3


def test_memory_is_limited(worker: WorkerProcess) -> None:
    with pytest.raises(LimitExceededError, match="takes more than 1,024 MB of memory"):
        worker.call(5, bytes, MEMORY_BYTES)
    assert worker.call(5, len, "abc") == 3


def test_a_process_that_ends_is_replaced(worker: WorkerProcess) -> None:
    with pytest.raises(LimitExceededError, match="status 3"):
        worker.call(5, os._exit, 3)
    os.kill(worker.call(5, os.getpid), signal.SIGKILL)
    assert worker.call(5, len, "abc") == 3


def test_an_idle_process_ends_and_another_one_answers() -> None:
    worker = WorkerProcess(idle_seconds=0.1)
    first = worker.call(5, os.getpid)
    eventually(lambda: not is_running(first))
    assert worker.call(5, os.getpid) != first
    worker.close()


def test_a_closed_one_answers_nothing_and_leaves_no_process() -> None:
    worker = WorkerProcess()
    process = worker.call(5, os.getpid)
    worker.close()
    assert not is_running(process)
    with pytest.raises(LimitExceededError):
        worker.call(5, len, "abc")


def hold(file: Path) -> None:
    file.write_text(str(os.getpid()))
    signal.pause()


def test_it_ends_with_its_caller_even_during_a_call(tmp_path: Path) -> None:
    file = tmp_path / "process"
    code = "from pathlib import Path; from tests.unit.core.test_worker_process import WorkerProcess, hold; WorkerProcess().call"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", f"{code}(60, hold, Path({str(file)!r}))"], env=environment) as caller:
        process = int(eventually(lambda: file.exists() and file.read_text()))
        caller.kill()
    eventually(lambda: not is_running(process))
