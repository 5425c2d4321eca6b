"""Start the index daemon: one process at a time, with backoff after failures."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from otterwiki_semantic.core.errors import DaemonUnavailableError
from otterwiki_semantic.core.files import make_private, open_private, try_lock
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import protocol

_LONGEST_PAUSE_SECONDS = 30
_DETACHED = "import os, sys; os.fork() and os._exit(0); from otterwiki_semantic.daemon.process import main; sys.exit(main())"
"""Starts the daemon as a detached process. It must not be a child of the server: a master process may wait for all its children
before it exits (uWSGI does), while the daemon waits for the server. So a new interpreter forks at once and exits.
"""
_NOT_PASSED = re.compile(
    "SEMANTIC_.*|OTTERWIKI_API_KEY|MCP_AUTH_TOKEN|SECRET_KEY|MAIL_PASSWORD|SQLALCHEMY_DATABASE_URI|GIT_REMOTE_.*"
)
"""Variables that the daemon does not need, such as secrets of the wiki; it gets the settings themselves."""


class DaemonLauncher:
    """Start the daemon of a data directory. Holds no thread that a fork would break.

    Two pipes connect both processes: the lifeline closes when the starter exits; the report closes when the daemon exits, and
    says why. The daemon prints its warnings and announcements on this process's standard error, unless it is `quiet`.
    """

    def __init__(self, settings: Settings, *, quiet: bool) -> None:
        self._settings = settings
        self._quiet = quiet
        self._starting = threading.Lock()
        self._failures = 0
        self._not_before = 0.0
        self._reason = ""
        """Why the last daemon could not work."""
        self._report: int | None = None
        """The reading end of the daemon's report."""
        self._lifeline: int | None = None

    def ensure_running(self) -> None:
        """Start a daemon unless one is starting. Errors: `DaemonUnavailableError`, also during the pause after failures."""
        with self._starting:
            if self._is_starting():
                return
            if time.monotonic() < self._not_before:
                raise DaemonUnavailableError(f"the index daemon cannot work: {self._reason}")
            self._spawn()

    def answered(self) -> None:
        """Reset the backoff after a daemon has answered."""
        self._failures, self._not_before = 0, 0.0

    def close(self) -> None:
        """Close the pipes; the daemon exits when it has no other client."""
        for pipe in (self._lifeline, self._report):
            if pipe is not None:
                os.close(pipe)
        self._lifeline = self._report = None

    def _is_starting(self) -> bool:
        """Whether a daemon started here is still running; also valid in processes forked since."""
        if self._report is None:
            return False
        try:
            report = os.read(self._report, 4096).decode("utf-8", errors="replace")
        except BlockingIOError:
            return True
        os.close(self._report)
        self._report = None
        if report != protocol.ENDED_IN_ORDER:
            self._failures += 1
            self._reason = report or f"it was killed; see the wiki's log and {self._settings.data_dir / 'owner.log'}"
            pause = 0 if self._failures == 1 else min(2**self._failures, _LONGEST_PAUSE_SECONDS)
            self._not_before = time.monotonic() + pause
        return False

    def _spawn(self) -> None:
        with ExitStack() as opened:
            try:
                starting = self._claim_start(opened)
                if starting is None:
                    return
                self.close()
                theirs, self._lifeline = os.pipe()
                opened.callback(os.close, theirs)
                self._report, report = os.pipe()
                opened.callback(os.close, report)
                os.set_blocking(self._report, False)
                self._spawn_with({theirs: protocol.LIFELINE, report: protocol.REPORT, starting: protocol.STARTING})
            except OSError as error:
                raise DaemonUnavailableError(f"the index daemon cannot be started: {error}") from error

    def _spawn_with(self, given: dict[int, int]) -> None:
        """Start the process with the given files under other descriptors; it inherits nothing else."""
        environment = {name: value for name, value in os.environ.items() if not _NOT_PASSED.fullmatch(name)}
        environment[protocol.SETTINGS] = protocol.encode_settings(self._settings)
        environment["OPENBLAS_NUM_THREADS"] = "1"  # searches have their own threads
        environment.setdefault("MALLOC_ARENA_MAX", "2")  # glibc keeps freed memory for each of many short-lived threads
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        command = [_python(), "-P", "-c", _DETACHED, str(self._settings.data_dir)]  # the directory is for people
        closed = [0, 1, 2] if self._quiet else [0, 1]
        far = max(*given, *given.values()) + 1  # via free descriptors, because the numbers may overlap
        files = [
            *((os.POSIX_SPAWN_DUP2, own, far + n) for n, own in enumerate(given)),
            *((os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in closed),
            *((os.POSIX_SPAWN_DUP2, far + n, number) for n, number in enumerate(given.values())),
        ]
        process = os.posix_spawnp(command[0], command, environment, file_actions=files, setsid=True)
        with suppress(ChildProcessError):  # already reaped by a server that waits for all its children, such as uWSGI
            os.waitpid(process, 0)

    def _claim_start(self, opened: ExitStack) -> int | None:
        """Open and lock the file of the process that starts a daemon, which inherits it; None if another process has it."""
        data_dir = self._settings.data_dir
        try:
            make_private(data_dir)
        except OSError as error:
            raise DaemonUnavailableError(f"the data directory cannot be created ({error}); set SEMANTIC_DATA_DIR") from error
        if data_dir.stat().st_uid != os.geteuid():
            raise DaemonUnavailableError(f"{data_dir} belongs to another user; run this as the user that the wiki runs as")
        if not os.access(data_dir, os.W_OK | os.X_OK):
            raise DaemonUnavailableError(f"{data_dir} is not writable; set SEMANTIC_DATA_DIR to a directory that is")
        try:
            lock = open_private(data_dir / "start.lock")
        except OSError as error:
            raise DaemonUnavailableError(
                f"cannot write to {data_dir} ({error}); make sure that its disk is not full"
            ) from error
        opened.callback(os.close, lock)
        return lock if try_lock(lock) else None


def _python() -> str:
    """Return the interpreter to start; inside a server that embeds Python, `sys.executable` is the server."""
    if Path(sys.executable or "").name.startswith("python"):
        return sys.executable
    candidates = [Path(prefix) / "bin" / "python3" for prefix in (sys.prefix, sys.base_prefix)]
    return next((str(path) for path in candidates if path.exists()), "python3")
