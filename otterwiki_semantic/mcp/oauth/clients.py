"""Dynamic client registration without storage: a client's id is what it has registered, signed."""

from __future__ import annotations

import re
import secrets
from urllib.parse import urlsplit

from mcp.server.auth.provider import RegistrationError
from mcp.shared.auth import OAuthClientInformationFull
from msgspec import Struct

from otterwiki_semantic.core.loopback import is_loopback_host
from otterwiki_semantic.core.records import Purpose
from otterwiki_semantic.core.signing import Signer

SCOPE = "wiki"
MAX_ID_CHARACTERS = 1_000
_MAX_NAME = 60
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_DANGEROUS_SCHEMES = {
    "about", "afp", "blob", "data", "feed", "file", "filesystem", "ftp", "jar", "javascript", "ldap", "mailto", "mhtml",
    "nfs", "res", "search", "shell", "smb", "ssh", "telnet", "vbscript", "view-source", "ws", "wss", "x",
}  # fmt: skip
_OF_WINDOWS = ("ms-", "search-ms")
"""Beginnings of schemes that start programs of the system."""
_AUTH_METHODS = {"none", "client_secret_post", "client_secret_basic"}


class _Client(
    Struct, frozen=True, omit_defaults=True, rename={"nonce": "i", "name": "n", "redirect_uris": "r", "auth_method": "a"}
):
    """What a client has registered. Short names: it stands in addresses."""

    nonce: str
    """Random: another client that registers the same is another one."""
    name: str
    redirect_uris: list[str]
    auth_method: str = "none"


class Clients:
    """The clients that have registered; nothing is kept of them, so that however many register take no room."""

    def __init__(self, key: str) -> None:
        self._ids = Signer(key, Purpose.CLIENT)
        self._secrets = Signer(key, Purpose.CLIENT_SECRET)

    def register(self, client: OAuthClientInformationFull) -> None:
        """Give a client its id and secret. Errors: `RegistrationError`."""
        uris = [str(uri) for uri in client.redirect_uris or ()]
        for uri in uris:
            check_redirect_uri(uri)
        method = client.token_endpoint_auth_method or "none"
        if method not in _AUTH_METHODS:
            raise RegistrationError("invalid_client_metadata", f"token_endpoint_auth_method {method!r} is not supported")
        name = " ".join("".join(filter(str.isprintable, client.client_name or "")).split())[:_MAX_NAME] or "unnamed"
        client.client_id = self._ids.sign(_Client(secrets.token_urlsafe(12), name, uris, method))
        if len(client.client_id) > MAX_ID_CHARACTERS:
            raise RegistrationError("invalid_client_metadata", "the redirect URIs are too long, or too many")
        client.client_name, client.scope = name, SCOPE
        client.client_secret = None if method == "none" else self._secret(client.client_id)

    def get(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return a client that has registered."""
        found = self._ids.read(client_id, _Client) if len(client_id) <= MAX_ID_CHARACTERS else None
        if found is None:
            return None
        return OAuthClientInformationFull.model_validate(
            {
                "client_id": client_id,
                "client_name": found.name,
                "redirect_uris": found.redirect_uris,
                "token_endpoint_auth_method": found.auth_method,
                "client_secret": None if found.auth_method == "none" else self._secret(client_id),
                "scope": SCOPE,
            }
        )

    def _secret(self, client_id: str) -> str:
        return self._secrets.sign(client_id).rpartition(".")[2]


def check_redirect_uri(uri: str) -> None:
    """Raise `RegistrationError` for a URI that a code must not be sent to.

    Allowed are https, http on the client's own machine, and schemes of programs.
    """
    parts = urlsplit(uri)
    is_web = parts.scheme in {"http", "https"}
    if (
        parts.scheme in _DANGEROUS_SCHEMES
        or parts.scheme.startswith(_OF_WINDOWS)
        or not _SCHEME.fullmatch(parts.scheme)
        or "@" in parts.netloc
        or "#" in uri
    ):
        raise RegistrationError("invalid_redirect_uri", "a redirect URI has a scheme, a user or a fragment that is not allowed")
    if is_web and (not parts.hostname or (parts.scheme == "http" and not is_loopback_host(parts.hostname))):
        raise RegistrationError(
            "invalid_redirect_uri", "a redirect URI has to begin with https://, except on the client's machine"
        )
