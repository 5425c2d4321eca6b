"""Run functions in a separate process, with hard limits on time and memory.

`re` and other C code cannot be interrupted, and may hold the interpreter lock for minutes. Only killing the process stops them.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar

from otterwiki_semantic.core.errors import LimitExceededError

P = ParamSpec("P")
T = TypeVar("T")

MEMORY_BYTES = 1 << 30
"""Address space of the process; about 60 MB is used at the start."""
UNLIMITED = resource.RLIM_INFINITY
_CLOCK_FACTOR = 6
"""Limit on a call's wall-clock time, as a multiple of its CPU time, for a machine that is busy with other work."""
_EXIT_SECONDS = 1.0
"""How long a process may take to end after the system has closed its files."""
_NETWORK_EVENTS = {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}
_COMMAND = (sys.executable, "-P", "-m", "otterwiki_semantic.core.worker_process")
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""For NumPy and scikit-learn: a call uses one CPU, and no address space for the stacks of other threads."""


class _EndedError(Exception):
    """The process ended during a call."""


class WorkerProcess:
    """A process that is started by the first call and runs one call at a time. Safe for several threads.

    It ends with its parent, even during a call, because its input closes, and after `idle_seconds` without a call.
    """

    def __init__(self, idle_seconds: float | None = None, niceness: int = 0, memory_bytes: int = MEMORY_BYTES) -> None:
        self.idle_seconds = idle_seconds
        self._command = (*_COMMAND, str(niceness), str(memory_bytes))
        self._calling = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._is_closed = False

    def call(self, seconds: float, function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        """Return the result of a module's function, which may take `seconds` of CPU time.

        Arguments and results are pickled. Raises the function's errors, and `LimitExceededError` if it takes more time or
        memory than allowed, or if the process ends for another reason.
        """
        message = self.idle_seconds, seconds, function, arguments, keywords
        with self._calling:
            try:
                is_answer, result = self._exchange(message, seconds)
            except _EndedError:  # this call may not be the cause
                try:
                    is_answer, result = self._exchange(message, seconds)
                except _EndedError as error:
                    raise LimitExceededError(f"ended the process that does it, with status {error}") from None
        if not is_answer:
            raise result
        answer: T = result
        return answer

    def _exchange(self, message: object, seconds: float) -> tuple[bool, Any]:
        connection = self._send(message)
        try:
            if connection.poll(seconds * _CLOCK_FACTOR):
                is_answer, result = connection.recv()
                return is_answer, result
        except (EOFError, ConnectionError):
            status = self._end(_EXIT_SECONDS)
            if status == -signal.SIGPROF:
                raise LimitExceededError(f"took longer than {round(seconds, 1):g} s of processor time") from None
            raise _EndedError(status) from None
        self._end()
        raise LimitExceededError(f"took longer than {seconds * _CLOCK_FACTOR:.0f} s")

    def _send(self, message: object) -> Connection:
        if self._is_closed:
            raise LimitExceededError("was stopped")
        with suppress(OSError):
            if self._connection is not None and not self._connection.poll():  # at the end of its output it would be readable
                self._connection.send(message)
                return self._connection
        self._end()
        connection = self._start()
        if self._is_closed:  # `close` may not have seen the process
            self._end()
            raise LimitExceededError("was stopped")
        connection.send(message)
        return connection

    def _start(self) -> Connection:
        mine, its = socket.socketpair()
        environment = os.environ | _ONE_THREAD | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        with its, mine:
            self._process = subprocess.Popen(
                self._command,
                stdin=its.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                process_group=0,  # an interrupt from the keyboard is meant for the parent
            )
            self._connection = Connection(mine.detach())
        return self._connection

    def _end(self, seconds: float = 0) -> int | None:
        """Kill the process, if there is one, and return its status: its own if it ends within `seconds`."""
        process, self._process = self._process, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if process is None:
            return None
        with suppress(subprocess.TimeoutExpired):
            return process.wait(seconds)
        _kill(process)
        return process.wait()

    def close(self) -> None:
        """Kill the process, whatever it is doing, and start no other."""
        self._is_closed = True
        process = self._process
        if process is not None:
            _kill(process)
            process.wait()

    def __del__(self) -> None:
        self.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a running process and the programs that it has started."""
    if process.poll() is None:  # otherwise its number may be another one's by now
        os.killpg(process.pid, signal.SIGKILL)


def main(niceness: int, memory_bytes: int) -> None:
    """Answer the calls on standard input, a socket, until it closes or is idle for as long as the last call allows."""
    os.nice(niceness)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    threading.Thread(target=_end_with_caller, daemon=True).start()
    connection, idle_seconds = Connection(0), None
    with suppress(EOFError, ConnectionError):
        while connection.poll(idle_seconds):
            idle_seconds, seconds, function, arguments, keywords = connection.recv()
            connection.send(_answer(seconds, function, arguments, keywords))


def _end_with_caller() -> None:
    watch = select.poll()
    watch.register(0, 0)  # only reports that the other end is closed
    watch.poll()
    os.killpg(0, signal.SIGKILL)


def restart_clock(seconds: float) -> None:
    """Give the running call `seconds` of CPU time from now on, for its next stage; without limits, do nothing."""
    if signal.getitimer(signal.ITIMER_PROF)[0]:
        signal.setitimer(signal.ITIMER_PROF, seconds)


@cache
def forbid_network() -> None:
    """Block all further network access of this process. Does nothing in a process without limits."""

    def refuse(event: str, _arguments: object) -> None:
        if event in _NETWORK_EVENTS:
            raise PermissionError("this process may not reach the network")

    if signal.getitimer(signal.ITIMER_PROF)[0]:
        sys.addaudithook(refuse)


def _answer(
    seconds: float, function: Callable[..., object], arguments: tuple[object, ...], keywords: dict[str, object]
) -> tuple[bool, object]:
    # Not RLIMIT_CPU, which counts from the start of the process, by a clock that drifts away from time.process_time.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return True, function(*arguments, **keywords)
    except MemoryError:
        return False, LimitExceededError(f"takes more than {resource.getrlimit(resource.RLIMIT_AS)[0] >> 20:,} MB of memory")
    except Exception as error:  # noqa: BLE001 - the caller raises it again
        return False, error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
    os._exit(0)  # without the work that libraries do when the interpreter ends
