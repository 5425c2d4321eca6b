"""Connected programs (OAuth clients): the account of each, and the hashes of its tokens, in the data directory."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.files import locked, make_private, read_record, write_atomically
from otterwiki_semantic.core.records import ConsentRequest, Grant, SecretKind, Tokens

CODE_SECONDS = 60
ACCESS_SECONDS = 3600
REFRESH_SECONDS = 90 * 24 * 3600
"""A connection expires when it is unused for this long."""
MAX_PER_ACCOUNT = 20
"""A new connection replaces the least recently used one of the account."""
MAX_CONNECTIONS = 2_000
_MAX_SPENT = 20
"""Spent tokens that are stored. Older ones are invalid, too, but their theft goes unnoticed. Each request reads the file."""
_USED_SECONDS = 3600
"""The time of the last use is stored at most this often."""
_LOCK_SECONDS = 5.0
_FILE, _LOCK = "connections.json", "connections.lock"


class Secret(Struct, frozen=True):
    """A code or token, of which only the hash is stored."""

    kind: SecretKind
    expires: float


class Connection(Struct, frozen=True):
    """A program that may read the wiki with the permissions of an account. Times are seconds since 1970."""

    id: str
    account: str
    """See `web.auth.account_fingerprint`."""
    email: str
    created: float
    used: float
    request: ConsentRequest
    secrets: dict[str, Secret]
    """By hash."""
    may_write: bool = False

    @property
    def is_established(self) -> bool:
        return any(each.kind is SecretKind.REFRESH for each in self.secrets.values())

    @property
    def expires(self) -> float:
        return max((each.expires for each in self.secrets.values() if each.kind is not SecretKind.SPENT), default=0.0)


class TooManyConnectionsError(SemanticError):
    """No further program can be connected."""


class ConnectionsUnavailableError(SemanticError):
    """The connections cannot be changed: the data directory is not writable, or another process holds their lock."""


class ConnectionStore:
    """The connections of a wiki, shared by its workers; each change writes a new file.

    Methods raise `ConnectionsUnavailableError` if the connections cannot be changed.
    """

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._clock = clock

    def all(self) -> list[Connection]:
        """Return the connections that have fetched their tokens, most recently used first."""
        found = (each for each in self._read().values() if each.is_established and each.expires > self._clock())
        return sorted(found, key=lambda each: each.used, reverse=True)

    def get(self, connection: str) -> Connection | None:
        found = self._read().get(connection)
        return found if found and found.expires > self._clock() else None

    def approve(self, request: ConsentRequest, account: str, email: str, *, may_write: bool = False) -> str:
        """Store an account's consent to a request, and optionally to writing; return the authorization code."""
        now, code = self._clock(), secrets.token_urlsafe(32)
        known = {_hash(code): Secret(SecretKind.CODE, now + CODE_SECONDS)}
        request = replace(request, state=None)
        made = Connection(secrets.token_urlsafe(12), account, email, now, now, request, known, may_write)
        with self._changed() as connections:
            own = sorted((each for each in connections.values() if each.account == account), key=lambda each: each.used)
            for each in own[: max(0, len(own) - MAX_PER_ACCOUNT + 1)]:
                del connections[each.id]
            if len(connections) >= MAX_CONNECTIONS:
                raise TooManyConnectionsError(f"this wiki has {MAX_CONNECTIONS:,} connected programs; disconnect some")
            connections[made.id] = made
        return code

    def find(self, secret: str, client: str | None = None) -> tuple[Connection, Grant] | None:
        """Return a valid code or token, with its connection.

        With a `client` that the token endpoint has authenticated, only one of this client. If it was exchanged before, it was
        stolen, and the connection ends. Other senders of such a token end nothing.
        """
        hashed, now = _hash(secret), self._clock()
        connection = _owner(self._read(), hashed, client)
        if connection is None:
            return None
        found = connection.secrets[hashed]
        if found.kind is SecretKind.SPENT:
            if client is not None:
                self.remove(connection.id)
            return None
        if found.expires <= now:
            return None
        asked = connection.request
        facts = (asked.redirect_uri, asked.is_redirect_explicit, asked.code_challenge)
        return connection, Grant(found.kind, connection.id, asked.client_id, connection.email, found.expires, *facts)

    def exchange(self, secret: str, client: str | None = None) -> Tokens | None:
        """Return tokens for a code or a refresh token, which cannot be used again; None if it is not valid."""
        hashed, now = _hash(secret), self._clock()
        with self._changed() as connections:
            connection = _owner(connections, hashed, client)
            if connection is None or connection.secrets[hashed].expires <= now:
                return None
            kind = connection.secrets[hashed].kind
            if kind is SecretKind.SPENT and client is not None:
                del connections[connection.id]
            if kind in {SecretKind.SPENT, SecretKind.ACCESS}:
                return None
            tokens = Tokens(secrets.token_urlsafe(32), secrets.token_urlsafe(32), ACCESS_SECONDS)
            spent = [name for name, each in connection.secrets.items() if each.kind is SecretKind.SPENT][1 - _MAX_SPENT :]
            kept = {name: connection.secrets[name] for name in spent} | {
                hashed: Secret(SecretKind.SPENT, now + REFRESH_SECONDS),
                _hash(tokens.access): Secret(SecretKind.ACCESS, now + ACCESS_SECONDS),
                _hash(tokens.refresh): Secret(SecretKind.REFRESH, now + REFRESH_SECONDS),
            }
            connections[connection.id] = replace(connection, used=now, secrets=kept)
        return tokens

    def touch(self, connection: Connection) -> None:
        """Store that a connection is in use, at most once an hour. If that is not possible at once, the next use is stored."""
        now = self._clock()
        if now - connection.used < _USED_SECONDS:
            return
        with suppress(ConnectionsUnavailableError), self._changed(waits=False) as connections:
            if connection.id in connections:
                connections[connection.id] = replace(connections[connection.id], used=now)

    def remove(self, connection: str) -> bool:
        """End a connection, which invalidates its tokens. Return False if there is none."""
        with self._changed() as connections:
            return connections.pop(connection, None) is not None

    def _read(self) -> dict[str, Connection]:
        return read_record(self._directory / _FILE, dict[str, Connection], "all programs have to connect again") or {}

    @contextmanager
    def _changed(self, *, waits: bool = True) -> Iterator[dict[str, Connection]]:
        """Yield the connections for a change, under an exclusive lock; with `waits`, others may hold it for some seconds."""
        try:
            make_private(self._directory)
            with locked(self._directory / _LOCK, _LOCK_SECONDS if waits else 0):
                before = self._read()
                now = self._clock()
                connections = {name: each for name, each in before.items() if each.expires > now}
                yield connections
                if connections != before:
                    write_atomically(self._directory / _FILE, json.dumps(to_builtins(connections)))
        except OSError as error:
            raise ConnectionsUnavailableError(f"connected programs cannot be stored now: {error}") from error


def _owner(connections: dict[str, Connection], hashed: str, client: str | None) -> Connection | None:
    """Return the connection that has a secret, unless it belongs to another client."""
    found = next((each for each in connections.values() if hashed in each.secrets), None)
    return found if found is not None and client in {None, found.request.client_id} else None


def _hash(secret: str) -> str:
    """Return the hash of a secret; its 256 random bits need no salt."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
