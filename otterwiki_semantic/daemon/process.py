"""The process that owns an index: one a host and data directory, started by whoever needs the index first.

It is a fresh interpreter, never a fork, so that nothing of a web server is inherited; it holds the lock, the model, ChromaDB
and the scheduler's threads, and answers over a Unix socket. It ends a few seconds after the last process that uses it is gone:
the one that started it holds the other end of a pipe, which its forks share, and every other one keeps a connection open.
"""

from __future__ import annotations

import faulthandler
import fcntl
import io
import json
import logging
import logging.handlers
import os
import select
import signal
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from otterwiki_semantic import __version__
from otterwiki_semantic.core.errors import DaemonForeignError, DaemonMismatchError, IndexUnavailableError, SemanticError
from otterwiki_semantic.core.records import Filters, SearchOptions
from otterwiki_semantic.core.settings import SECRETS, Settings
from otterwiki_semantic.daemon.interface import IndexService
from otterwiki_semantic.daemon.protocol import (
    ENDED_IN_ORDER,
    LIFELINE,
    MAX_REQUEST_BYTES,
    MODEL_OPTIONS,
    REPORT,
    STARTING,
    WHO,
    code_version,
    encode,
    error_message,
    revive,
    settings_fingerprint,
    settings_from,
    socket_path,
)

_GRACE_SECONDS = 5.0
_OPENING_SECONDS = 10.0
_WATCH_SECONDS = 0.5
_STUCK_SECONDS = 120.0
_CLOSE_SECONDS = 10.0
_LINE_SECONDS = 10.0
"""How long a request may take to come whole, and a reply to be taken."""
_LOG_BYTES = 1 << 20
_LOCK_SECONDS = 0.1
_REASON_BYTES = 2_000
_MOST_FILES = 4096
_SWITCH_SECONDS = 0.001

log = logging.getLogger(__name__)


