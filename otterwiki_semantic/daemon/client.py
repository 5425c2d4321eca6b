"""The client of the index daemon."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar, get_type_hints

import msgspec

from otterwiki_semantic.core.errors import ConfigError, DaemonForeignError, DaemonMismatchError, DaemonUnavailableError
from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.core.serialization import decode
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import protocol
from otterwiki_semantic.daemon.interface import IndexService
from otterwiki_semantic.daemon.launcher import DaemonLauncher

_ANSWER_SECONDS = 15.0
_SECONDS = {  # if not _ANSWER_SECONDS
    "related": 5.0,  # related pages are not worth a longer wait
    "draft_links": 5.0,
    "suggest": 5.0,  # outdated once the user has typed on
    "metrics": 5.0,  # Prometheus waits for 10 s by default
}
_NOTIFY_SECONDS = 0.05
_HELLO_SECONDS = 0.5
_RETRY_SECONDS = 0.05
_FOREIGN_SECONDS = 7.0
"""The time after which an unused daemon of another repository has exited."""
_MAX_IDLE = 8
"""Idle connections kept open; each has a thread in the daemon."""
_GONE = (FileNotFoundError, NotADirectoryError, ConnectionError, BlockingIOError, EOFError)

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)


def _remote(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[IndexClient, P], R]:
    """Return a method of the client that calls the method of `IndexService` in the daemon."""
    result = get_type_hints(method)["return"]

    def call(self: IndexClient, /, *values: P.args, **named: P.kwargs) -> R:
        returned: R = decode(self.fetch_json(method, *values, **named), result)
        return returned

    update_wrapper(call, method)
    return call


class Unchanged(Exception):  # noqa: N818 - no error
    """The index still has a version that the caller knows, so that the answer is unchanged."""


@dataclass
class Condition:
    """The versions known to a conditional call, and the version of its reply: see `conditional`."""

    known: tuple[str, ...] | None
    """None once the call was made."""
    version: str | None = None


_CONDITION: ContextVar[Condition | None] = ContextVar("condition", default=None)


@contextmanager
def conditional(known: Iterable[str]) -> Iterator[Condition]:
    """Make the first call in the block conditional: it raises `Unchanged` if the index's version is `known`."""
    condition = Condition(tuple(known))
    token = _CONDITION.set(condition)
    try:
        yield condition
    finally:
        _CONDITION.reset(token)


