"""Remote clients that people connect with their account: the SDK's client end to end, and attacks."""

from __future__ import annotations

import html
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import requests
from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp.client.auth import OAuthFlowError
from mcp.client.streamable_http import streamable_http_client

from tests.support.accounts import OPEN_TO_ACCOUNTS
from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import LiveWiki, make_repository
from tests.support.mcp_clients import Agent, http_server
from tests.support.oauth import API_KEY, REDIRECT, Browser, RawClient, Storage, sdk_auth
from tests.support.ports import free_port
from tests.support.proxies import PROGRAMS, mcp_proxy

STATIC = "the-static-token-of-the-server"
CONSENT = "/-/semantic-search/connect"


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("oauth")
    settings: dict[str, Any] = {"OTTERWIKI_API_KEY": API_KEY, **OPEN_TO_ACCOUNTS, "SEMANTIC_ALLOW_WRITE": "true"}
    with LiveWiki(make_repository(place / "repository", HANDBOOK), place / "index", **settings) as live:
        yield live


@pytest.fixture(scope="module")
def admin(wiki: LiveWiki) -> Browser:
    """The administrator: the first account."""
    return Browser(wiki, "admin")


@pytest.fixture(scope="module")
def reader(admin: Browser) -> Browser:
    return Browser(admin.wiki, "reader")


@pytest.fixture(scope="module")
def server(wiki: LiveWiki) -> Iterator[str]:
    """The address of the MCP server, without /mcp."""
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    arguments = ("--http", port, "--url", wiki.url, "--public-url", url, "--allow-reindex")
    log = wiki.data_dir.parent / "mcp.log"
    with http_server(log, *arguments, OTTERWIKI_API_KEY=API_KEY, MCP_AUTH_TOKEN=STATIC):
        yield url


@pytest.fixture
def client(server: str) -> RawClient:
    return RawClient(server)


def ask(auth: httpx2.Auth | None, server: str, tool: str, token: str = "", **arguments: Any) -> str:
    """Call a tool as a client of the SDK does; return its text."""

    @asynccontextmanager
    async def connected() -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx2.AsyncClient(auth=auth, headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{server}/mcp", http_client=http)) as found,
        ):
            yield found

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(connected()) as found:
        answer = Agent(portal, found).call(tool, **arguments)
        return "".join(getattr(each, "text", "") for each in answer.content)


# What a client does


def test_a_client_of_the_sdk_connects_asks_and_refreshes(server: str, reader: Browser) -> None:
    storage = Storage()
    assert "garden" in ask(sdk_auth(f"{server}/mcp", reader, storage), server, "list_notes")
    first = storage.tokens
    assert first is not None
    assert first.refresh_token
    storage.tokens = first.model_copy(update={"access_token": "expired"})
    assert "garden" in ask(sdk_auth(f"{server}/mcp", reader, storage), server, "list_notes")
    assert storage.tokens.access_token not in {"expired", first.access_token}
    assert "garden" in ask(None, server, "list_notes", token=STATIC), "the static token stays"


def test_metadata_says_what_is_supported(server: str) -> None:
    refused = httpx.post(f"{server}/mcp", json={})
    assert refused.status_code == 401
    assert f'resource_metadata="{server}/.well-known/oauth-protected-resource/mcp"' in refused.headers["WWW-Authenticate"]
    resource = httpx.get(f"{server}/.well-known/oauth-protected-resource/mcp").json()
    assert resource["resource"] == f"{server}/mcp"
    assert resource["authorization_servers"] == [server]
    metadata = httpx.get(f"{server}/.well-known/oauth-authorization-server").json()
    assert metadata["issuer"] == server
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert metadata["authorization_response_iss_parameter_supported"] is True
    assert "none" in metadata["token_endpoint_auth_methods_supported"]
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"):
        assert metadata[name].startswith(server)


@pytest.mark.parametrize("method", ["none", "client_secret_post"])
def test_a_refresh_token_is_exchanged_once_and_stolen_ones_end_a_connection(server: str, reader: Browser, method: str) -> None:
    client = RawClient(server, method=method)
    first = client.connect(reader)
    second = client.refresh(first["refresh_token"]).json()
    assert client.ping(second["access_token"]).status_code == 200
    assert client.ping(first["access_token"]).status_code == 401
    assert client.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert client.ping(second["access_token"]).status_code == 401, "somebody else has the old one"
    assert client.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("method", ["none", "client_secret_post"])
