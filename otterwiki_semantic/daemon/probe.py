"""Query a running daemon, without starting or stopping one."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import msgspec

from otterwiki_semantic.core.errors import DaemonUnavailableError, SemanticError
from otterwiki_semantic.core.records import IndexStatus
from otterwiki_semantic.core.serialization import decode
from otterwiki_semantic.daemon.protocol import (
    MAX_REPLY_BYTES,
    WHO,
    Request,
    code_version,
    encode_line,
    read_reply,
    socket_location,
)

_SECONDS = 15.0


class DaemonInfo(msgspec.Struct, frozen=True):
    """The identity of a daemon."""

    version: str = ""
    """From `code_version`; empty for a daemon that is too old to report it."""
    pid: int = 0
    repository: str = ""
    settings: str = ""
    """The fingerprint of its settings: see `settings_fingerprint`."""

    @property
    def is_of_this_version(self) -> bool:
        """Whether it understands calls of this version."""
        return self.version == code_version()


class DaemonProbe:
    """Query the daemon of a data directory. Raises `DaemonUnavailableError` if it does not answer."""

    def __init__(self, data_dir: Path, seconds: float = _SECONDS) -> None:
        self._socket = socket_location(data_dir)
        self._seconds = seconds

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
            connection.settimeout(self._seconds)
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