class IndexClient:
    """An `IndexService` that calls the daemon, and starts it if none runs. Holds no thread that a fork would break.

    Unless `quiet`, a daemon started here prints its warnings on this process's standard error. Methods raise the daemon's
    errors, and `DaemonUnavailableError` if it does not answer in time or cannot be started.
    """

    def __init__(self, settings: Settings, *, quiet: bool = False) -> None:
        self._settings = settings
        self._quiet = quiet
        self._launcher = DaemonLauncher(settings, quiet=quiet)
        self._foreign_since: float | None = None
        """When a daemon of another repository first answered."""
        self._lease: tuple[int, socket.socket] | None = None
        """A connection that keeps the daemon alive and carries notifications, and the process that opened it."""
        self._idle: deque[tuple[int, socket.socket]] = deque()
        """Reusable connections, and the processes that opened them."""

    search = _remote(IndexService.search)
    ask = _remote(IndexService.ask)
    ask_progress = _remote(IndexService.ask_progress)
    cancel_ask = _remote(IndexService.cancel_ask)
    suggest = _remote(IndexService.suggest)
    related = _remote(IndexService.related)
    draft_links = _remote(IndexService.draft_links)
    version = _remote(IndexService.version)
    status = _remote(IndexService.status)
    insight = _remote(IndexService.insight)
    inspect_page = _remote(IndexService.inspect_page)
    reindex = _remote(IndexService.reindex)
    roll_back = _remote(IndexService.roll_back)
    refresh = _remote(IndexService.refresh)
    job = _remote(IndexService.job)
    pages = _remote(IndexService.pages)
    links = _remote(IndexService.links)
    map = _remote(IndexService.map)
    health = _remote(IndexService.health)
    dismiss = _remote(IndexService.dismiss)
    metrics = _remote(IndexService.metrics)

    def notify(self) -> None:
        try:
            try:
                self._hold_lease().sendall(self._request("notify"))
            except _GONE:
                self.start()
        except (OSError, DaemonUnavailableError) as error:
            log.warning("the index daemon was not notified of a change and will find it at its next check: %s", error)

    def start(self) -> None:
        """Start the daemon unless one runs that accepts this client; does not wait for it. Errors: `DaemonUnavailableError`."""
        try:
            is_accepted = self._is_accepted(self._hold_lease())
        except OSError:
            is_accepted = False
        if not is_accepted:
            self._launcher.ensure_running()

    def close(self) -> None:
        """Close all connections; the daemon exits when it has no other client."""
        if self._lease is not None:
            self._lease[1].close()
            self._lease = None
        while self._idle:
            self._idle.pop()[1].close()
        self._launcher.close()

    def fetch_json(self, method: Callable[Concatenate[Any, P], Any], *values: P.args, **named: P.kwargs) -> bytes:
        """Call a method of `IndexService` in the daemon, and return the JSON of its result."""
        given = (*values, *named.values())
        waits = sum(each.wait_seconds for each in given if isinstance(each, SearchOptions) and each.wait)
        seconds = _SECONDS.get(method.__name__, _ANSWER_SECONDS) + waits
        condition = _CONDITION.get()
        known = None
        if condition is not None:
            known, condition.known = condition.known, None
        request = self._request(method.__name__, protocol.encode_arguments(method, *values, **named), known)
        reply = self._reply(request, seconds)
        if condition is not None and known is not None:
            condition.version = reply.version
            if not reply.result:
                raise Unchanged
        return reply.result

    def _reply(self, request: bytes, seconds: float) -> protocol.Reply:
        deadline = time.monotonic() + seconds
        while True:
            try:
                reply = protocol.read_reply(self._exchange(request, deadline))
            except TimeoutError:
                raise DaemonUnavailableError(f"the index daemon did not answer within {seconds:.0f} s") from None
            except _GONE as error:
                if time.monotonic() > deadline:
                    raise DaemonUnavailableError(f"the index daemon cannot be reached: {error}") from error
                self._launcher.ensure_running()
            except OSError as error:
                raise DaemonUnavailableError(f"the index daemon cannot be reached: {error}") from error
            except DaemonMismatchError as error:
                if self._is_to_stay(error) or time.monotonic() > deadline:
                    raise
            else:
                self._foreign_since = None
                return reply
            time.sleep(_RETRY_SECONDS)

    def _is_to_stay(self, error: DaemonMismatchError) -> bool:
        if not isinstance(error, DaemonForeignError):
            return False
        if self._foreign_since is None:
            self._foreign_since = time.monotonic()
        return time.monotonic() - self._foreign_since > _FOREIGN_SECONDS

    def _request(
        self, call: str, arguments: msgspec.Raw = protocol.NO_ARGUMENTS, known: tuple[str, ...] | None = None
    ) -> bytes:
        fingerprint = None if self._quiet else protocol.settings_fingerprint(self._settings)
        return protocol.encode_line(
            protocol.Request(call, protocol.code_version(), str(self._settings.repository), fingerprint, arguments, known)
        )

    def _exchange(self, request: bytes, deadline: float) -> bytes:
        timeout = max(_RETRY_SECONDS, deadline - time.monotonic())
        connection = self._idle_connection(timeout) or self._connect(timeout)
        try:
            connection.sendall(request)
            with connection.makefile("rb") as stream:
                line = stream.readline(protocol.MAX_REPLY_BYTES)
            if not line.endswith(b"\n"):
                raise EOFError("it ended before it answered")
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        self._launcher.answered()
        with suppress(OSError):
            self._hold_lease()
        return line

    def _idle_connection(self, timeout: float) -> socket.socket | None:
        with suppress(IndexError):  # none is left
            while True:
                opened_by, connection = self._idle.pop()
                connection.setblocking(False)
                if opened_by == os.getpid() and _received(connection) is None:
                    connection.settimeout(timeout)
                    return connection
                connection.close()
        return None

    def _keep(self, connection: socket.socket) -> None:
        if len(self._idle) < _MAX_IDLE:
            self._idle.append((os.getpid(), connection))
        else:
            connection.close()

    def _connect(self, timeout: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            path = protocol.socket_path(self._settings.data_dir)
            connection.connect(str(path))
            if protocol.peer_user(connection) not in {os.geteuid(), 0}:
                raise DaemonUnavailableError(f"{path} belongs to another user's process; remove it")
        except BaseException:
            connection.close()
            raise
        return connection

    def _hold_lease(self) -> socket.socket:
        if self._lease is None or self._lease[0] != os.getpid() or _received(self._lease[1]) == b"":
            connection = self._connect(_NOTIFY_SECONDS)
            try:
                connection.sendall(self._request(protocol.HELLO))
            except OSError:
                connection.close()
                raise
            connection.setblocking(False)
            if self._lease is not None:
                self._lease[1].close()
            self._lease = (os.getpid(), connection)
        return self._lease[1]

    @staticmethod
    def _is_accepted(lease: socket.socket) -> bool:
        """Return False if the daemon ends because this client has another version or other settings."""
        lease.settimeout(_HELLO_SECONDS)
        try:
            protocol.read_reply(lease.recv(4096))
        except DaemonMismatchError as error:
            return isinstance(error, DaemonForeignError)
        except TimeoutError:  # it is busy
            return True
        except (LookupError, ValueError):  # the end of the connection, or an answer of another version
            return False
        finally:
            lease.setblocking(False)
        return True


class DisabledIndex(IndexClient):
    """The index of a wiki with an invalid setting: every call raises its `ConfigError`, and no daemon is started."""

    def __init__(self, settings: Settings, error: ConfigError) -> None:
        super().__init__(settings)
        self._error = error

    def notify(self) -> None:
        pass

    def start(self) -> None:
        raise ConfigError(f"search is off until this is corrected and the wiki restarted: {self._error}")

    def fetch_json(self, method: Callable[Concatenate[Any, P], Any], *values: P.args, **named: P.kwargs) -> bytes:  # noqa: ARG002
        raise ConfigError(f"search is off: {self._error.public}")


def _received(connection: socket.socket) -> bytes | None:
    """Return what has arrived on a non-blocking connection: None if nothing, empty if it is closed."""
    try:
        return connection.recv(4096)
    except BlockingIOError:
        return None
    except OSError:
        return b""
