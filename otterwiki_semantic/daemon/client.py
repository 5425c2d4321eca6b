"""The index as every other process sees it: questions to the owner over its socket, and an owner started when there is none."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from otterwiki_semantic.core.errors import DaemonForeignError, DaemonMismatchError, DaemonUnavailableError
from otterwiki_semantic.core.records import (
    Answer,
    Filters,
    IndexStatus,
    Insight,
    PageInspection,
    PageLinks,
    PageList,
    RebuildStatus,
    RelatedPages,
    SearchOptions,
    WikiMap,
)
from otterwiki_semantic.core.settings import SECRETS, Settings
from otterwiki_semantic.daemon.probe import peer_user
from otterwiki_semantic.daemon.protocol import (
    ENDED_IN_ORDER,
    LIFELINE,
    MAX_REPLY_BYTES,
    REPORT,
    STARTING,
    code_version,
    encode,
    error_from,
    revive,
    secrets_environment,
    settings_argument,
    settings_fingerprint,
    socket_path,
)

_ANSWER_SECONDS = 15.0
_RELATED_SECONDS = 5.0
"""Related pages are shown unasked, and nobody waits for them."""
_METRICS_SECONDS = 5.0
"""Prometheus itself waits for 10 s unless it is told otherwise."""
_NOTIFY_SECONDS = 0.05
_RETRY_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 30
_FOREIGN_SECONDS = 7.0
"""After so long an owner of another repository that nobody uses has ended."""
_MOST_IDLE = 8
"""Connections kept for the next questions; as many threads wait in the owner."""
_GONE = (FileNotFoundError, NotADirectoryError, ConnectionError, BlockingIOError, EOFError)
_SECRETS = re.compile("OTTERWIKI_API_KEY|MCP_AUTH_TOKEN|SECRET_KEY|MAIL_PASSWORD|SQLALCHEMY_DATABASE_URI|GIT_REMOTE_.*")
"""Settings of the wiki that are no business of the owner's."""

log = logging.getLogger(__name__)