def test_a_client_revokes_its_token(server: str, reader: Browser, method: str) -> None:
    client, other = RawClient(server, method=method), RawClient(server)
    tokens = client.connect(reader)
    assert other.revoke(tokens["access_token"]).status_code == 200
    assert client.ping(tokens["access_token"]).status_code == 200, "it is not that client's"
    assert client.revoke("unknown").status_code == 200, "as RFC 7009 has it"
    assert client.revoke(tokens["refresh_token"]).status_code == 200
    assert client.ping(tokens["access_token"]).status_code == 401


def test_a_program_is_denied(client: RawClient, reader: Browser, server: str) -> None:
    sent = reader.decide(client.address(), "deny")
    assert sent["error"] == "access_denied"
    assert (sent["state"], sent["iss"]) == ("abc", server)
    assert "code" not in sent


# Permissions


def test_a_token_has_the_permissions_of_its_account_and_writes_only_if_that_was_allowed(
    server: str, admin: Browser, reader: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said_to(person: Browser) -> str:
        return ask(None, server, "reindex", token=RawClient(server).connect(person)["access_token"])

    assert "no ADMIN permission" in said_to(reader)
    for may_write in (False, True):
        monkeypatch.setattr(admin, "may_write", may_write)
        said = said_to(admin)
        assert "no ADMIN" not in said
        assert ("may only read" in said) is not may_write, said


def test_a_token_dies_with_its_account(server: str, wiki: LiveWiki) -> None:
    client, browser = RawClient(server), Browser(wiki, "leaver")
    tokens = client.connect(browser)
    change(wiki, "UPDATE user SET is_approved = 0 WHERE email = ?", browser.email)
    assert client.ping(tokens["access_token"]).status_code == 401, "it may not read any more"
    change(wiki, "UPDATE user SET is_approved = 1 WHERE email = ?", browser.email)
    assert client.ping(tokens["access_token"]).status_code == 200
    change(wiki, "DELETE FROM user WHERE email = ?", browser.email)
    Browser(wiki, "leaver")  # which SQLite gives the same number
    assert client.ping(tokens["access_token"]).status_code == 401
    assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def change(wiki: LiveWiki, statement: str, email: str) -> None:
    with closing(sqlite3.connect(wiki.data_dir.parent / f"{wiki.data_dir.name}.sqlite")) as database, database:
        assert database.execute(statement, (email,)).rowcount == 1


def test_people_and_administrators_disconnect_programs(server: str, wiki: LiveWiki, admin: Browser, reader: Browser) -> None:
    client = RawClient(server, name="<b>Gadget</b>")
    tokens = client.connect(reader)
    page = admin.open(f"{wiki.url}/-/admin/semantic-search").text
    assert "&lt;b&gt;Gadget&lt;/b&gt;" in page
    assert "client.example.org" in page
    found = page.split("&lt;b&gt;Gadget", 1)[1].split('name="connection" value="', 1)[1].split('"', 1)[0]
    other = Browser(wiki, "other")
    assert "Gadget" not in other.open(wiki.url + CONSENT).text
    assert other.post("/-/admin/semantic-search/disconnect", CONSENT, connection=found).status_code == 403
    other.post(f"{CONSENT}/disconnect", CONSENT, connection=found)
    assert client.ping(tokens["access_token"]).status_code == 200
    assert admin.post("/-/admin/semantic-search/disconnect", CONSENT, connection=found).status_code == 302
    assert client.ping(tokens["access_token"]).status_code == 401
    tokens = client.connect(reader)
    own = reader.open(wiki.url + CONSENT).text.split("&lt;b&gt;Gadget", 1)[1]
    found = own.split('name="connection" value="', 1)[1].split('"', 1)[0]
    reader.post(f"{CONSENT}/disconnect", CONSENT, connection=found)
    assert client.ping(tokens["access_token"]).status_code == 401


def test_secrets_are_stored_hashed_and_for_nobody_else(client: RawClient, wiki: LiveWiki, reader: Browser) -> None:
    code = reader.decide(client.address())["code"]
    tokens = client.redeem(code).json()
    path = wiki.data_dir / "connections.json"
    stored = path.read_text()
    assert client.id in stored
    assert not [secret for secret in (code, tokens["access_token"], tokens["refresh_token"], API_KEY) if secret in stored]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not [secret for secret in (code, tokens["access_token"]) if secret in wiki.log]


# Attacks


def test_a_redirect_uri_that_is_not_registered_gets_nothing(client: RawClient, reader: Browser) -> None:
    for uri in (
        "https://evil.example.org/callback",
        f"{REDIRECT}/more",
        f"{REDIRECT}?a=b",
        "http://client.example.org/callback",
    ):
        answer = httpx.get(client.address(redirect_uri=uri))
        assert answer.status_code == 400
        assert "location" not in answer.headers
    code = reader.decide(client.address())["code"]
    assert client.redeem(code, redirect_uri="https://evil.example.org/callback").status_code == 400
    refused = client.register(redirect_uris=[REDIRECT, "javascript:alert(1)"])
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_redirect_uri")


def test_an_answer_of_another_issuer_is_refused(server: str, client: RawClient, reader: Browser) -> None:
    assert reader.decide(client.address())["iss"] == server
    with pytest.raises(BaseExceptionGroup) as error:
        ask(sdk_auth(f"{server}/mcp", reader, Storage(), issuer="https://evil.example.org"), server, "list_notes")
    assert error.group_contains(OAuthFlowError)


def test_a_spent_code_ends_a_connection_only_at_the_token_endpoint_with_its_client(
    server: str, client: RawClient, reader: Browser
) -> None:
    code = reader.decide(client.address())["code"]
    tokens = client.redeem(code).json()
    other = RawClient(server, verifier=client.verifier)
    assert client.ping(code).status_code == 401, "as a bearer token"
    assert other.redeem(code).json()["error"] == "invalid_grant"
    assert other.refresh(code).json()["error"] == "invalid_grant"
    for revoking in (client, other):
        assert revoking.revoke(code).status_code == 200
    assert client.ping(tokens["access_token"]).status_code == 200, "the connection goes on"
    assert client.redeem(code).json()["error"] == "invalid_grant"
    assert client.ping(tokens["access_token"]).status_code == 401, "it was sent twice"
    assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_consent_shows_the_whole_address_that_the_browser_is_sent_to(server: str, reader: Browser) -> None:
    long = f"com.example.app:/callback?{'x' * 400}&at=end"
    for uri, words in ((REDIRECT, "client.example.org"), (long, "the program on your computer that opens com.example.app:")):
        client = RawClient(server)
        client.registration = client.register(redirect_uris=[uri], token_endpoint_auth_method="none").json()
        page = html.unescape(reader.open(client.address(redirect_uri=uri)).text)
        assert f"<bdi>{uri}</bdi>" in page
        assert words in page


def test_a_request_that_is_longer_than_any_clients_is_not_parsed(client: RawClient) -> None:
    assert client.register(redirect_uris=["https://evil.example.org/"] * 20_000).status_code == 413
    for path in ("token", "revoke", "authorize"):
        assert httpx.post(f"{client.base}/{path}", data={"client_id": client.id, "x": "y" * 20_000}).status_code == 413
    assert httpx.get(client.address(state="x" * 20_000)).status_code == 414
    assert httpx.get(client.address(state="x" * 1_000)).status_code == 302


def test_a_stolen_code_is_of_no_use_to_others(client: RawClient, server: str, reader: Browser) -> None:
    code = reader.decide(client.address())["code"]
    assert RawClient(server, verifier=client.verifier).redeem(code).json()["error"] == "invalid_grant"
    assert client.redeem(code, code_verifier="x" * 50).json()["error"] == "invalid_grant"
    assert client.redeem(code).status_code == 200
    with_secret = RawClient(server, method="client_secret_post")
    code = reader.decide(with_secret.address())["code"]
    with_secret.registration["client_secret"] = "wrong"
    answer = with_secret.redeem(code)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_pkce_cannot_be_downgraded_and_no_other_server_gets_a_token(client: RawClient, reader: Browser) -> None:
    for changed, error in (
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": client.verifier, "code_challenge_method": None}, "invalid_request"),
        ({"resource": "https://elsewhere.example.org/mcp"}, "invalid_target"),
    ):
        answer = httpx.get(client.address(**changed))
        assert answer.status_code == 302
        assert answer.headers["location"].startswith(REDIRECT)
        assert f"error={error}" in answer.headers["location"]
    code = reader.decide(client.address())["code"]
    assert client.token(grant_type="authorization_code", code=code, redirect_uri=REDIRECT).status_code == 400
    assert client.redeem(code, code_verifier=client.challenge()).json()["error"] == "invalid_grant"


def test_consent_needs_a_login_and_the_token_of_its_form(client: RawClient, wiki: LiveWiki, reader: Browser) -> None:
    address = httpx.get(client.address()).headers["location"]
    login = requests.get(address, allow_redirects=False)
    assert login.headers["Location"].startswith("/-/login?next=")
    page = reader.open(address)
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    signed = address.split("request=", 1)[1]
    forged = reader.session.post(wiki.url + CONSENT, data={"request": signed, "decision": "allow"}, allow_redirects=False)
    assert forged.status_code == 400
    assert "Location" not in forged.headers
    reader.session.headers["Origin"] = "https://evil.example"
    try:
        foreign = reader.post(CONSENT, CONSENT, request=signed, decision="allow")
    finally:
        del reader.session.headers["Origin"]
    assert (foreign.status_code, "Location" in foreign.headers) == (403, False)
    assert "comes from another site" in foreign.text


def test_people_who_log_in_first_come_back_to_the_page(client: RawClient, wiki: LiveWiki, reader: Browser) -> None:
    fresh = Browser.__new__(Browser)
    fresh.wiki, fresh.email, fresh.session = wiki, reader.email, requests.Session()
    page = fresh.open(client.address())
    assert "/-/login" in page.url
    form = page.text.split('name="csrf_token"', 1)[1].split('value="', 1)[1].split('"', 1)[0]
    following = page.text.split('name="next"', 1)[1].split('value="', 1)[1].split('"', 1)[0].replace("&amp;", "&")
    values = {"csrf_token": form, "email": fresh.email, "password": "secret-secret", "next": following}
    assert "Raw client" in fresh.session.post(f"{wiki.url}/-/login", data=values).text


def test_a_forged_request_or_client_is_unknown(client: RawClient, wiki: LiveWiki, reader: Browser) -> None:
    signed = httpx.get(client.address()).headers["location"].split("request=", 1)[1]
    payload, _, signature = signed.rpartition(".")
    for forged in (f"{payload[:-2]}xx.{signature}", f"{payload}.{signature[:-3]}abc", payload, client.id, ""):
        page = reader.session.get(wiki.url + CONSENT, params={"request": forged})
        assert page.status_code == 400
        assert "is invalid" in page.text
        assert reader.post(CONSENT, CONSENT, request=forged, decision="allow").status_code == 400
    payload, _, signature = client.id.rpartition(".")
    for forged in ("unknown", f"{payload}.{signature[::-1]}", "x" * 5_000):
        assert httpx.get(client.address(client_id=forged)).status_code == 400


def test_registration_can_be_flooded_without_harm(client: RawClient, wiki: LiveWiki, reader: Browser) -> None:
    stored = sorted(path.name for path in wiki.data_dir.iterdir())
    with httpx.Client() as flood:
        for number in range(50):
            body = {"redirect_uris": [f"https://evil.example.org/{number}"], "client_name": "x" * 10_000}
            assert flood.post(f"{client.base}/register", json=body).status_code == 201
    many = client.register(redirect_uris=[f"https://evil.example.org/{number}" for number in range(500)])
    assert many.status_code == 400
    assert sorted(path.name for path in wiki.data_dir.iterdir()) == stored
    assert client.connect(reader)["access_token"]


def test_only_the_key_asks_for_tokens(client: RawClient, wiki: LiveWiki, reader: Browser, admin: Browser) -> None:
    tokens = client.connect(reader)
    for bearer in (None, "wrong", tokens["access_token"], "connection.abc"):
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        for name in ("lookup", "exchange", "revoke"):
            url = f"{wiki.url}/-/semantic-search/connections/{name}"
            answer = admin.session.post(url, json={"secret": tokens["refresh_token"]}, headers=headers)
            assert answer.status_code == 401
    assert wiki.api("GET", "/semantic-search/status", key=tokens["access_token"]).status == 401, "it is the MCP server's"
    assert wiki.api("GET", "/semantic-search/status", key="connection.abc.def").status == 401


def test_a_wiki_without_accounts_connects_nobody(wiki: LiveWiki, client: RawClient) -> None:
    settings: dict[str, Any] = {"OTTERWIKI_API_KEY": API_KEY, "AUTH_METHOD": "PROXY_HEADER", "AUTH_ROLES_READ": "READ"}
    headers = dict.fromkeys(("x-otterwiki-name", "x-otterwiki-permissions"), "READ")
    headers["x-otterwiki-email"] = "reader@example.org"
    with LiveWiki(wiki.repository, wiki.data_dir, **settings) as other:
        asked = httpx.URL(httpx.get(client.address()).headers["location"]).params
        page = httpx.get(other.url + CONSENT, params=asked, headers=headers)
        assert "no accounts of its own" in page.text
        assert 'value="allow"' not in page.text


def test_below_a_folder_metadata_has_the_addresses_that_clients_expect(wiki: LiveWiki) -> None:
    port = str(free_port())
    root = f"http://127.0.0.1:{port}"
    browsers = f"http://localhost:{wiki.port}"
    arguments = ("--http", port, "--url", wiki.url, "--public-url", f"{root}/agents", "--wiki-url", browsers)
    with http_server(wiki.data_dir.parent / "folder.log", *arguments, OTTERWIKI_API_KEY=API_KEY):
        resource = httpx.get(f"{root}/.well-known/oauth-protected-resource/agents/mcp").json()
        assert resource["resource"] == f"{root}/agents/mcp"
        metadata = httpx.get(f"{root}/.well-known/oauth-authorization-server/agents").json()
        assert metadata["issuer"] == resource["authorization_servers"][0] == f"{root}/agents"
        assert metadata["token_endpoint"] == f"{root}/agents/token"
        assert httpx.get(RawClient(root).address()).headers["location"].startswith(browsers + CONSENT)


@pytest.mark.parametrize("in_folder", [False, True], ids=["host", "folder"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_client_of_the_sdk_connects_through_the_documented_proxy(
    wiki: LiveWiki, reader: Browser, tmp_path: Path, program: str, *, in_folder: bool
) -> None:
    port, outside = free_port(), free_port()
    url = f"http://127.0.0.1:{outside}{'/agents' if in_folder else ''}"
    arguments = ("--http", str(port), "--url", wiki.url, "--public-url", url)
    with (
        mcp_proxy(program, outside, port, tmp_path / program, in_folder=in_folder),
        http_server(tmp_path / "mcp.log", *arguments, OTTERWIKI_API_KEY=API_KEY),
    ):
        storage = Storage()
        assert "garden" in ask(sdk_auth(f"{url}/mcp", reader, storage), url, "list_notes")
        assert storage.tokens is not None
        storage.tokens = storage.tokens.model_copy(update={"access_token": "expired"})
        assert "garden" in ask(sdk_auth(f"{url}/mcp", reader, storage), url, "list_notes")


def test_a_server_that_starts_again_knows_its_clients(wiki: LiveWiki, server: str, reader: Browser) -> None:
    client, port = RawClient(server), str(free_port())
    tokens = client.connect(reader)
    arguments = ("--http", port, "--url", wiki.url, "--public-url", server)
    with http_server(wiki.data_dir.parent / "again.log", *arguments, OTTERWIKI_API_KEY=API_KEY):
        client.base = f"http://127.0.0.1:{port}"
        assert client.ping(tokens["access_token"]).status_code == 200
        assert client.refresh(tokens["refresh_token"]).status_code == 200


def test_a_wiki_that_everyone_may_read_asks_for_a_login_too(wiki: LiveWiki, client: RawClient) -> None:
    with LiveWiki(wiki.repository, wiki.data_dir, OTTERWIKI_API_KEY=API_KEY, READ_ACCESS="ANONYMOUS") as other:
        asked = httpx.URL(httpx.get(client.address()).headers["location"]).params
        assert httpx.get(f"{other.url}/-/semantic-search").status_code == 200
        assert httpx.get(other.url + CONSENT, params=asked).headers["location"].startswith("/-/login?next=")


def test_a_wiki_that_does_not_answer_is_not_a_refusal(tmp_path: Path) -> None:
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    arguments = ("--http", port, "--url", "http://127.0.0.1:9", "--public-url", url)
    with http_server(tmp_path / "log", *arguments, OTTERWIKI_API_KEY=API_KEY):
        assert RawClient(url).ping("x" * 43).status_code == 503
