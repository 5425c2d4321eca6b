"""The index daemon: one process per data directory and host, started by the first client that needs the index.

It is a fresh interpreter, never a fork, so that it inherits nothing from a web server. It holds the lock, the model, ChromaDB
and the scheduler's threads, and answers over a Unix socket. It exits a few seconds after its last client has disconnected:
its starter holds the other end of a pipe, shared by the starter's forks, and every other client holds a connection open.
"""

from __future__ import annotations

import faulthandler
import io
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from otterwiki_semantic import __version__
from otterwiki_semantic.core.errors import DaemonForeignError, DaemonMismatchError, IndexUnavailableError, SemanticError
from otterwiki_semantic.core.files import locked, make_private
from otterwiki_semantic.core.serialization import decode
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.telemetry import ANNOUNCEMENTS
from otterwiki_semantic.daemon import protocol

if TYPE_CHECKING:
    from otterwiki_semantic.daemon.engine import IndexEngine

_GRACE_SECONDS = 5.0
_OPENING_SECONDS = 10.0
_WATCH_SECONDS = 0.5
_STUCK_SECONDS = 120.0
_CLOSE_SECONDS = 10.0
_LINE_SECONDS = 10.0
"""How long a request may take to arrive completely, however small its pieces, and a reply to be read."""
_LEAST_SECONDS = 0.001
_LOG_BYTES = 1 << 20
_REASON_BYTES = 2_000
_MOST_FILES = 4096
_SWITCH_SECONDS = 0.001

log = logging.getLogger(__name__)