class IndexClient:
    """An `IndexService` that asks the owner. Holds no thread, client or model that a fork would break.

    An owner started here prints its warnings on this process's standard error, unless it is to be `quiet`; its log has all.
    Errors: `DaemonUnavailableError` when the owner does not answer in time and none can be started; else what the owner raises.
    """

    def __init__(self, settings: Settings, *, quiet: bool = False) -> None:
        self._settings = settings
        self._quiet = quiet
        self._starting = threading.Lock()
        self._failures = 0
        self._not_before = 0.0
        self._foreign_since: float | None = None
        """Since when the owner that answers is of another repository."""
        self._why = ""
        """Why the owner started last could not work."""
        self._report: int | None = None
        """The reading end of the owner's report: it has an end when the owner has."""
        self._lifeline: int | None = None
        self._lease: tuple[int, socket.socket] | None = None
        self._idle: deque[tuple[int, socket.socket]] = deque()
        """Connections that may be used again, with the process that opened them."""

    def start(self) -> None:
        """Start the owner unless one runs; returns at once. Errors: `DaemonUnavailableError`."""
        try:
            self._hold_lease()
        except OSError:
            self._start_owner()

    def search(self, queries: Sequence[str], options: SearchOptions) -> list[Answer]:
        """See `IndexService`."""
        seconds = _ANSWER_SECONDS + options.wait
        return [revive(Answer, answer) for answer in self._call("search", seconds, queries=list(queries), options=options)]

    def related(self, path: str, n: int) -> RelatedPages:
        """See `IndexService`."""
        return revive(RelatedPages, self._call("related", _RELATED_SECONDS, path=path, n=n))

    def status(self) -> IndexStatus:
        """See `IndexService`."""
        return revive(IndexStatus, self._call("status"))

    def insight(self) -> Insight:
        """See `IndexService`."""
        return revive(Insight, self._call("insight"))

    def inspect_page(self, path: str) -> PageInspection:
        """See `IndexService`."""
        return revive(PageInspection, self._call("inspect_page", path=path))

    def reindex(self, *, full: bool = False) -> RebuildStatus:
        """See `IndexService`."""
        return revive(RebuildStatus, self._call("reindex", full=full))

    def refresh(self, paths: Sequence[str]) -> tuple[str, ...]:
        """See `IndexService`."""
        return tuple(self._call("refresh", paths=list(paths)))

    def pages(self, filters: Filters, limit: int, offset: int) -> PageList:
        """See `IndexService`."""
        return revive(PageList, self._call("pages", filters=filters, limit=limit, offset=offset))

    def links(self, path: str) -> PageLinks:
        """See `IndexService`."""
        return revive(PageLinks, self._call("links", path=path))

    def map(self) -> WikiMap:
        """See `IndexService`."""
        return revive(WikiMap, self._call("map"))

    def metrics(self) -> str:
        """See `IndexService`."""
        return str(self._call("metrics", _METRICS_SECONDS))

    def notify(self) -> None:
        """See `IndexService`."""
        try:
            with self._connect(_NOTIFY_SECONDS) as connection:
                connection.sendall(self._request("notify", {}))
            self._hold_lease()
        except _GONE:
            self._start_quietly()
        except (OSError, DaemonUnavailableError) as error:
            log.warning("the index was not told of a change, it will see it at its next look: %s", error)

    def _start_quietly(self) -> None:
        try:
            self.start()
        except DaemonUnavailableError as error:
            log.warning("%s", error)

    def close(self) -> None:
        """Let go of the owner; it ends when nobody else uses it."""
        if self._lease is not None:
            self._lease[1].close()
            self._lease = None
        while self._idle:
            self._idle.pop()[1].close()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._lifeline, self._report):
            if pipe is not None:
                os.close(pipe)
        self._lifeline = self._report = None

    def _call(self, call: str, seconds: float = _ANSWER_SECONDS, **arguments: Any) -> Any:
        deadline = time.monotonic() + seconds
        while True:
            try:
                reply = self._exchange(self._request(call, arguments), deadline)
            except TimeoutError:
                raise DaemonUnavailableError(f"the index process did not answer within {seconds:.0f} s") from None
            except _GONE as error:
                if time.monotonic() > deadline:
                    raise DaemonUnavailableError(f"the index process cannot be reached: {error}") from error
                self._start_owner()
                time.sleep(_RETRY_SECONDS)
                continue
            except OSError as error:
                raise DaemonUnavailableError(f"the index process cannot be reached: {error}") from error
            if "error" not in reply:
                self._foreign_since = None
                return reply["result"]
            error_of_owner = error_from(reply["error"])
            is_temporary = isinstance(error_of_owner, DaemonMismatchError) and not self._is_to_stay(error_of_owner)
            if not is_temporary or time.monotonic() > deadline:
                raise error_of_owner
            time.sleep(_RETRY_SECONDS)

    def _is_to_stay(self, error: DaemonMismatchError) -> bool:
        """Whether an owner of another repository would have ended by now if it were not used."""
        if not isinstance(error, DaemonForeignError):
            return False
        if self._foreign_since is None:
            self._foreign_since = time.monotonic()
        return time.monotonic() - self._foreign_since > _FOREIGN_SECONDS

    def _request(self, call: str, arguments: dict[str, Any]) -> bytes:
        repository = str(self._settings.repository)
        settings = None if self._quiet else settings_fingerprint(self._settings)
        request = {"version": code_version(), "repository": repository, "settings": settings}
        return encode({**request, "call": call, "arguments": arguments})

    def _exchange(self, request: bytes, deadline: float) -> dict[str, Any]:
        timeout = max(_RETRY_SECONDS, deadline - time.monotonic())
        connection = self._idle_connection(timeout) or self._connect(timeout)
        try:
            connection.sendall(request)
            with connection.makefile("rb") as stream:
                line = stream.readline(MAX_REPLY_BYTES)
            if not line.endswith(b"\n"):
                raise EOFError("it ended before it had answered")
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        self._failures, self._not_before = 0, 0.0
        with suppress(OSError):
            self._hold_lease()
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _idle_connection(self, timeout: float) -> socket.socket | None:
        """Give a connection of this process that is open and that nobody uses."""
        while self._idle:
            try:
                opened_by, connection = self._idle.pop()
            except IndexError:  # another thread was faster
                return None
            connection.setblocking(False)
            if opened_by == os.getpid() and _is_silent(connection):
                connection.settimeout(timeout)
                return connection
            connection.close()
        return None

    def _keep(self, connection: socket.socket) -> None:
        if len(self._idle) < _MOST_IDLE:
            self._idle.append((os.getpid(), connection))
        else:
            connection.close()

    def _connect(self, timeout: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            path = socket_path(self._settings.data_dir)
            connection.connect(str(path))
            if peer_user(connection) not in {os.geteuid(), 0}:
                raise DaemonUnavailableError(f"{path} belongs to another user's process; remove it")
        except BaseException:
            connection.close()
            raise
        return connection

    def _hold_lease(self) -> None:
        """Keep one connection open for as long as this process lives, so that the owner does, too."""
        if self._lease is None or self._lease[0] != os.getpid() or _is_closed(self._lease[1]):
            connection = self._connect(_NOTIFY_SECONDS)
            try:
                connection.sendall(self._request("hello", {}))
            except OSError:
                connection.close()
                raise
            connection.setblocking(False)
            if self._lease is not None:
                self._lease[1].close()
            self._lease = (os.getpid(), connection)

    def _start_owner(self) -> None:
        """Start an owner unless one is on its way; after some that did not get so far as to answer, more and more seldom."""
        with self._starting:
            if self._is_on_its_way():
                return
            if time.monotonic() < self._not_before:
                raise DaemonUnavailableError(f"the index process cannot work: {self._why}")
            self._spawn()

    def _is_on_its_way(self) -> bool:
        """Whether an owner started here has not ended; a process that was forked since knows of it, too."""
        if self._report is None:
            return False
        try:
            report = os.read(self._report, 4096).decode("utf-8", errors="replace")
        except BlockingIOError:
            return True
        os.close(self._report)
        self._report = None
        if report != ENDED_IN_ORDER:
            self._failures += 1
            self._why = report or f"it was killed; see the wiki's log and {self._settings.data_dir / 'owner.log'}"
            pause = 0 if self._failures == 1 else min(2**self._failures, _LONGEST_PAUSE_SECONDS)
            self._not_before = time.monotonic() + pause
        return False

    def _spawn(self) -> None:
        """Start an owner, unless another process just does. It is spawned, not forked: nothing of this process goes along."""
        with ExitStack() as opened:
            try:
                starting = self._claim_start()
                if starting is None:
                    return
                opened.callback(os.close, starting)
                self._close_pipes()
                theirs, self._lifeline = os.pipe()
                opened.callback(os.close, theirs)
                self._report, report = os.pipe()
                opened.callback(os.close, report)
                os.set_blocking(self._report, False)
                self._spawn_with({theirs: LIFELINE, report: REPORT, starting: STARTING})
            except OSError as error:
                raise DaemonUnavailableError(f"the index process cannot be started: {error}") from error

    def _spawn_with(self, given: dict[int, int]) -> None:
        """Start the process, which finds each of the given files under another number."""
        environment = {name: value for name, value in os.environ.items() if not _SECRETS.fullmatch(name)}
        environment = {name: value for name, value in environment.items() if name not in SECRETS.values()}
        environment |= secrets_environment(self._settings)
        environment["OPENBLAS_NUM_THREADS"] = "1"  # numpy's threads wait for each other, and searches have threads of their own
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        command = [_python(), "-P", "-m", "otterwiki_semantic.daemon.detached", settings_argument(self._settings)]
        closed = [0, 1, 2] if self._quiet else [0, 1]
        far = max(*given, *given.values()) + 1  # by way of numbers that are free: one of ours may be another's there
        files = [
            *((os.POSIX_SPAWN_DUP2, own, far + n) for n, own in enumerate(given)),
            *((os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in closed),
            *((os.POSIX_SPAWN_DUP2, far + n, number) for n, number in enumerate(given.values())),
        ]
        launcher = os.posix_spawnp(command[0], command, environment, file_actions=files, setsid=True)
        with suppress(ChildProcessError):  # whoever waits for all its children, as uWSGI does, was faster
            os.waitpid(launcher, 0)

    def _claim_start(self) -> int | None:
        """Give the locked file of whoever starts an owner, None if another process holds it; it is passed on to the owner."""
        data_dir = self._settings.data_dir
        try:
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise DaemonUnavailableError(f"the data directory cannot be made ({error}); set SEMANTIC_DATA_DIR") from error
        if data_dir.stat().st_uid != os.geteuid():
            raise DaemonUnavailableError(f"{data_dir} belongs to another user; do this as the user that the wiki runs as")
        if not os.access(data_dir, os.W_OK | os.X_OK):
            raise DaemonUnavailableError(f"{data_dir} is not writable; set SEMANTIC_DATA_DIR to a directory that is")
        try:
            lock = os.open(data_dir / "start.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DaemonUnavailableError(
                f"nothing can be written to {data_dir} ({error}); see that its disk is not full"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        except OSError:  # a file system without locks
            os.close(lock)
            raise
        return lock


def _is_silent(connection: socket.socket) -> bool:
    """Tell whether the other side is there, and has nothing more to say."""
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _is_closed(connection: socket.socket) -> bool:
    """Tell whether the other side has gone; its reply to the greeting is read here and of no interest."""
    try:
        return connection.recv(4096) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _python() -> str:
    """Give the interpreter to start; inside a server that embeds Python, `sys.executable` is that server."""
    if Path(sys.executable or "").name.startswith("python"):
        return sys.executable
    candidates = [Path(prefix) / "bin" / "python3" for prefix in (sys.prefix, sys.base_prefix)]
    return next((str(path) for path in candidates if path.exists()), "python3")
