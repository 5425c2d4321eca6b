"""Dynamic client registration without storage: a client's id is its signed registration."""

from __future__ import annotations

import re
import secrets
from typing import Annotated
from urllib.parse import urlsplit

from mcp.server.auth.provider import RegistrationError
from mcp.shared.auth import OAuthClientInformationFull
from msgspec import Meta, Struct

from otterwiki_semantic.core.records import Purpose
from otterwiki_semantic.core.signing import Signer

SCOPE = "wiki"
MAX_ID_CHARACTERS = 1_000
_MAX_NAME = 60
_MAX_REDIRECT_URIS = 10
_MAX_URI_CHARACTERS = 500
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_PRIVATE_SCHEME = re.compile(r"\A[a-z][a-z0-9-]*+(?:\.[a-z0-9-]++)+")
"""A private-use scheme: a domain name in reverse order (RFC 8252, section 7.1). Schemes of browsers have no dot."""
_NOT_ALLOWED = (
    "is not allowed; a redirect URI begins with https://, with http:// and 127.0.0.1, [::1] or localhost, "
    "or with a scheme such as com.example.app:, and has neither a user nor a fragment"
)
AUTH_METHODS = ["none", "client_secret_post", "client_secret_basic"]


class _Client(
    Struct, frozen=True, omit_defaults=True, rename={"nonce": "i", "name": "n", "redirect_uris": "r", "auth_method": "a"}
):
    """A client's registration. Names are short because it is part of URLs."""

    nonce: str
    """Random, so that two clients with equal registrations differ."""
    name: str
    redirect_uris: Annotated[list[Annotated[str, Meta(max_length=_MAX_URI_CHARACTERS)]], Meta(max_length=_MAX_REDIRECT_URIS)]
    auth_method: str = "none"


class Clients:
    """The registered clients. Nothing is stored, so that any number may register."""

    def __init__(self, key: str) -> None:
        self._ids = Signer(key, Purpose.CLIENT)
        self._secrets = Signer(key, Purpose.CLIENT_SECRET)

    def register(self, client: OAuthClientInformationFull) -> None:
        """Set a client's id and secret. Errors: `RegistrationError`."""
        uris = [str(uri) for uri in client.redirect_uris or ()]
        if len(uris) > _MAX_REDIRECT_URIS or any(len(uri) > _MAX_URI_CHARACTERS for uri in uris):
            raise RegistrationError(
                "invalid_redirect_uri",
                f"more than {_MAX_REDIRECT_URIS} redirect URIs, or one of more than {_MAX_URI_CHARACTERS} characters",
            )
        if refused := next((uri for uri in uris if not is_redirect_allowed(uri)), None):
            raise RegistrationError("invalid_redirect_uri", f"{refused[:_MAX_NAME]!r} {_NOT_ALLOWED}")
        method = client.token_endpoint_auth_method or "none"
        if method not in AUTH_METHODS:
            raise RegistrationError("invalid_client_metadata", f"token_endpoint_auth_method {method!r} is not supported")
        name = " ".join("".join(filter(str.isprintable, client.client_name or "")).split())[:_MAX_NAME] or "unnamed"
        client.client_id = self._ids.sign(_Client(secrets.token_urlsafe(12), name, uris, method))
        if len(client.client_id) > MAX_ID_CHARACTERS:
            raise RegistrationError("invalid_client_metadata", "the redirect URIs are too long, or too many")
        client.client_name, client.scope = name, SCOPE
        client.client_secret = None if method == "none" else self._secret(client.client_id)

    def get(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return a registered client; None if its redirect URIs are no longer allowed."""
        found = self._ids.read(client_id, _Client) if len(client_id) <= MAX_ID_CHARACTERS else None
        if found is None or not all(map(is_redirect_allowed, found.redirect_uris)):
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


def is_redirect_allowed(uri: str) -> bool:
    """Whether a code may be sent to a URI: https, http on the client's own machine, or the private scheme of a program."""
    parts = urlsplit(uri)
    if "@" in parts.netloc or "#" in uri:
        return False
    if parts.scheme == "http":
        return parts.hostname in _LOOPBACK
    return bool(parts.hostname) if parts.scheme == "https" else bool(_PRIVATE_SCHEME.fullmatch(parts.scheme))
