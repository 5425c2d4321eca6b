"""The public addresses for OAuth, checked at start."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from otterwiki_semantic.core.addresses import is_http_url, is_loopback_host
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.signing import MIN_KEY_CHARACTERS

PATH = "/mcp"


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """The addresses of this server and the wiki for clients and browsers."""

    issuer: str
    """The public URL, which identifies the authorization server."""
    wiki: str
    """The address of the wiki for this server."""
    browser_wiki: str
    """The address of the wiki for browsers."""
    key: str = field(repr=False)

    @property
    def resource(self) -> str:
        """The URL that clients connect to."""
        return self.issuer + PATH

    @property
    def host(self) -> str:
        """The host name of the public URL; an IPv6 address is in brackets."""
        name = urlsplit(self.issuer).hostname or ""
        return f"[{name}]" if ":" in name else name


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
