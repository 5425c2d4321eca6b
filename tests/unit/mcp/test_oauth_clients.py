"""Clients that register: where a code may be sent, and what an id may unpack to."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.server.auth.provider import RegistrationError
from mcp.shared.auth import OAuthClientInformationFull

from otterwiki_semantic.core.records import Purpose
from otterwiki_semantic.core.signing import MAX_STATEMENT_BYTES, Signer
from otterwiki_semantic.mcp.oauth.clients import MAX_ID_CHARACTERS, Clients, is_redirect_allowed

KEY = "a-key-that-is-long-enough-to-sign"
HTTPS = "https://client.example.org/callback"
ALLOWED = (
    *(HTTPS, "https://claude.ai/api/mcp/auth_callback", "https://localhost:8443/"),
    *("http://127.0.0.1:33418/", "http://[::1]:7/callback", "http://localhost/callback", "http://127.1:80/"),
    *("com.example.app:/callback", "com.example.app://callback", "org.example-1.app:callback"),
)
REFUSED = (
    *("microsoft-edge:https://evil.example.org/", "x-safari-https://evil.example.org/", "googlechromes://evil.example.org/"),
    *("cursor://anysphere.cursor-mcp/oauth/callback", "vscode://evil", "web+app:x", "intent://x", "urn:ietf:wg:oauth:2.0:oob"),
    *(
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ms-msdt:x",
        "search-ms:x",
        "view-source:x",
        "ws://x.y/",
    ),
    *("http://evil.example.org/", "http://127.0.0.2/", "http://[::ffff:127.0.0.1]/", "http://localhost.evil.example.org/"),
    *("http://localhost@evil.example.org/", "https://user@evil.example.org/", "com.example.app://user@x/", f"{HTTPS}#x"),
    *("http://0.0.0.0/", "http://app.localhost/", "com.example.app:/x#y", "com..app:/x"),
)


def register(*uris: str) -> OAuthClientInformationFull:
    client = information(*uris)
    Clients(KEY).register(client)
    return client


def information(*uris: str) -> OAuthClientInformationFull:
    return OAuthClientInformationFull.model_validate(
        {"client_id": "none", "redirect_uris": uris, "token_endpoint_auth_method": "none", "client_name": "Client"}
    )


@pytest.mark.parametrize("uri", ALLOWED)
def test_a_code_is_sent_to_https_the_own_machine_and_private_schemes(uri: str) -> None:
    client = register(uri)
    assert client.client_id is not None
    found = Clients(KEY).get(client.client_id)
    assert found is not None
    assert found.redirect_uris == client.redirect_uris


@pytest.mark.parametrize("uri", REFUSED)
def test_a_code_is_sent_nowhere_else(uri: str) -> None:
    with pytest.raises(RegistrationError) as refused:
        register(HTTPS, uri)
    assert refused.value.error == "invalid_redirect_uri"


def signed(*uris: str) -> str:
    """Return the id that an earlier version gave a client."""
    return Signer(KEY, Purpose.CLIENT).sign({"i": "nonce", "n": "Client", "r": uris})


@pytest.mark.parametrize("uri", ["microsoft-edge:https://evil.example.org/", "http://127.0.0.2/"])
def test_a_client_that_registered_an_address_which_is_no_longer_allowed_is_unknown(uri: str) -> None:
    assert Clients(KEY).get(signed(HTTPS)) is not None
    assert Clients(KEY).get(signed(HTTPS, uri)) is None


def addresses(number: int, length: int) -> list[str]:
    return [HTTPS + "/" * (length - len(HTTPS))] * number


def test_a_client_registers_ten_addresses_of_five_hundred_characters_at_most() -> None:
    client_id = register(*addresses(10, 500)).client_id
    assert client_id is not None
    assert Clients(KEY).get(client_id) is not None
    for uris in (addresses(11, 30), addresses(1, 501)):
        with pytest.raises(RegistrationError) as refused:
            register(*uris)
        assert "more than 10 redirect URIs, or one of more than 500" in str(refused.value.error_description)
        assert Clients(KEY).get(signed(*uris)) is None


def test_an_id_that_unpacks_to_thousands_of_addresses_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = signed(*["a.b:"] * 20_000)
    assert len(bomb) <= MAX_ID_CHARACTERS
    parsed: list[int] = []
    signer = Signer(KEY, Purpose.CLIENT)
    loads = signer._serializer.serializer.loads

    def spy(text: str) -> Any:
        parsed.append(len(text))
        return loads(text)

    monkeypatch.setattr(signer._serializer.serializer, "loads", spy)
    assert Clients(KEY).get(bomb) is None
    assert not parsed
    assert Clients(KEY).get(signed(*[HTTPS] * 10)) is not None
    assert parsed
    assert max(parsed) <= MAX_STATEMENT_BYTES


def test_the_private_schemes_are_not_those_of_http() -> None:
    assert not is_redirect_allowed("https:")
    assert not is_redirect_allowed("https:///x")
