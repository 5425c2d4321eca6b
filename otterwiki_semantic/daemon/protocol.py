"""The protocol of the index daemon: one JSON object per line over a Unix socket.

A request is a `Request`. A reply is ``{"result": …}`` or ``{"error": {"type", "message"}}``, where the type is a class of
`core.errors`. Arguments and results are the parameters and the return value of the called method of `IndexService`. Values
that no route accepts, such as a text that would block searches, are rejected here as well, by their type.

A request with `known` versions of the index is conditional, like If-None-Match in HTTP: the reply also has the ``"version"``,
if there is one, and no result if the version is known.

Both sides must have the same version and records: a daemon of another version, or with other settings than the wiki has now,
exits and is replaced (the command line sends no settings). A daemon of another repository rejects the request. Only
``{"call": "who"}`` is answered for clients of any version, with ``{"version", "pid", "repository", "settings"}``.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import socket
import stat
import struct
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec

from otterwiki_semantic import __version__
from otterwiki_semantic.core import errors
from otterwiki_semantic.core.errors import DaemonUnavailableError, NotFoundError, SemanticError
from otterwiki_semantic.core.records import IndexStatus
from otterwiki_semantic.core.serialization import decode, encode
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.interface import IndexService

MAX_REQUEST_BYTES = 8 << 20
MAX_REPLY_BYTES = 64 << 20
LIFELINE, REPORT, STARTING = 3, 4, 5
"""File descriptors that a daemon inherits: the reading end of its starter's pipe, which closes when the starter exits; a pipe
on which the daemon reports how it exited; and a lock, which prevents other processes from starting a daemon.
"""
ENDED_IN_ORDER = "ended in order"
"""A daemon's report of a normal exit; any other report is why it cannot work."""
WHO = "who"
"""The call that asks a daemon of any version for its identity."""
HELLO = "hello"
"""The call of a client that only keeps the daemon alive."""
_MAX_SOCKET_PATH = 100
"""Longest path of a Unix socket in bytes; the limit of systems is 104 or 108."""
NO_ARGUMENTS = msgspec.Raw(b"{}")
_REPLY = re.compile(rb'\{(?:"version":"([^"]*)")?,?(?:"result":)?')
_END = b"}\n"
_PROBE_SECONDS = 15.0

_PATHS = ("repository", "data_dir", "eval_queries", "chroma_ca")
SETTINGS = "OTTERWIKI_SEMANTIC_SETTINGS"
"""The environment variable with the settings of a daemon; other users see command lines, but not the environment."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call with its arguments and the identity of the caller."""

    call: str
    version: str = ""
    repository: str = ""
    settings: str | None = None
    arguments: msgspec.Raw = NO_ARGUMENTS
    known: tuple[str, ...] | None = None
    """The versions of the index for which the caller has the answer; None to request no version."""


class Reply(NamedTuple):
    """The reply to a request."""

    result: bytes
    """JSON; empty if the caller has the answer."""
    version: str | None
    """The version of the index just before the call, if requested and available."""


def encode_arguments(method: Callable[..., Any], *values: Any, **named: Any) -> msgspec.Raw:
    """Return the encoded arguments of a call of a method of `IndexService`."""
    _, *names = _signature(method).parameters
    return msgspec.Raw(encode(dict(zip(names, values, strict=False)) | named))


def decode_arguments(call: str, arguments: msgspec.Raw) -> dict[str, Any]:
    """Return the arguments of a call by name. Errors: `SemanticError` for an unknown call, `msgspec.ValidationError`."""
    return msgspec.structs.asdict(decode(arguments, _arguments(call)))


_signature = cache(inspect.signature)


@cache
def _arguments(call: str) -> type[msgspec.Struct]:
    method = getattr(IndexService, call, None)
    if call.startswith("_") or method is None:
        raise SemanticError(f"the index daemon does not know the call {call!r}")
    hints, missing = get_type_hints(method, include_extras=True), inspect.Parameter.empty
    _, *parameters = _signature(method).parameters.values()
    required = [(each.name, hints[each.name]) for each in parameters if each.default is missing]
    optional = [(each.name, hints[each.name], each.default) for each in parameters if each.default is not missing]
    return msgspec.defstruct(call, [*required, *optional])


def encode_line(message: Any) -> bytes:
    """Return a message as a line."""
    return encode(message) + b"\n"


def result_line(result: Any, version: str | None = None) -> bytes:
    """Return the reply with a result."""
    return (b'{"version":"%b",' % version.encode() if version else b"{") + b'"result":' + encode(result) + _END


