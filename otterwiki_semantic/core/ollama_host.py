"""The variable OLLAMA_HOST."""

from __future__ import annotations

_PORT = 11434


def host_url(host: str) -> str:
    """Return the URL that OLLAMA_HOST means, as Ollama's own programs read it; this machine's if it is empty."""
    scheme, separator, rest = host.strip().rstrip("/").rpartition("://")
    place, slash, path = rest.partition("/")
    name, colon, port = place.rpartition(":") if not place.endswith("]") else (place, "", "")
    if not colon:
        name, port = place, str({"http": 80, "https": 443}[scheme] if scheme in {"http", "https"} else _PORT)
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)
    return f"{scheme if separator else 'http'}://{name}:{port}{slash}{path}"
