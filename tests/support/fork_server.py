"""A fork server: Python processes that tests start are forked from one process that has imported what they need.

`started` gives the path of a stand-in for the interpreter. It takes the usual arguments (`-c`, `-m` or a script), sends them to
the server with its environment and open files, and ends as the forked process ends. `light_parts` gives it to what tests start.
All processes of a session of tests share a server of each kind, which ends with the session. The processes that run tests are
forked from one that has collected them.
"""

from __future__ import annotations

import array
import atexit
import fcntl
import gc
import marshal
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tests.support.light_parts import PYTHON, SESSION
from tests.support.paths import ROOT

_LIMITED = ("otterwiki_semantic.indexing.page_loader", "otterwiki_semantic.core.worker_process")
_WEB = (
    *("flask.cli", "flask_login", "flask_mail", "flask_sqlalchemy", "flask_wtf", "sqlalchemy.dialects.sqlite", "bs4"),
    *("PIL.Image", "pygments.lexers", "pygments.formatters.html", "feedgen.feed", "git", "otterwiki.util"),
)
_INDEX = (
    *_WEB,
    *("chromadb", "chromadb_rust_bindings"),
    *("anyio._backends._asyncio", "httpx", "httpcore", "uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto"),
    *("xml.etree.ElementTree", "otterwiki.gitstorage", "otterwiki.renderer", "otterwiki_semantic.plugin"),
    *("otterwiki_semantic.mcp", "otterwiki_semantic.cli.main", "otterwiki_semantic.daemon.engine"),
    *("otterwiki_semantic.daemon.process", "otterwiki_semantic.daemon.reports.prometheus"),
    *("otterwiki_semantic.embedding.local.bundled", "onnxruntime", "tokenizers", "sklearn.manifold", "sklearn.cluster"),
)
_LATE = ("chromadb", "chromadb_rust_bindings", "sklearn.manifold", "sklearn.cluster", "flask_sqlalchemy", "bs4", "httpcore")
_PRELOADED = {"index": _INDEX, "limited": _LIMITED, "web": _WEB, "tests": _LATE}
"""What a kind of server has imported. That for web servers has nothing of the plugin's: how much a worker takes is tested.
That for tests has what most of its processes will import."""
_LISTENER, _FIRST_FREE_FILE, _MOST_FILES = 3, 256, 4096
_CLIENT = Path(__file__).with_name("fork_client.py")
_held: list[int] = []
"""The pipe by which the servers of a session know that it goes on."""


class Request(NamedTuple):
    """What a process is to be."""

    arguments: list[str]
    environment: dict[str, str]
    directory: str
    umask: int
    files: dict[int, int]
    """Open files, by the number that they are to have."""