def error_line(error: SemanticError) -> bytes:
    """Return the reply with an error."""
    nearest = {"nearest": error.nearest} if isinstance(error, NotFoundError) else {}
    return encode_line({"error": {"type": type(error).__name__, "message": str(error), **nearest}})


def read_reply(line: bytes) -> Reply:
    """Return a reply, or raise its error. The result, which may be large, is not parsed."""
    head = _REPLY.match(line)
    if head is None or head.end() == 1:
        raise _error_in(json.loads(line)["error"])
    return Reply(line[head.end() : -len(_END)], head[1].decode() if head[1] else None)


def _error_in(facts: dict[str, Any]) -> SemanticError:
    kind = getattr(errors, facts["type"], SemanticError)
    nearest = [facts.get("nearest", ())] if issubclass(kind, NotFoundError) else []
    error: SemanticError = kind(facts["message"], *nearest)
    return error


@cache
def code_version() -> str:
    """Return the version, with a hash of the records and calls."""
    here = Path(__file__).parent
    spoken = (Path(__file__), here / "interface.py", *sorted(here.with_name("core").glob("records/*.py")))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in spoken))
    return f"{__version__}+{digest.hexdigest()[:12]}"


def encode_settings(settings: Settings) -> str:
    """Return the settings of a daemon as JSON, with secrets, but without the wiki's API key."""
    return json.dumps(asdict(replace(settings, api_key=None)), default=str)


def decode_settings(text: str) -> Settings:
    """Return the settings from the output of `encode_settings`."""
    values = json.loads(text)
    paths = {name: Path(values[name]) for name in _PATHS if values[name] is not None}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Settings(**values | paths | lists)


@cache
def settings_fingerprint(settings: Settings) -> str:
    """Return a fingerprint of the settings of a daemon."""
    return hashlib.sha256(encode_settings(settings).encode()).hexdigest()[:12]


def socket_location(data_dir: Path) -> Path:
    """Return the path of the daemon's socket: in the data directory, or for a long path in a separate private directory."""
    path = data_dir / "owner.sock"
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH:
        return path
    name = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"otterwiki-semantic-{os.getuid()}" / f"{name}.sock"


def socket_path(data_dir: Path) -> Path:
    """Return the path of the daemon's socket, in a directory that exists and is private."""
    path = socket_location(data_dir)
    if path.parent == data_dir:
        return path
    path.parent.mkdir(mode=0o700, exist_ok=True)
    facts = path.parent.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise DaemonUnavailableError(
            f"{path.parent} is not a private directory of this user; remove it or set a shorter SEMANTIC_DATA_DIR"
        )
    return path


class DaemonInfo(msgspec.Struct, frozen=True):
    """The identity of a daemon."""

    version: str = ""
    """From `code_version`; empty for a daemon that is too old to report it."""
    pid: int = 0
    repository: str = ""
    settings: str = ""
    """The fingerprint of its settings: see `settings_fingerprint`."""


class DaemonProbe:
    """Query the daemon of a data directory. Raises `DaemonUnavailableError` if it does not answer."""

    def __init__(self, data_dir: Path) -> None:
        self._socket = socket_location(data_dir)

    def who(self) -> DaemonInfo | None:
        """Return the identity of the daemon; None if none runs."""
        try:
            return decode(self._ask(Request(WHO)), DaemonInfo)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise DaemonUnavailableError(f"the index daemon does not answer at {self._socket}: {error}") from error
        except DaemonUnavailableError:
            raise
        except (SemanticError, msgspec.DecodeError):
            return DaemonInfo()

    def status(self, daemon: DaemonInfo) -> IndexStatus:
        """Return the status of a daemon of this version and any repository."""
        try:
            return decode(self._ask(Request("status", code_version(), daemon.repository)), IndexStatus)
        except OSError as error:
            raise DaemonUnavailableError(f"the index daemon does not answer at {self._socket}: {error}") from error

    def _ask(self, request: Request) -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_PROBE_SECONDS)
            connection.connect(str(self._socket))
            user = peer_user(connection)
            if user not in {os.geteuid(), 0}:
                raise DaemonUnavailableError(f"the index daemon belongs to another user ({user}); ask it as that user")
            connection.sendall(encode_line(request))
            with connection.makefile("rb") as stream:
                line = stream.readline(MAX_REPLY_BYTES)
        if not line.endswith(b"\n"):
            raise DaemonUnavailableError("the index daemon ended before it answered")
        return read_reply(line).result


def peer_user(connection: socket.socket) -> int:
    """Return the user of the process at the other end; replies from another user's process must not be trusted."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])
