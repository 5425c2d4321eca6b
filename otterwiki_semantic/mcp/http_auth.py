"""Access to the MCP server over HTTP: its address, accepted host names, bearer token, and OAuth."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from otterwiki_semantic.core.addresses import is_loopback_host
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.mcp.oauth import OAuthSettings

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_ANY = ("0.0.0.0", "::")
_ADDRESS = re.compile(r"\A(?:(?P<host>\[[0-9A-Fa-f:.]++\]|[^\s\[\]:/]*+):)?(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """An address to listen on, and who may send requests to it."""

    host: str
    port: int
    """0 for any free port."""
    token: str | None = field(default=None, repr=False)
    """The bearer token that every request must have."""
    hosts: tuple[str, ...] = ()
    """Host names that are accepted in addition to those of this machine."""
    origins: tuple[str, ...] = ()
    """Origins that are accepted in addition to those of this machine."""
    oauth: OAuthSettings | None = None
    """None if clients cannot get tokens."""

    @property
    def url_host(self) -> str:
        """The host as written in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def allowed_hosts(self) -> list[str]:
        """The accepted values of the Host header, with any port."""
        names = [*_LOOPBACK, *([] if self.host in _ANY else [self.url_host]), *self.hosts]
        names += [self.oauth.host] if self.oauth else []
        return [value for name in names for value in (name, f"{name}:*")]

    @property
    def allowed_origins(self) -> list[str]:
        """The accepted values of the Origin header; a request without it does not come from a browser."""
        own = [f"{scheme}://{name}" for name in _LOOPBACK for scheme in ("http", "https")]
        return [value for origin in own for value in (origin, f"{origin}:*")] + list(self.origins)


def http_access(
    address: str,
    token: str | None,
    hosts: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    oauth: OAuthSettings | None = None,
) -> HttpAccess:
    """Parse an address: ``HOST:PORT``, ``:PORT`` or ``PORT``, an IPv6 address in brackets.

    Raises `ConfigError` if it is invalid, or if other machines can reach it and there is neither a token nor OAuth.
    """
    found = _ADDRESS.fullmatch(address.strip())
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(f"--http is {address!r}; allowed: HOST:PORT, :PORT or PORT, an IPv6 address in brackets")
    host = (found["host"] or "127.0.0.1").strip("[]")
    token = (token or "").strip() or None
    if token is None and oauth is None and not is_loopback_host(host):
        raise ConfigError(f"other machines can reach {host}: set MCP_AUTH_TOKEN to the token that they have to send")
    return HttpAccess(host, int(found["port"]), token, hosts, origins, oauth)


class BearerToken:
    """ASGI middleware that answers requests without the token with 401."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_right(Headers(scope=scope)):
            refusal = PlainTextResponse("a bearer token is needed\n", 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_right(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return hmac.compare_digest(f"{scheme.capitalize()} {token.strip()}".encode("latin-1"), self._expected)
