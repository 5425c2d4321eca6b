"""The index as every other process sees it: questions to the owner over its socket, and an owner started when there is none."""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from otterwiki_semantic import __version__
from otterwiki_semantic.config import Settings
from otterwiki_semantic.errors import OwnerMismatchError, OwnerUnavailableError
from otterwiki_semantic.protocol import MAX_REPLY_BYTES, encode, error_from, revive, settings_argument, socket_path
from otterwiki_semantic.records import Answer, IndexStatus, RebuildStatus, RelatedPages, SearchOptions

_ANSWER_SECONDS = 15.0
_NOTIFY_SECONDS = 0.05
_RETRY_SECONDS = 0.05
_STEADY_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 30
_GONE = (FileNotFoundError, NotADirectoryError, ConnectionError, BlockingIOError, EOFError)
_LIFELINE = 3
"""The number under which the owner finds the reading end of the pipe; the only file it inherits beside the streams."""
_SECRETS = ("OTTERWIKI_API_KEY", "SECRET_KEY")

log = logging.getLogger(__name__)


class RemoteIndex:
    """An `IndexService` that asks the owner. Holds no thread, client or model that a fork would break.

    An owner started here prints its warnings on this process's standard error, unless it is to be `quiet`; its log has all.
    Errors: `OwnerUnavailableError` when the owner does not answer in time and none can be started; else what the owner raises.
    """

    def __init__(self, settings: Settings, *, quiet: bool = False) -> None:
        self._settings = settings
        self._quiet = quiet
        self._starting = threading.Lock()
        self._started = 0.0
        self._failures = 0
        self._owner: int | None = None
        self._status: int | None = None
        self._lifeline: int | None = None
        self._lease: tuple[int, socket.socket] | None = None

    def start(self) -> None:
        """Start the owner unless one runs; returns at once. Errors: `OwnerUnavailableError`."""
        try:
            self._hold_lease()
        except OSError:
            self._start_owner()

    def search(self, queries: Sequence[str], options: SearchOptions) -> list[Answer]:
        """See `IndexService`."""
        return [revive(Answer, answer) for answer in self._call("search", queries=list(queries), options=options)]

    def related(self, path: str, n: int) -> RelatedPages:
        """See `IndexService`."""
        return revive(RelatedPages, self._call("related", path=path, n=n))

    def status(self) -> IndexStatus:
        """See `IndexService`."""
        return revive(IndexStatus, self._call("status"))

    def reindex(self) -> RebuildStatus:
        """See `IndexService`."""
        return revive(RebuildStatus, self._call("reindex"))

    def notify(self) -> None:
        """See `IndexService`."""
        try:
            with self._connect(_NOTIFY_SECONDS) as connection:
                connection.sendall(self._request("notify", {}))
            self._hold_lease()
        except _GONE:
            self._start_quietly()
        except (OSError, OwnerUnavailableError) as error:
            log.warning("the index was not told of a change, it will see it at its next look: %s", error)

    def _start_quietly(self) -> None:
        try:
            self.start()
        except OwnerUnavailableError as error:
            log.warning("%s", error)

    def close(self) -> None:
        """Let go of the owner; it ends when nobody else uses it."""
        if self._lease is not None:
            self._lease[1].close()
            self._lease = None
        self._close_lifeline()

    def _close_lifeline(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def _call(self, call: str, **arguments: Any) -> Any:
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                reply = self._exchange(self._request(call, arguments), deadline)
            except TimeoutError:
                raise OwnerUnavailableError(f"the index process did not answer within {_ANSWER_SECONDS:.0f} s") from None
            except _GONE as error:
                if time.monotonic() > deadline:
                    raise OwnerUnavailableError(f"the index process cannot be reached: {error}") from error
                self._start_owner()
                time.sleep(_RETRY_SECONDS)
                continue
            except OSError as error:
                raise OwnerUnavailableError(f"the index process cannot be reached: {error}") from error
            if "error" not in reply:
                return reply["result"]
            error_of_owner = error_from(reply["error"])
            if not isinstance(error_of_owner, OwnerMismatchError) or time.monotonic() > deadline:
                raise error_of_owner
            time.sleep(_RETRY_SECONDS)

    def _request(self, call: str, arguments: dict[str, Any]) -> bytes:
        repository = str(self._settings.repository)
        return encode({"version": __version__, "repository": repository, "call": call, "arguments": arguments})

    def _exchange(self, request: bytes, deadline: float) -> dict[str, Any]:
        with self._connect(max(_RETRY_SECONDS, deadline - time.monotonic())) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as stream:
                line = stream.readline(MAX_REPLY_BYTES)
        if not line.endswith(b"\n"):
            raise EOFError("it ended before it had answered")
        with suppress(OSError):
            self._hold_lease()
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _connect(self, timeout: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            connection.connect(str(socket_path(self._settings.data_dir)))
        except BaseException:
            connection.close()
            raise
        return connection

    def _hold_lease(self) -> None:
        """Keep one connection open for as long as this process lives, so that the owner does, too."""
        if self._lease is None or self._lease[0] != os.getpid() or _is_closed(self._lease[1]):
            connection = self._connect(_NOTIFY_SECONDS)
            connection.sendall(self._request("hello", {}))
            connection.setblocking(False)
            if self._lease is not None:
                self._lease[1].close()
            self._lease = (os.getpid(), connection)

    def _start_owner(self) -> None:
        with self._starting:
            self._reap()
            if self._owner is not None:
                return
            age = time.monotonic() - self._started
            self._failures = self._failures + 1 if self._status and age < _STEADY_SECONDS else 0
            if self._failures > 1 and age < min(2**self._failures, _LONGEST_PAUSE_SECONDS):
                self._failures -= 1
                raise OwnerUnavailableError(
                    f"the index process ended with status {self._status};"
                    f" see the wiki's log and {self._settings.data_dir / 'owner.log'}"
                )
            self._started = time.monotonic()
            self._owner, self._status = self._spawn(), None

    def _reap(self) -> None:
        """Note the exit status of the owner started here, once it has ended."""
        if self._owner is None:
            return
        try:
            pid, status = os.waitpid(self._owner, os.WNOHANG)
        except ChildProcessError:  # after a fork it is another process's child
            self._owner = None
            return
        if pid:
            self._owner, self._status = None, os.waitstatus_to_exitcode(status)

    def _spawn(self) -> int:
        """Start an owner and give its process id. It is spawned, not forked: nothing of this process goes along."""
        try:
            self._settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise OwnerUnavailableError(f"the data directory cannot be made ({error}); set SEMANTIC_DATA_DIR") from error
        if self._settings.data_dir.stat().st_uid != os.geteuid():
            raise OwnerUnavailableError(
                f"{self._settings.data_dir} belongs to another user; do this as the user that the wiki runs as"
            )
        if not os.access(self._settings.data_dir, os.W_OK | os.X_OK):
            raise OwnerUnavailableError(
                f"{self._settings.data_dir} is not writable; set SEMANTIC_DATA_DIR to a directory that is"
            )
        self._close_lifeline()
        theirs, self._lifeline = os.pipe()
        environment = {name: value for name, value in os.environ.items() if name not in _SECRETS}
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        command = [_python(), "-P", "-m", "otterwiki_semantic.owner", settings_argument(self._settings), str(_LIFELINE)]
        closed = [0, 1, 2] if self._quiet else [0, 1]
        files = [
            *((os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in closed),
            (os.POSIX_SPAWN_DUP2, theirs, _LIFELINE),
        ]
        try:
            return os.posix_spawnp(command[0], command, environment, file_actions=files, setsid=True)
        except OSError as error:
            raise OwnerUnavailableError(f"the index process cannot be started: {error}") from error
        finally:
            os.close(theirs)


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