def _opened(settings: Settings) -> IndexEngine:
    """Open the index. Errors: `SemanticError`."""
    try:
        from otterwiki_semantic.daemon.engine import IndexEngine

        index = IndexEngine(settings)
        index.start()
    except SemanticError as error:
        log.error("the index cannot be opened: %s", error)
        raise
    except Exception as error:
        log.exception("the index cannot be opened")
        raise SemanticError(f"the index cannot be opened: {error}") from error
    return index


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: Path, settings: Settings) -> None:
        self.repository = settings.repository
        self.fingerprint = protocol.settings_fingerprint(settings)
        self.identity = protocol.DaemonInfo(protocol.code_version(), os.getpid(), str(settings.repository), self.fingerprint)
        self.users = 0
        self.is_ending = False
        self.last_use = time.monotonic()
        self._counting = threading.Lock()
        path.unlink(missing_ok=True)
        super().__init__(str(path), _Handler)
        path.chmod(0o600)
        self.index = ThreadPoolExecutor(1, "opening").submit(_opened, settings)

    @property
    def failure(self) -> str:
        """Why the index cannot be opened; empty if it is open or still opening."""
        return str(self.index.exception() or "") if self.index.done() else ""

    @property
    def engine(self) -> IndexEngine | None:
        """The index; None if it is not open."""
        return self.index.result() if self.index.done() and not self.failure else None

    def count_user(self, change: int) -> None:
        with self._counting:
            self.users += change
            self.last_use = time.monotonic()

    def end(self) -> None:
        """Shut down without blocking the calling thread."""
        self.is_ending = True
        threading.Thread(target=self.shutdown, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver's signature
        log.debug("a client went away", exc_info=True)


class _Handler(socketserver.StreamRequestHandler):
    server: _Server
    rbufsize = 1 << 16

    is_user = False
    """Whether the client counts as a user of the index."""

    def handle(self) -> None:
        try:
            # A client without an answer asks the next daemon.
            while (line := self._read_line(may_wait=self.is_user)) and not self.server.is_ending:
                self.wfile.write(self._reply(line))
                if len(line) > protocol.MAX_REQUEST_BYTES:
                    return  # the rest of it would be read as the next request
        finally:
            if self.is_user:
                self.server.count_user(-1)

    def _reply(self, line: bytes) -> bytes:
        try:
            if len(line) > protocol.MAX_REQUEST_BYTES:
                raise SemanticError(f"the request is longer than {protocol.MAX_REQUEST_BYTES:,} bytes")
            request = decode(line, protocol.Request)
            if request.call == protocol.WHO:
                return protocol.result_line(self.server.identity)
            self._check_client(request)
            if not self.is_user:
                self.is_user = True  # before the call, which may take a while
                self.server.count_user(+1)
            return self._answer(request)
        except SemanticError as error:
            return protocol.error_line(error)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return protocol.error_line(SemanticError(f"the index daemon does not understand the request: {error}"))
        except Exception as error:
            log.exception("a request failed")
            return protocol.error_line(SemanticError(f"the index daemon failed: {error}"))

    def _read_line(self, *, may_wait: bool) -> bytes:
        """Return the next request, which may begin at any time if the client `may_wait`, and must then arrive within seconds.

        Raises `TimeoutError`, which closes the connection.
        """
        reader, line = cast("io.BufferedReader", self.rfile), bytearray()
        if may_wait:
            self.connection.settimeout(None)
            reader.peek(1)
        deadline = time.monotonic() + _LINE_SECONDS
        while len(line) <= protocol.MAX_REQUEST_BYTES and not line.endswith(b"\n"):
            self.connection.settimeout(max(_LEAST_SECONDS, deadline - time.monotonic()))
            if not (received := reader.peek(1)):
                break
            line += reader.readline(min(len(received), protocol.MAX_REQUEST_BYTES + 1 - len(line)))
            if time.monotonic() > deadline:
                raise TimeoutError("a request did not arrive in time")
        return bytes(line)

    def _check_client(self, request: protocol.Request) -> None:
        """Reject a client of another version, repository or settings. Errors: `DaemonMismatchError`."""
        mine = self.server
        if request.version != protocol.code_version():
            mine.end()
            raise DaemonMismatchError(f"this index daemon is of version {protocol.code_version()}; it ends now")
        if request.repository != str(mine.repository):
            raise DaemonForeignError(
                f"this data directory is in use for the repository {mine.repository};"
                " set another SEMANTIC_DATA_DIR for this wiki"
            )
        if request.settings not in {None, mine.fingerprint}:
            mine.end()
            raise DaemonMismatchError("this index daemon was started with other settings; it ends now")

    def _answer(self, request: protocol.Request) -> bytes:
        if request.call == protocol.HELLO:
            return protocol.result_line(__version__)
        arguments = protocol.decode_arguments(request.call, request.arguments)
        try:
            index = self.server.index.result(_OPENING_SECONDS)
        except TimeoutError:
            raise IndexUnavailableError("the index is being opened") from None
        version = index.version() if request.known is not None else None  # before the call: never newer than its result
        if version is not None and version in (request.known or ()):
            return protocol.encode_line({"version": version})
        return protocol.result_line(getattr(index, request.call)(**arguments), version)


def _watch(server: _Server, is_in_place: Callable[[], bool]) -> None:
    """Stop the server when its last client has disconnected, or the data directory is gone."""
    starter_lives = True
    while True:
        # ChromaDB can hang on a damaged file while it holds the interpreter lock; the next daemon refills it.
        faulthandler.dump_traceback_later(_STUCK_SECONDS, exit=True)
        readable, _, _ = select.select([protocol.LIFELINE] if starter_lives else [], [], [], _WATCH_SECONDS)
        if readable:
            starter_lives = False
            server.count_user(0)
            # A program that reads the starter's error stream to its end must not wait for this process.
            with Path(os.devnull).open("w") as nothing:
                os.dup2(nothing.fileno(), 2)
        unused = not starter_lives and not server.users and time.monotonic() - server.last_use > _GRACE_SECONDS
        if (
            unused
            or server.failure
            or ((index := server.engine) is not None and index.must_reopen)
            or not is_in_place()
            or not Path(str(server.server_address)).exists()
        ):
            server.end()
            return


def _is_in_place(path: Path, lock: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(lock).st_ino
    except OSError:
        return False


def _log_to(data_dir: Path) -> None:
    logging.raiseExceptions = False  # a line that does not fit on the disk is lost
    terminal = logging.StreamHandler()
    terminal.addFilter(lambda record: record.levelno >= logging.WARNING or record.name == ANNOUNCEMENTS.name)
    handlers: list[logging.Handler] = [terminal]
    with suppress(OSError):
        path = data_dir / "owner.log"
        handlers.append(logging.handlers.RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8"))
    line = "[%(asctime)s] %(levelname)s in otterwiki-semantic: %(message)s"
    logging.basicConfig(level=logging.INFO, handlers=handlers, format=line)
    logging.getLogger("chromadb").setLevel(logging.WARNING)


def main() -> int:
    """Run as the daemon and return the exit status."""
    if sys.stderr is None:  # closed by the starter; another file must not get its descriptor
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    # A server's listening sockets may be inheritable; left open here, they would block its restart.
    os.closerange(protocol.STARTING + 1, _MOST_FILES)
    os.umask(0o077)
    settings = protocol.decode_settings(os.environ.pop(protocol.SETTINGS))  # child processes must not inherit them
    reason = ""
    try:
        make_private(settings.data_dir)
        _log_to(settings.data_dir)
        run(settings)
    except (OSError, SemanticError) as error:
        log.error("the index daemon cannot work in %s: %s", settings.data_dir, error)
        reason = str(error)
    _end(reason)
    return 1 if reason else 0


def run(settings: Settings) -> None:
    """Serve the index of a data directory while it has clients; return at once if another process does."""
    lock = settings.data_dir / "owner.lock"
    with ExitStack() as held:
        try:
            opened = held.enter_context(locked(lock, _CLOSE_SECONDS))
        except TimeoutError:  # another process serves
            return
        _serve(settings, partial(_is_in_place, lock, opened))


def _serve(settings: Settings, is_in_place: Callable[[], bool]) -> None:
    """Serve the index, then exit, whereupon the system releases the lock."""
    # A search needs the interpreter lock a dozen times; an indexing thread must release it soon.
    sys.setswitchinterval(_SWITCH_SECONDS)
    path = protocol.socket_path(settings.data_dir)
    with _Server(path, settings) as server:
        os.close(protocol.STARTING)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: server.end())
        threading.Thread(target=_watch, args=(server, is_in_place), name="watch", daemon=True).start()
        log.info("version %s serves the index of %s", __version__, settings.repository)
        server.serve_forever(poll_interval=_WATCH_SECONDS)
    if is_in_place():  # otherwise the socket may be another daemon's
        path.unlink(missing_ok=True)
    if (engine := server.engine) is not None:
        closing = threading.Thread(target=engine.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)
    log.info("ended")
    logging.shutdown()
    _end(server.failure)
    # Threads that embed or wait may still run; what they lose is rebuilt from git.
    os._exit(1 if server.failure else 0)


def _end(reason: str) -> None:
    """Report to the starter that this process exits normally, or why it cannot work."""
    with suppress(OSError):
        os.write(protocol.REPORT, (reason or protocol.ENDED_IN_ORDER).encode("utf-8", errors="replace")[:_REASON_BYTES])
