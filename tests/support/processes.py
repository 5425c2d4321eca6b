"""Processes of this machine, as the kernel knows them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.fork_server import python
from tests.support.light_parts import PYTHON
from tests.support.live_wiki import eventually


def noting_python(place: Path) -> dict[str, str]:
    """Return what has index daemons started by a program that notes their arguments and environment in the file `told`."""
    program = place / "python"
    program.write_text(f'#!/bin/sh\n(env; echo "$@") >> "{place}/told"\nexec "{python()}" "$@"\n')
    program.chmod(0o700)
    return {PYTHON: str(program)}


def is_running(pid: int) -> bool:
    try:
        return _state(Path(f"/proc/{pid}")) != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stop a process while the block runs.

    The signal only asks for it: until every thread has stopped, which takes a while on busy processors, it may still answer.
    """
    os.kill(pid, signal.SIGSTOP)
    try:
        threads = Path(f"/proc/{pid}/task")
        eventually(lambda: all(_state(thread) == "T" for thread in threads.iterdir()), why=f"process {pid} has stopped")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def parent_of(pid: int) -> int:
    return int(_facts(Path(f"/proc/{pid}"))[1])


def _state(process: Path) -> str:
    return _facts(process)[0]


def _facts(process: Path) -> list[str]:
    return (process / "stat").read_text().rpartition(")")[2].split()


def wait_until_ended(pid: int, seconds: float = 60) -> None:
    """Wait for the end of a process, which may be no child of this one."""
    with suppress(ProcessLookupError):
        watch = os.pidfd_open(pid)
        try:
            assert select.select([watch], [], [], seconds)[0], f"process {pid} has not ended"
        finally:
            os.close(watch)


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process and its ended children have taken."""
    return sum(map(int, _facts(Path(f"/proc/{pid}"))[11:15])) / os.sysconf("SC_CLK_TCK")


def private_megabytes(pid: int) -> float:
    """Return the memory that a process shares with no other.

    Clean pages of files are left out: whether other processes have the same library open is nothing that this one does.
    """
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")) / 1024


def owners_of(data_dir: Path) -> list[int]:
    """Return the processes of this host that own an index, or wait to be its next owner."""
    lock = str(data_dir / "owner.lock")
    owners = []
    # pathlib would take several times as long
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        with suppress(OSError):
            files = f"/proc/{pid}/fd"
            if any(os.readlink(f"{files}/{each}").startswith(lock) for each in os.listdir(files)):  # noqa: PTH115, PTH208
                owners.append(int(pid))
    return owners


@contextmanager
def another_process_holds(lock: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Let another process hold the lock of a file, until it is killed or the block ends."""
    script = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield holder
        holder.kill()