class _Opening:
    """The index, made in the background, so that the first question need not wait for it in vain."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ready = threading.Event()
        self._index: Any = None
        self._error: SemanticError | None = None

    def start(self) -> None:
        threading.Thread(target=self._open, name="opening", daemon=True).start()

    def _open(self) -> None:
        try:
            from otterwiki_semantic.daemon.engine import IndexEngine

            index = IndexEngine(self._settings)
            index.start()
            self._index = index
        except SemanticError as error:
            self._error = error
            log.error("the index cannot be opened: %s", error)
        except Exception as error:
            self._error = SemanticError(f"the index cannot be opened: {error}")
            log.exception("the index cannot be opened")
        finally:
            self._ready.set()

    @property
    def failure(self) -> str:
        """Why the index cannot be opened; empty if it can."""
        return str(self._error) if self._error is not None else ""

    def get(self, timeout: float) -> IndexService:
        if not self._ready.wait(timeout):
            raise IndexUnavailableError("the index is being opened")
        if self._error is not None:
            raise self._error
        return cast("IndexService", self._index)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: Path, index: _Opening, settings: Settings) -> None:
        self.index = index
        self.repository = settings.repository
        self.mark = settings_fingerprint(settings)
        self.users = 0
        self.is_ending = False
        self.last_use = time.monotonic()
        self._counting = threading.Lock()
        path.unlink(missing_ok=True)
        super().__init__(str(path), _Handler)
        path.chmod(0o600)

    def count_user(self, change: int) -> None:
        with self._counting:
            self.users += change
            self.last_use = time.monotonic()

    def end(self) -> None:
        """End in a moment; the thread that asks for it is not waited for."""
        self.is_ending = True
        threading.Thread(target=self.shutdown, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver's signature
        log.debug("a client went away", exc_info=True)


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        is_user = False
        try:
            while (line := self._read_line()) and not self.server.is_ending:  # who gets no answer asks the next owner
                message = self._understood(line)
                is_answer = "call" not in message
                if not is_answer and not is_user:
                    is_user = True  # before it is answered, which may take a while
                    self.server.count_user(+1)
                self.wfile.write(encode(message if is_answer else self._reply(message)))
                if len(line) > MAX_REQUEST_BYTES:
                    return  # the rest of it would be taken for the next one
        finally:
            if is_user:
                self.server.count_user(-1)

    def _read_line(self) -> bytes:
        """Give the next request, which may be long in coming; once begun it has to come soon, or the connection is closed."""
        self.connection.settimeout(None)
        cast("io.BufferedReader", self.rfile).peek(1)
        self.connection.settimeout(_LINE_SECONDS)
        return self.rfile.readline(MAX_REQUEST_BYTES + 1)

    def _understood(self, line: bytes) -> dict[str, Any]:
        """Give a request of a user of this index, or what to answer at once."""
        try:
            if len(line) > MAX_REQUEST_BYTES:
                raise SemanticError(f"the request is longer than {MAX_REQUEST_BYTES:,} bytes")
            message = json.loads(line)
            if message["call"] == WHO:
                return {"result": self._who()}
            self._check_user(message["version"], message.get("repository"), message.get("settings"))
            return {"call": message["call"], "arguments": message["arguments"]}
        except SemanticError as error:
            return error_message(error)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            return error_message(SemanticError(f"the index process does not understand the request: {error!r}"))

    def _who(self) -> dict[str, Any]:
        mine = self.server
        return {"version": code_version(), "pid": os.getpid(), "repository": str(mine.repository), "settings": mine.mark}

    def _check_user(self, version: str, repository: str | None, mark: str | None) -> None:
        """Refuse who is of another version, repository or settings; `DaemonMismatchError` says which, and who gives way."""
        mine = self.server
        if version != code_version():
            mine.end()
            raise DaemonMismatchError(f"this index process is of version {code_version()}; it ends now")
        if repository != str(mine.repository):
            raise DaemonForeignError(
                f"this data directory is in use for the repository {mine.repository};"
                " set another SEMANTIC_DATA_DIR for this wiki"
            )
        if mark not in {None, mine.mark}:
            mine.end()
            raise DaemonMismatchError("this index process was started with other settings; it ends now")

    def _reply(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"result": _call(self.server.index, message["call"], message["arguments"])}
        except SemanticError as error:
            return error_message(error)
        except Exception as error:
            log.exception("a request failed")
            return error_message(SemanticError(f"the index process failed: {error}"))


_CALLS: dict[str, Callable[..., Any]] = {
    "search": lambda index, queries, options: index.search(queries, revive(SearchOptions, options)),
    "related": lambda index, path, n: index.related(path, n),
    "status": lambda index: index.status(),
    "insight": lambda index: index.insight(),
    "inspect_page": lambda index, path: index.inspect_page(path),
    "reindex": lambda index, full: index.reindex(full=full),
    "refresh": lambda index, paths: index.refresh(paths),
    "pages": lambda index, filters, limit, offset: index.pages(revive(Filters, filters), limit, offset),
    "links": lambda index, path: index.links(path),
    "map": lambda index: index.map(),
    "metrics": lambda index: index.metrics(),
    "notify": lambda index: index.notify(),
}


def _call(index: _Opening, name: str, arguments: dict[str, Any]) -> Any:
    if name == "hello":
        return __version__
    if name not in _CALLS:
        raise SemanticError(f"the index process does not know the call {name!r}")
    return _CALLS[name](index.get(_OPENING_SECONDS), **arguments)


def _watch(server: _Server, lock: IO[str]) -> None:
    """End the server when nobody is left that uses it, or the data directory has gone."""
    starter_lives = True
    while True:
        # ChromaDB can hang on a damaged file, with Python's interpreter lock in its hands; the next owner fills it anew.
        faulthandler.dump_traceback_later(_STUCK_SECONDS, exit=True)
        if starter_lives:
            readable, _, _ = select.select([LIFELINE], [], [], _WATCH_SECONDS)
            if readable:
                starter_lives = False
                server.last_use = time.monotonic()
                _let_go_of_terminal()
        else:
            time.sleep(_WATCH_SECONDS)
        unused = not starter_lives and not server.users and time.monotonic() - server.last_use > _GRACE_SECONDS
        if unused or server.index.failure or not _is_in_place(lock) or not Path(str(server.server_address)).exists():
            server.end()
            return


def _let_go_of_terminal() -> None:
    """Close the starter's error stream: whoever reads it to its end must not wait for this process."""
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 2)


