"""Server addresses: validity, whether they are on this machine, and the meaning of OLLAMA_HOST."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

_OLLAMA_PORT = 11434


def is_loopback_address(address: str) -> bool:
    """Whether an IP address is a loopback address; False for a host name."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_loopback


def is_loopback_host(host: str) -> bool:
    """Whether a host is `localhost` or a loopback address; other names are not resolved."""
    return host.lower() == "localhost" or is_loopback_address(host)


def is_http_url(url: str) -> bool:
    """Whether a text is the URL of an HTTP server, without a user name."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and "@" not in url
    except ValueError:
        return False


def is_on_this_machine(url: str) -> bool:
    """Whether a URL leads to this machine, so that requests need neither a proxy nor encryption."""
    host = urlsplit(url).hostname or ""
    return is_loopback_host(host) or host.endswith(".localhost")


def ollama_url(host: str) -> str:
    """Return the URL for a value of OLLAMA_HOST, read as by Ollama's own programs; this machine's if it is empty."""
    scheme, separator, rest = host.strip().rstrip("/").rpartition("://")
    place, slash, path = rest.partition("/")
    name, colon, port = place.rpartition(":") if not place.endswith("]") else (place, "", "")
    if not colon:
        name, port = place, str({"http": 80, "https": 443}[scheme] if scheme in {"http", "https"} else _OLLAMA_PORT)
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)
    return f"{scheme if separator else 'http'}://{name}:{port}{slash}{path}"
