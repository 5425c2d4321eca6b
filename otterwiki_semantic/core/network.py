"""Which addresses are on this machine."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit


def is_loopback_address(address: str) -> bool:
    """Whether an IP address is a loopback address; False for a host name."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_loopback


def is_loopback_host(host: str) -> bool:
    """Whether a host is `localhost` or a loopback address; no other name is looked up."""
    return host.lower() == "localhost" or is_loopback_address(host)


def is_on_this_machine(url: str) -> bool:
    """Whether a URL leads to this machine, so that requests need neither a proxy nor encryption."""
    host = urlsplit(url).hostname or ""
    return is_loopback_host(host) or host.endswith(".localhost")
