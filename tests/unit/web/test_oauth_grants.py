"""The stored connections: what expires, gives way, and ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from otterwiki_semantic.core.records import ConsentRequest, SecretKind
from otterwiki_semantic.web import oauth_grants
from otterwiki_semantic.web.oauth_grants import (
    ACCESS_SECONDS,
    CODE_SECONDS,
    MAX_PER_ACCOUNT,
    REFRESH_SECONDS,
    ConnectionStore,
    ConnectionsUnavailableError,
    TooManyConnectionsError,
)
from tests.support.fake_time import Clock
from tests.support.processes import another_process_holds

ASKED = ConsentRequest("client", "Prográm", "https://c.example.org/", True, "challenge", "https://m.example.org", None, 9e9)


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> ConnectionStore:
    return ConnectionStore(tmp_path / "data", clock)


def approve(store: ConnectionStore, account: str = "1:a") -> str:
    return store.approve(ASKED, account, "a@example.org")


def kind_of(store: ConnectionStore, secret: str) -> SecretKind | None:
    found = store.find(secret)
    return found[1].kind if found else None


def test_a_code_expires(store: ConnectionStore, clock: Clock) -> None:
    code = approve(store)
    clock.now += CODE_SECONDS - 1
    assert kind_of(store, code) is SecretKind.CODE
    assert store.all() == []
    clock.now += 1
    assert kind_of(store, code) is None
    assert store.exchange(code) is None


def test_tokens_expire_and_an_unused_connection_ends(store: ConnectionStore, clock: Clock) -> None:
    tokens = store.exchange(approve(store))
    assert tokens is not None
    assert [each.email for each in store.all()] == ["a@example.org"]
    clock.now += ACCESS_SECONDS
    assert kind_of(store, tokens.access) is None
    assert store.exchange(tokens.access) is None
    clock.now += REFRESH_SECONDS - ACCESS_SECONDS - 1
    following = store.exchange(tokens.refresh)
    assert following is not None
    clock.now += REFRESH_SECONDS
    assert store.exchange(following.refresh) is None
    assert store.all() == []


def test_the_least_used_connection_of_an_account_gives_way(store: ConnectionStore, clock: Clock) -> None:
    others = store.exchange(approve(store, "2:b"))
    made = []
    for _ in range(MAX_PER_ACCOUNT + 1):
        clock.now += 1
        made.append(store.exchange(approve(store)))
    assert [bool(tokens and store.find(tokens.access)) for tokens in made] == [False] + [True] * MAX_PER_ACCOUNT
    assert others
    assert store.find(others.access), "another account's stay"


def test_a_wiki_with_too_many_connections_takes_no_more(store: ConnectionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth_grants, "MAX_CONNECTIONS", 2)
    approve(store, "1:a")
    approve(store, "2:b")
    with pytest.raises(TooManyConnectionsError, match="disconnect some"):
        approve(store, "3:c")


def test_of_all_who_exchange_a_code_at_once_one_gets_tokens(tmp_path: Path, clock: Clock) -> None:
    code = approve(ConnectionStore(tmp_path, clock))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ConnectionStore(tmp_path, clock).exchange(code, "client"), range(8)))
    assert sum(answer is not None for answer in answers) == 1
    assert ConnectionStore(tmp_path, clock).all() == [], "the others are a replay, which ends the connection"


def test_only_its_client_ends_a_connection_by_sending_a_spent_code_again(store: ConnectionStore) -> None:
    code = approve(store)
    tokens = store.exchange(code, "client")
    assert tokens is not None
    for client in (None, "another client"):
        assert store.find(code, client) is None
        assert store.exchange(code, client) is None
        assert store.find(tokens.access), "the connection goes on"
    assert store.find(code, "client") is None
    assert store.find(tokens.access) is None


def test_a_lock_that_somebody_holds_delays_changes_and_stops_no_reading(
    store: ConnectionStore, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth_grants, "_LOCK_SECONDS", 0.2)
    tokens = store.exchange(approve(store))
    assert tokens is not None
    clock.now += ACCESS_SECONDS
    with another_process_holds(tmp_path / "data" / "connections.lock"):
        found = store.find(tokens.refresh)
        assert found is not None
        store.touch(found[0])
        with pytest.raises(ConnectionsUnavailableError, match=r"another process holds .*connections\.lock"):
            store.remove(found[0].id)
    store.touch(found[0])
    (stored,) = store.all()
    assert stored.used == clock.now


def test_a_connection_that_was_ended_meanwhile_is_not_stored_again(store: ConnectionStore, clock: Clock) -> None:
    assert store.exchange(approve(store))
    (connection,) = store.all()
    assert store.remove(connection.id)
    clock.now += ACCESS_SECONDS
    store.touch(connection)
    assert list(store.all()) == []


def test_refreshing_for_years_keeps_the_file_small(store: ConnectionStore, tmp_path: Path) -> None:
    tokens = store.exchange(approve(store))
    for _ in range(300):
        assert tokens
        tokens = store.exchange(tokens.refresh)
    assert (tmp_path / "data" / "connections.json").stat().st_size < 5_000


def test_a_damaged_file_disconnects_all_and_stops_nothing(store: ConnectionStore, tmp_path: Path) -> None:
    approve(store)
    (tmp_path / "data" / "connections.json").write_text("{")
    assert store.all() == []
    assert store.exchange(approve(store)) is not None
