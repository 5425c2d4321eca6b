"""Which public addresses and keys are refused."""

from __future__ import annotations

import pytest

from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.records import Purpose
from otterwiki_semantic.core.signing import Signer
from otterwiki_semantic.mcp.http_auth import http_access, oauth_settings

KEY = "k" * 20
WIKI = "https://wiki.example.org"


@pytest.mark.parametrize(
    "url", ["https://mcp.example.org", "https://example.org/agents/", "http://127.0.0.1:8000", "http://[::1]"]
)
def test_these_public_urls_are_accepted(url: str) -> None:
    settings = oauth_settings(url, WIKI, None, KEY)
    assert settings.resource == f"{url.rstrip('/')}/mcp"
    assert settings.host in http_access("0", None, oauth=settings).allowed_hosts


PUBLIC = "https://mcp.example.org"


@pytest.mark.parametrize(
    ("url", "wiki", "key", "said"),
    [
        *((url, WIKI, KEY, "--public-url") for url in ("http://mcp.example.org", "http://10.0.0.1", "mcp.example.org")),
        *((url, WIKI, KEY, "--public-url") for url in ("https://u:p@h", "https://h?a", "https://h/mcp", "")),
        (PUBLIC, "http://wiki:8080", KEY, "--wiki-url"),
        *((PUBLIC, WIKI, key, "OTTERWIKI_API_KEY, of at least 20") for key in (None, "", "short-enough-to-try")),
    ],
)
def test_addresses_and_keys_that_would_not_be_safe_are_refused(url: str, wiki: str, key: str | None, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        oauth_settings(url, wiki, None, key)


def test_people_log_in_over_https_only() -> None:
    settings = oauth_settings(PUBLIC, "http://wiki:8080", WIKI, KEY)
    assert (settings.wiki, settings.browser_wiki) == ("http://wiki:8080", WIKI)
    assert http_access("0.0.0.0:8000", None, oauth=settings).token is None, "clients can get tokens"
    assert KEY not in repr(http_access("0.0.0.0:8000", None, oauth=settings))


def test_a_statement_is_read_for_its_purpose_only() -> None:
    signed = Signer(KEY, Purpose.CLIENT).sign(["a", 1])
    assert Signer(KEY, Purpose.CLIENT).read(signed, list) == ["a", 1]
    assert Signer(KEY, Purpose.CONSENT).read(signed, list) is None
    assert Signer("l" * 20, Purpose.CLIENT).read(signed, list) is None
    assert Signer(KEY, Purpose.CLIENT).read(signed, str) is None
    for damaged in ("", ".", "ü", signed[:-1], signed + "a", signed.replace(".", "")):
        assert Signer(KEY, Purpose.CLIENT).read(damaged, list) is None