def begin_session() -> None:
    """Make the directory that all processes of a session of tests share, unless this process is one of a session's workers."""
    if SESSION in os.environ:
        return
    os.environ[SESSION] = tempfile.mkdtemp(prefix="otterwiki-session-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    for name in ("vectors", "templates"):
        (_session() / name).mkdir()
    os.mkfifo(_session() / "alive")
    _held.append(os.open(_session() / "alive", os.O_RDWR))


def end_session() -> bool:
    """End the servers of the session that this process began; what they forked goes on. Return whether it began one."""
    if not _held:
        return False
    os.close(_held.pop())
    return True


def begun(kind: str, *arguments: str) -> Path:
    """Start the session's server of a kind unless it runs, without waiting; return the path of the interpreter's stand-in.

    One of the kind "tests" collects the tests that `arguments` of pytest select.
    """
    place = _session() / kind
    place.mkdir(exist_ok=True)
    stand_in = place / "python"
    with _locked(place):
        if not stand_in.exists():
            stand_in.write_text(f"#!{sys.executable} -IS\n{_CLIENT.read_text()}")
            stand_in.chmod(0o700)
            _start(str(place / "socket"), kind, *arguments)
    return stand_in


def started(kind: str, *arguments: str) -> str:
    """Return the stand-in of a server, as `begun`, that has imported everything.

    On a busy machine this takes longer than some tests wait for a process.
    """
    stand_in = begun(kind, *arguments)
    is_ready = stand_in.with_name("ready")
    with _locked(stand_in.parent):
        if not is_ready.exists():
            subprocess.run([stand_in, "-c", ""], check=True)
            is_ready.touch()
    return str(stand_in)


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start(address: str, *arguments: str) -> None:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    # A process that has threads cannot be forked safely.
    environment = os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    with socket.socket(socket.AF_UNIX) as listener, (_session() / "alive").open() as alive:
        listener.bind(address)
        listener.listen(128)
        files = [(os.POSIX_SPAWN_DUP2, file.fileno(), number) for number, file in ((0, alive), (_LISTENER, listener))]
        actions = [*files, (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
        os.posix_spawn(sys.executable, [sys.executable, "-P", "-m", __name__, *arguments], environment, file_actions=actions)


def _session() -> Path:
    return Path(os.environ[SESSION])


def python() -> str:
    """Return the interpreter of processes that tests start."""
    return os.environ.get(PYTHON) or sys.executable


class _Server:
    """Forks a process for each connection, and reports its status when it ends."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._clients: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._ended, write = os.pipe()
        os.set_blocking(write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(write)
        for file in (0, self._ended, self._listener):
            self._selector.register(file, selectors.EVENT_READ)

    def next_request(self) -> Request | None:
        """Return a request in each forked process; None in the server, when the session has ended."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    return None
                if key.fileobj == self._ended:
                    self._report()
                elif key.fileobj is not self._listener:
                    self._kill(key.data)
                elif request := self._fork():
                    return request

    def _fork(self) -> Request | None:
        connection, _ = self._listener.accept()
        head, files, _, _ = socket.recv_fds(connection, 8, 64)
        try:
            with connection.makefile("rb") as reader:
                arguments, environment, directory, umask, numbers = marshal.loads(reader.read(int.from_bytes(head, "big")))
        except (OSError, EOFError, ValueError, TypeError):  # the stand-in was killed
            connection.close()
            for file in files:
                os.close(file)
            return None
        pid = os.fork()
        if not pid:
            for opened in (connection, self._listener, *self._clients.values()):
                opened.close()
            self._selector.close()
            return Request(arguments, environment, directory, umask, dict(zip(numbers, files, strict=True)))
        for file in files:
            os.close(file)
        with suppress(OSError):  # if the stand-in was killed, the end of its connection says so
            connection.sendall(array.array("i", [pid]))
        self._clients[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)
        return None

    def _report(self) -> None:
        os.read(self._ended, 4096)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with self._clients.pop(ended[0]) as connection, suppress(KeyError, OSError):
                    self._selector.unregister(connection)
                    connection.sendall(array.array("i", [os.waitstatus_to_exitcode(ended[1])]))

    def _kill(self, pid: int) -> None:
        """Kill the process of a stand-in that was killed."""
        if (connection := self._clients.get(pid)) is not None:
            self._selector.unregister(connection)
            os.kill(pid, signal.SIGKILL)


def _become(request: Request) -> None:
    """Take the place of the stand-in."""
    signal.set_wakeup_fd(-1)
    for ignored in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    moved = {number: fcntl.fcntl(file, fcntl.F_DUPFD, _FIRST_FREE_FILE) for number, file in request.files.items()}
    os.closerange(0, _FIRST_FREE_FILE)
    for number, file in moved.items():
        os.dup2(file, number)
    os.closerange(_FIRST_FREE_FILE, _MOST_FILES)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        stream = open(number, mode, buffering=1 if number == 2 else -1, closefd=False) if number in moved else None  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(request.directory)
    os.umask(request.umask)
    os.environ.clear()
    os.environ.update(request.environment)
    added = request.environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [entry for entry in added if entry and entry not in sys.path]


def _exit_status(arguments: list[str]) -> int:
    """Run what follows an interpreter in a command line; return the status with which the interpreter would end."""
    try:
        _run(arguments)
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return exit_.code or 0
        print(exit_.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except Exception:  # noqa: BLE001 -- as the interpreter does
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _run(arguments: list[str]) -> None:
    """Run what follows an interpreter in a command line."""
    kind, *rest = arguments[arguments[0] in {"-P", "-u"} :]
    if kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = [kind, *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.argv = [kind, *rest]
        runpy.run_path(kind, run_name="__main__")


def _preload(kind: str, *arguments: str) -> None:
    if kind == "tests":
        import_module("pytest").main([*arguments, "--collect-only", "-n0"])
        if "otterwiki_semantic.daemon.engine" not in sys.modules:
            return  # only unit tests were collected
    for module in _PRELOADED[kind]:
        import_module(module)
    if kind == "index":
        import_module("otterwiki_semantic.embedding.local.bundled").BundledModel().open()  # shared by all that are forked


if __name__ == "__main__":
    server = _Server(socket.socket(fileno=_LISTENER))
    _preload(*sys.argv[1:])
    gc.freeze()
    asked = server.next_request()
    if asked is not None:
        _become(asked)
        status = _exit_status(asked.arguments)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(status)  # clearing all modules would copy the memory that is shared with the server
