"""Access to the MCP server over HTTP: its addresses, checked at start, accepted host names, and bearer token."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from otterwiki_semantic.core.addresses import is_http_url, is_loopback_host
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.signing import MIN_KEY_CHARACTERS

PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_ANY = ("0.0.0.0", "::")
_ADDRESS = re.compile(r"\A(?:(?P<host>\[[0-9A-Fa-f:.]++\]|[^\s\[\]:/]*+):)?(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """The addresses for OAuth, and the wiki's key."""

    issuer: str
    """The public URL of this server, which identifies the authorization server."""
    wiki: str
    """The address of the wiki for this server."""
    browser_wiki: str
    key: str = field(repr=False)

    @property
    def resource(self) -> str:
        """The URL that clients connect to."""
        return self.issuer + PATH

    @property
    def host(self) -> str:
        """The host name of the public URL."""
        return _in_url(urlsplit(self.issuer).hostname or "")


def oauth_settings(public_url: str, wiki: str, browser_wiki: str | None, key: str | None) -> OAuthSettings:
    """Return the settings. Raises `ConfigError` for an address or a key that would not be safe."""
    if not key or len(key) < MIN_KEY_CHARACTERS:
        raise ConfigError(
            f"--public-url needs OTTERWIKI_API_KEY, of at least {MIN_KEY_CHARACTERS} characters, here and where the wiki is "
            "started: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    issuer = _checked("--public-url", public_url)
    if issuer.endswith(PATH):
        raise ConfigError(f"--public-url is {public_url!r}; leave out {PATH}, which clients add to it")
    option = "--wiki-url" if browser_wiki else "--url, unless --wiki-url says how browsers reach the wiki,"
    return OAuthSettings(issuer, wiki.strip().rstrip("/"), _checked(option, browser_wiki or wiki), key)


def _checked(option: str, url: str) -> str:
    url = url.strip().rstrip("/")
    if not is_http_url(url) or "?" in url or "#" in url:
        raise ConfigError(f"{option} is not allowed; allowed: https://host or https://host/path")
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback_host(parts.hostname or ""):
        raise ConfigError(f"{option} has to begin with https://; http:// is allowed for this machine only")
    return url


def _in_url(host: str) -> str:
    """Return a host as written in a URL, with an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """An address to listen on, and who may send requests to it."""

    host: str
    port: int
    """0 for any free port."""
    token: str | None = field(default=None, repr=False)
    """The bearer token that every request must have."""
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    """Host names and origins that are accepted in addition to those of this machine."""
    oauth: OAuthSettings | None = None

    @property
    def url_host(self) -> str:
        return _in_url(self.host)

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
        app = self._app
        if scope["type"] == "http":
            scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
            given = f"{scheme.capitalize()} {token.strip()}".encode("latin-1")
            if not hmac.compare_digest(given, self._expected):
                app = PlainTextResponse("a bearer token is required\n", 401, {"WWW-Authenticate": "Bearer"})
        await app(scope, receive, send)
