"""Which addresses are this machine's."""

from __future__ import annotations

import pytest

from otterwiki_semantic.core.addresses import is_loopback_address, is_loopback_host, is_on_this_machine


@pytest.mark.parametrize(
    ("address", "is_address", "is_host"),
    [
        *((address, True, True) for address in ("127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1")),
        *((name, False, True) for name in ("localhost", "LOCALHOST")),
        *((other, False, False) for other in ("", "0.0.0.0", "10.0.0.1", "::", "::ffff:10.0.0.1", "fe80::1")),
        *((name, False, False) for name in ("127.0.0.1.example.org", "wiki.localhost")),
    ],
)
def test_addresses_and_names_of_this_machine_are_known(address: str, *, is_address: bool, is_host: bool) -> None:
    assert is_loopback_address(address) is is_address
    assert is_loopback_host(address) is is_host


HERE = ("http://localhost:8000", "http://wiki.localhost", "http://127.0.0.1:1/v1", "http://[::1]:8000", "https://LOCALHOST")
ELSEWHERE = ("http://example.org", "http://localhost.example.org", "http://192.168.1.5", "localhost:8000", "")


@pytest.mark.parametrize("url", [*HERE, *ELSEWHERE])
def test_a_url_of_this_machine_is_known(url: str) -> None:
    assert is_on_this_machine(url) is (url in HERE)
