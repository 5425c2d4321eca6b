"""The owner that runs now, if one does, asked by somebody who neither starts nor ends one."""

from __future__ import annotations

import json
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otterwiki_semantic.core.errors import DaemonUnavailableError
from otterwiki_semantic.core.records import IndexStatus
from otterwiki_semantic.daemon.protocol import MAX_REPLY_BYTES, WHO, code_version, encode, error_from, revive, socket_location

_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class DaemonInfo:
    """A process that owns an index.

    `version` is that of its code (see `code_version`; empty: an old one), `settings` the mark of what it was started with (see
    `settings_fingerprint`).
    """

    version: str
    pid: int
    repository: Path
    settings: str

    @property
    def is_of_this_version(self) -> bool:
        """Whether it understands what this code asks."""
        return self.version == code_version()


class DaemonProbe:
    """What the owner of a data directory answers; `DaemonUnavailableError` if it does not."""

    def __init__(self, data_dir: Path, seconds: float = _SECONDS) -> None:
        self._socket = socket_location(data_dir)
        self._seconds = seconds

    def who(self) -> DaemonInfo | None:
        """Tell which one runs; None if none does."""
        try:
            reply = self._ask({"call": WHO})
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise DaemonUnavailableError(f"the index process does not answer at {self._socket}: {error}") from error
        if "result" not in reply:
            return DaemonInfo("", 0, Path(), "")
        who = reply["result"]
        return DaemonInfo(who["version"], who["pid"], Path(who["repository"]), who["settings"])

    def status(self, owner: DaemonInfo) -> IndexStatus:
        """Give the status of an owner of this version, of whatever repository it is."""
        request = {"version": code_version(), "repository": str(owner.repository), "settings": None}
        try:
            reply = self._ask({**request, "call": "status", "arguments": {}})
        except OSError as error:
            raise DaemonUnavailableError(f"the index process does not answer at {self._socket}: {error}") from error
        if "error" in reply:
            raise error_from(reply["error"])
        return revive(IndexStatus, reply["result"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(self._seconds)
            connection.connect(str(self._socket))
            user = peer_user(connection)
            if user not in {os.geteuid(), 0}:
                raise DaemonUnavailableError(f"the index process belongs to another user ({user}); ask it as that one")
            connection.sendall(encode(request))
            with connection.makefile("rb") as stream:
                line = stream.readline(MAX_REPLY_BYTES)
        if not line.endswith(b"\n"):
            raise DaemonUnavailableError("the index process ended before it had answered")
        reply: dict[str, Any] = json.loads(line)
        return reply


def peer_user(connection: socket.socket) -> int:
    """Give the user of the process at the other end: who asks must not be told another one's answers."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])
