"""The SDK's authorization server; consent, codes and tokens are the wiki's."""

from __future__ import annotations

import hmac
import re
import time
from functools import partial
from http import HTTPStatus
from typing import Any

import anyio.to_thread
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from otterwiki_semantic.core.http import JsonClient, ProviderError
from otterwiki_semantic.core.records import CONNECTIONS_PATH, CONSENT_PATH, ConsentRequest, Grant, Purpose, SecretKind, Tokens
from otterwiki_semantic.core.serialization import convert
from otterwiki_semantic.core.signing import Signer
from otterwiki_semantic.mcp.backend import BackendError
from otterwiki_semantic.mcp.http_auth import OAuthSettings
from otterwiki_semantic.mcp.oauth.clients import SCOPE, Clients

CONSENT_SECONDS = 900
"""Long enough to log in first."""
_MAX_STATE = 1_000
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
"""Codes, tokens and challenges of S256; anything else is rejected without asking the wiki."""
_CONNECTION = "connection"
_WIKI_SECONDS = 15.0


def current_connection() -> str | None:
    """Return the connection id of the current request; None if it has the static token."""
    token = get_access_token()
    return (token.claims or {}).get(_CONNECTION) if token else None


class WikiAuthorization(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The provider for the SDK's handlers; see the protocol. Stateless, so that it survives restarts and cannot be flooded."""

    def __init__(self, settings: OAuthSettings, token: str | None) -> None:
        self._settings = settings
        self._token = token
        self._clients = Clients(settings.key)
        self._wiki = JsonClient(f"{settings.wiki}{CONNECTIONS_PATH}/", settings.key, connect_seconds=5)
        self._consent = Signer(settings.key, Purpose.CONSENT)

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients.register(client_info)

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Return the address of the wiki's consent page."""
        if not _SECRET.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "code_challenge is not one of S256")
        if params.state is not None and len(params.state) > _MAX_STATE:
            raise AuthorizeError("invalid_request", f"state has more than {_MAX_STATE} characters")
        allowed = {None, self._settings.issuer, self._settings.resource}
        if (params.resource and params.resource.removesuffix("/")) not in allowed:
            raise AuthorizeError("invalid_target", f"the resource of this server is {self._settings.resource}")
        asked = ConsentRequest(
            client_id=client.client_id,
            client_name=client.client_name or "",
            redirect_uri=str(params.redirect_uri),
            is_redirect_explicit=params.redirect_uri_provided_explicitly,
            code_challenge=params.code_challenge,
            issuer=self._settings.issuer,
            state=params.state,
            expires=time.time() + CONSENT_SECONDS,
        )
        return f"{self._settings.browser_wiki}{CONSENT_PATH}?request={self._consent.sign(asked)}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        found = await self._find(authorization_code, SecretKind.CODE, client.client_id)
        if found is None:
            return None
        return AuthorizationCode(
            code=authorization_code,
            code_challenge=found.code_challenge,
            redirect_uri=AnyUrl(found.redirect_uri),
            redirect_uri_provided_explicitly=found.is_redirect_explicit,
            **self._facts(found),
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        return await self._exchange(authorization_code.code, client.client_id)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        found = await self._find(refresh_token, SecretKind.REFRESH, client.client_id)
        return RefreshToken(token=refresh_token, **self._facts(found)) if found else None

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, _scopes: list[str]
    ) -> OAuthToken:
        return await self._exchange(refresh_token.token, client.client_id)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return an access token, or the static token, which has the permissions of the API key."""
        if self._token and hmac.compare_digest(token.strip().encode(), self._token.encode()):
            return AccessToken(token=token, client_id="MCP_AUTH_TOKEN", scopes=[SCOPE], resource=self._settings.resource)
        found = await self._find(token, SecretKind.ACCESS)
        claims = {"iss": self._settings.issuer, _CONNECTION: found.connection} if found else None
        return AccessToken(token=token, claims=claims, **self._facts(found)) if found else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """End the connection of a token that belongs to its client."""
        if _SECRET.fullmatch(token.token):
            await self._ask("revoke", token.token, token.client_id)

    async def _find(self, secret: str, kind: SecretKind, client_id: str | None = None) -> Grant | None:
        if not _SECRET.fullmatch(secret):
            return None
        grant = (await self._ask("lookup", secret, client_id)).get("grant")
        found = None if grant is None else convert(grant, Grant)
        return found if found and found.kind is kind else None

    def _facts(self, found: Grant) -> dict[str, Any]:
        return {
            "client_id": found.client_id,
            "scopes": [SCOPE],
            "expires_at": int(found.expires),
            "resource": self._settings.resource,
            "subject": found.account,
        }

    async def _exchange(self, secret: str, client_id: str) -> OAuthToken:
        given = (await self._ask("exchange", secret, client_id)).get("tokens")
        if given is None:
            raise TokenError("invalid_grant", "it has expired, was used before, or its account may no longer read the wiki")
        tokens = convert(given, Tokens)
        return OAuthToken(access_token=tokens.access, refresh_token=tokens.refresh, expires_in=tokens.expires_in, scope=SCOPE)

    async def _ask(self, route: str, secret: str, client: str | None) -> dict[str, Any]:
        """Ask the wiki about a code or token, as an authenticated client if given. Errors: `BackendError`."""
        send = partial(self._wiki.send, route, _WIKI_SECONDS, {"secret": secret, "client": client})
        try:
            answer = (await anyio.to_thread.run_sync(send, abandon_on_cancel=True)).answer()
        except ProviderError as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                raise BackendError("OTTERWIKI_API_KEY is not the one that the wiki was started with") from None
            raise BackendError(f"the wiki cannot say who may connect ({error.status or error.reason})") from None
        if not isinstance(answer, dict):
            raise BackendError("the wiki's answer is invalid; make sure that both have the same version of otterwiki-semantic")
        return answer