def _is_in_place(lock: IO[str]) -> bool:
    try:
        return Path(lock.name).stat().st_ino == os.fstat(lock.fileno()).st_ino
    except OSError:
        return False


def _take_lock(data_dir: Path) -> IO[str] | None:
    """Give the open lock file; None if another process holds it for longer than one that ends would.

    The system lets go of it when this process ends.
    """
    lock = (data_dir / "owner.lock").open("w", encoding="ascii")
    deadline = time.monotonic() + _CLOSE_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                lock.close()
                return None
            time.sleep(_LOCK_SECONDS)
        else:
            return lock


def _log_to(data_dir: Path) -> None:
    logging.raiseExceptions = False  # a line that finds no room on the disk is lost, and that is all
    terminal = logging.StreamHandler()
    terminal.setLevel(logging.WARNING)
    handlers: list[logging.Handler] = [terminal]
    with suppress(OSError):
        path = data_dir / "owner.log"
        handlers.append(logging.handlers.RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8"))
    line = "[%(asctime)s] %(levelname)s in otterwiki-semantic: %(message)s"
    logging.basicConfig(level=logging.INFO, handlers=handlers, format=line)
    logging.getLogger("chromadb").setLevel(logging.WARNING)


def main(argument: str) -> int:
    """Own an index, as the process that `detached` starts; `argument` is from `settings_argument`. Gives the exit status."""
    # A server's listening sockets may be inheritable: kept open here they would block its restart.
    os.closerange(STARTING + 1, _MOST_FILES)
    os.umask(0o077)
    settings = settings_from(argument)
    for name in (*SECRETS.values(), MODEL_OPTIONS):  # no process that is started from here inherits them
        os.environ.pop(name, None)
    reason = ""
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        _log_to(settings.data_dir)
        run(settings)
    except (OSError, SemanticError) as error:
        log.error("the index process cannot work in %s: %s", settings.data_dir, error)
        reason = str(error)
    _end(reason)
    return 1 if reason else 0


def run(settings: Settings) -> None:
    """Own the index of a data directory until nobody uses it; returns at once if another process owns it."""
    lock = _take_lock(settings.data_dir)
    if lock is None:
        return
    # A search takes the interpreter a dozen times; a thread that indexes is to let go of it soon.
    sys.setswitchinterval(_SWITCH_SECONDS)
    path = socket_path(settings.data_dir)
    index = _Opening(settings)
    with _Server(path, index, settings) as server:
        os.close(STARTING)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: server.end())
        threading.Thread(target=_watch, args=(server, lock), name="watch", daemon=True).start()
        index.start()
        log.info("version %s owns the index of %s", __version__, settings.repository)
        server.serve_forever(poll_interval=_WATCH_SECONDS)
    if _is_in_place(lock):  # else another process may own what is in its place now
        path.unlink(missing_ok=True)
    closing = threading.Thread(target=index.close, daemon=True)
    closing.start()
    closing.join(_CLOSE_SECONDS)
    log.info("ended")
    logging.shutdown()
    _end(index.failure)
    # Threads that embed or wait may still run; everything they could lose is made again from git.
    os._exit(1 if index.failure else 0)


def _end(reason: str) -> None:
    """Tell the starter that this process ends in order, or why it cannot work."""
    with suppress(OSError):
        os.write(REPORT, (reason or ENDED_IN_ORDER).encode("utf-8", errors="replace")[:_REASON_BYTES])
