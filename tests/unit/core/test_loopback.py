from __future__ import annotations

import pytest

from otterwiki_semantic.core.loopback import is_loopback_address, is_loopback_host, is_on_this_machine


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_a_loopback_address_is_an_address_of_this_machine(address: str) -> None:
    assert is_loopback_address(address)
    assert is_loopback_host(address)


@pytest.mark.parametrize("address", ["", "0.0.0.0", "10.0.0.1", "::", "::ffff:10.0.0.1", "fe80::1", "127.0.0.1.example.org"])
def test_other_addresses_are_of_other_machines(address: str) -> None:
    assert not is_loopback_address(address)
    assert not is_loopback_host(address)


def test_localhost_is_a_host_but_no_address() -> None:
    assert is_loopback_host("localhost")
    assert is_loopback_host("LOCALHOST")
    assert not is_loopback_address("localhost")
    assert not is_loopback_host("wiki.localhost")


@pytest.mark.parametrize(
    "url",
    ["http://localhost:8000", "http://wiki.localhost", "http://127.0.0.1:11434/v1", "http://[::1]:8000", "https://LOCALHOST"],
)
def test_a_url_of_this_machine_is_known(url: str) -> None:
    assert is_on_this_machine(url)


@pytest.mark.parametrize(
    "url", ["http://example.org", "http://localhost.example.org", "http://192.168.1.5", "localhost:8000", ""]
)
def test_a_url_of_another_machine_is_known(url: str) -> None:
    assert not is_on_this_machine(url)
