"""Messages between the MCP server and the wiki about connected programs (OAuth clients)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

CONSENT_PATH = "/-/semantic-search/connect"
CONNECTIONS_PATH = "/-/semantic-search/connections"
BEARER_PREFIX = "connection."
"""Begins a bearer token with which the MCP server asks on behalf of a connection; its signed id follows."""


class Purpose(StrEnum):
    """What a statement is signed for."""

    CLIENT = "client"
    CLIENT_SECRET = "client secret"
    CONSENT = "consent"
    CONNECTION = "connection"


class ConsentRequest(Struct, frozen=True):
    """What a person is asked to allow; the MCP server has checked and signs it."""

    client_id: str
    client_name: str
    redirect_uri: str
    """One that the client has registered."""
    is_redirect_explicit: bool
    """Whether the request named it."""
    code_challenge: str
    """PKCE, S256."""
    issuer: str
    state: str | None
    expires: float
    """Seconds since 1970."""


class SecretKind(StrEnum):
    """What a secret of a connection is for."""

    CODE = "code"
    ACCESS = "access"
    REFRESH = "refresh"
    SPENT = "spent"
    """A code or refresh token that has been exchanged. If its client sends it again, it was stolen."""


class Grant(Struct, frozen=True):
    """A valid code or token."""

    kind: SecretKind
    connection: str
    client_id: str
    account: str
    """The e-mail address of the account whose permissions it has."""
    expires: float
    redirect_uri: str
    is_redirect_explicit: bool
    code_challenge: str


class Tokens(Struct, frozen=True):
    """A new pair of tokens."""

    access: str
    refresh: str
    expires_in: int
    """Seconds that the access token is valid."""


class SecretRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A code or token that the MCP server was sent."""

    secret: str
    client: str | None = None
    """The id of the client that the token endpoint has authenticated; None for the bearer of a token."""
