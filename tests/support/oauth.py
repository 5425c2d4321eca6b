"""What takes part in OAuth besides the servers: a person's browser, and a client with the SDK's provider."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import httpx2
import requests
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from tests.support.accounts import PASSWORD, register, send, token
from tests.support.live_wiki import LiveWiki

API_KEY = "a-key-of-the-wiki-that-is-long-enough"
REDIRECT = "https://client.example.org/callback"
_TOKEN = re.compile(r'name="csrf_token"[^>]*value="([^"]+)"')
_REQUEST = re.compile(r'name="request" value="([^"]+)"')


class Browser:
    """A person's browser with an account of the wiki."""

    def __init__(self, wiki: LiveWiki, name: str) -> None:
        self.wiki = wiki
        self.email = f"{name}@example.org"
        self.may_write = False
        """Whether it lets programs change pages, too."""
        self.session = register(wiki, name)

    def log_in(self) -> None:
        """Log in with the wiki's form."""
        send(self.session, self.wiki, "/-/login", email=self.email, password=PASSWORD)

    def post(self, path: str, form_page: str, **values: str) -> requests.Response:
        """Send a form with the token of a page's form."""
        data = {"csrf_token": token(self.session, self.wiki, form_page), **values}
        return self.session.post(self.wiki.url + path, data=data, allow_redirects=False)

    def open(self, url: str) -> requests.Response:
        """Open an address, and follow its redirects."""
        return self.session.get(url)

    def decide(self, url: str, decision: str = "allow") -> dict[str, str]:
        """Open an address of authorization, decide on the page, and return what the program is sent."""
        page = self.open(url)
        token, asked = _TOKEN.search(page.text), _REQUEST.search(page.text)
        assert token, (page.status_code, page.text[:800])
        assert asked, (page.status_code, page.text[:800])
        answer = self.session.post(
            f"{self.wiki.url}/-/semantic-search/connect",
            data={"csrf_token": token[1], "request": asked[1], "decision": decision}
            | ({"write": "1"} if self.may_write else {}),
            allow_redirects=False,
        )
        assert answer.status_code == 303, answer.text[:500]
        assert answer.headers["Location"].startswith(REDIRECT)
        return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["Location"]).query).items()}


@dataclass
class Storage:
    """What a client of the SDK keeps."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def sdk_auth(url: str, browser: Browser, storage: Storage, issuer: str | None = None) -> httpx2.Auth:
    """Return the SDK's own client of OAuth, whose person allows what it asks; `issuer` replaces what the answer says."""
    sent: dict[str, str] = {}

    async def redirect(address: str) -> None:
        sent.update(browser.decide(address))

    async def callback() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=sent["code"], state=sent["state"], iss=issuer or sent["iss"])

    metadata = OAuthClientMetadata(redirect_uris=[REDIRECT], client_name="SDK client")  # type: ignore[list-item]
    return OAuthClientProvider(url, metadata, storage, redirect, callback)


@dataclass
class RawClient:
    """A client that sends what it likes."""

    base: str
    name: str = "Raw client"
    method: str = "none"
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    registration: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        answer = self.register(redirect_uris=[REDIRECT], token_endpoint_auth_method=self.method)
        assert answer.status_code == 201, answer.text
        self.registration = answer.json()

    def register(self, **metadata: Any) -> httpx.Response:
        return httpx.post(f"{self.base}/register", json={"client_name": self.name, **metadata})

    @property
    def id(self) -> str:
        return str(self.registration["client_id"])

    def challenge(self) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")

    def address(self, **changed: str | None) -> str:
        """Return the address of authorization; None leaves a parameter out."""
        given = {
            "client_id": self.id,
            "redirect_uri": REDIRECT,
            "response_type": "code",
            "code_challenge": self.challenge(),
            "code_challenge_method": "S256",
            "state": "abc",
            **changed,
        }
        return str(httpx.URL(f"{self.base}/authorize", params={name: each for name, each in given.items() if each is not None}))

    def redeem(self, code: str, **changed: str) -> httpx.Response:
        """Exchange a code."""
        given = {"redirect_uri": REDIRECT, "code_verifier": self.verifier, **changed}
        return self.token(grant_type="authorization_code", code=code, **given)

    def refresh(self, token: str) -> httpx.Response:
        """Exchange a refresh token."""
        return self.token(grant_type="refresh_token", refresh_token=token)

    def token(self, **values: str) -> httpx.Response:
        return httpx.post(f"{self.base}/token", data={"client_id": self.id, **self.secret, **values})

    def revoke(self, token: str) -> httpx.Response:
        """Revoke a token."""
        return httpx.post(f"{self.base}/revoke", data={"client_id": self.id, **self.secret, "token": token})

    @property
    def secret(self) -> dict[str, str]:
        found = self.registration.get("client_secret")
        return {"client_secret": found} if found else {}

    def connect(self, browser: Browser) -> dict[str, Any]:
        """Connect with a person's account, and return the answer with the tokens."""
        answer = self.redeem(browser.decide(self.address())["code"])
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def ping(self, token: str) -> httpx.Response:
        """Ask the MCP endpoint for something that needs no wiki."""
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
            "Authorization": f"Bearer {token}",
        }
        return httpx.post(f"{self.base}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
