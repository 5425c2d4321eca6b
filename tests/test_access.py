"""Who may ask: keys, sessions and tokens against a real wiki, open and closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live_wiki import KEY, LiveWiki, make_repository

READS = ("/semantic-search?q=radiator", "/semantic-search/status", "/reindex/status")


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory, handbook: dict[str, str | bytes]) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("closed")
    repository = make_repository(place / "repository", handbook)
    with LiveWiki(repository, place / "index", READ_ACCESS="APPROVED", EMAIL_NEEDS_CONFIRMATION="False") as live:
        live.wait_until_indexed()
        yield live


def register(wiki: LiveWiki, name: str) -> None:
    values = {"email": f"{name}@example.org", "name": name.title(), "password1": "secret-secret", "password2": "secret-secret"}
    wiki.post_form("/-/register", "/-/register", **values)


def log_in(wiki: LiveWiki, name: str) -> None:
    wiki.post_form("/-/login", "/-/login", email=f"{name}@example.org", password="secret-secret")


def code(wiki: LiveWiki, method: str, path: str, key: str | None = None, **headers: str) -> tuple[int, str]:
    given = {"Authorization": f"Bearer {key}", **headers} if key else headers
    reply = wiki.request(method, f"/api/v1{path}", headers=given)
    assert reply.headers["Content-Type"] == "application/json", reply.text
    return reply.status, (reply.json.get("error") or {}).get("code", "")


@pytest.mark.parametrize("path", READS)
def test_a_closed_wiki_answers_nobody_without_key_or_login(closed: LiveWiki, path: str) -> None:
    closed.cookies.clear()
    reply = closed.request("GET", f"/api/v1{path}")
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert "Heating" not in reply.text
    assert code(closed, "GET", path, "wrong") == (401, "wrong_key")
    assert code(closed, "GET", path, KEY) == (200, "")


def test_the_key_is_compared_whole(closed: LiveWiki) -> None:
    for key in (KEY[:-1], KEY + "x", KEY.upper(), "ключ".encode().decode("latin-1")):
        assert closed.api("GET", "/semantic-search/status", key=key).status == 401


def test_people_may_what_the_wiki_lets_them(closed: LiveWiki) -> None:
    closed.cookies.clear()
    register(closed, "admin")
    log_in(closed, "admin")
    for path in READS:
        assert code(closed, "GET", path) == (200, "")
    assert code(closed, "POST", "/reindex") == (403, "csrf_failed")
    assert code(closed, "POST", "/reindex", **{"X-CSRFToken": "wrong"}) == (403, "csrf_failed")
    token = closed.csrf_token("/home/edit")
    assert code(closed, "POST", "/reindex", **{"X-CSRFToken": token}) == (202, "")

    closed.cookies.clear()
    register(closed, "guest")
    log_in(closed, "guest")
    token = closed.csrf_token("/-/settings")
    assert code(closed, "POST", "/reindex", **{"X-CSRFToken": token}) == (403, "forbidden")


@pytest.mark.parametrize("path", READS)
def test_an_open_wiki_answers_everyone(wiki: LiveWiki, path: str) -> None:
    assert code(wiki, "GET", path) == (200, "")
    assert code(wiki, "GET", path, "wrong") == (401, "wrong_key")


def test_an_open_wiki_answers_a_batch_without_a_token(wiki: LiveWiki) -> None:
    reply = wiki.api("POST", "/semantic-search", key=None, json_body={"queries": ["radiator"]})
    assert reply.status == 200


def test_nobody_rebuilds_without_key_or_administrator(wiki: LiveWiki) -> None:
    assert code(wiki, "POST", "/reindex") == (401, "unauthorized")
    assert code(wiki, "POST", "/reindex", "wrong") == (401, "wrong_key")
    assert code(wiki, "POST", "/reindex", KEY) in {(202, ""), (409, "reindex_running")}


def test_without_a_configured_key_only_sessions_count(tmp_path: Path, handbook: dict[str, str | bytes]) -> None:
    repository = make_repository(tmp_path / "repository", handbook)
    with LiveWiki(repository, tmp_path / "index", OTTERWIKI_API_KEY="") as live:
        assert code(live, "GET", "/semantic-search/status") == (200, "")
        assert code(live, "GET", "/semantic-search/status", "anything") == (401, "no_key_configured")
        assert code(live, "POST", "/reindex", "anything") == (401, "no_key_configured")
        assert live.log.count("OTTERWIKI_API_KEY is not set") == 1
