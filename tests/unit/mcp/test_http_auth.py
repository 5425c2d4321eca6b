"""Which addresses need a token, and what no server or client is started with."""

from __future__ import annotations

import pytest

from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.mcp.http_auth import http_access
from otterwiki_semantic.mcp.rest_backend import RestBackend

TOKEN = "a-token-that-nobody-may-see"


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("8000", "127.0.0.1", 8000),
        (":8000", "127.0.0.1", 8000),
        ("localhost:1", "localhost", 1),
        ("[::1]:8000", "::1", 8000),
        ("127.0.0.2:0", "127.0.0.2", 0),
    ],
)
def test_an_address_of_this_machine_needs_no_token(address: str, host: str, port: int) -> None:
    access = http_access(address, None)
    assert (access.host, access.port) == (host, port)
    assert f"{access.url_host}:*" in access.allowed_hosts


@pytest.mark.parametrize("address", ["0.0.0.0:8000", "[::]:8000", "192.168.1.5:80", "wiki.lan:8000"])
def test_an_address_that_others_reach_needs_a_token(address: str) -> None:
    with pytest.raises(ConfigError, match="set MCP_AUTH_TOKEN"):
        http_access(address, "  ")
    access = http_access(address, TOKEN, ("wiki.lan",))
    assert not {"0.0.0.0", "[::]"} & set(access.allowed_hosts)
    assert "wiki.lan:*" in access.allowed_hosts


@pytest.mark.parametrize("address", ["", "host", "::1:8000", "host:", "1:2:3", "127.0.0.1:65536", "[::1]", "a b:1", "-1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="--http is"):
        http_access(address, TOKEN)


@pytest.mark.parametrize(
    ("url", "key", "name"),
    [
        *((url, None, "OTTERWIKI_URL") for url in ("", "127.0.0.1:8080", "ftp://host", "http://", "http://user:secret@host")),
        *((url, None, "OTTERWIKI_URL") for url in ("http://h:0", "http://h/?q=1", "http://h:x")),
        *(("http://127.0.0.1:9", key, "OTTERWIKI_API_KEY") for key in ("secret\nlines", "secret\x00b", "secret\x7f")),
    ],
)
def test_a_wiki_has_an_address_without_a_password_and_a_key_that_can_be_sent(url: str, key: str | None, name: str) -> None:
    with pytest.raises(ConfigError, match=name) as error:
        RestBackend(url, key)
    assert "secret" not in str(error.value)
