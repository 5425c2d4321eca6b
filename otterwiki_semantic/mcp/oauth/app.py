"""The SDK's OAuth routes, and its bearer middleware around the MCP endpoint."""

from __future__ import annotations

from urllib.parse import urlsplit

from mcp.server.auth.handlers.metadata import MetadataHandler
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import AccessToken, ProviderTokenVerifier
from mcp.server.auth.routes import (
    REVOCATION_PATH,
    build_metadata,
    build_resource_metadata_url,
    cors_middleware,
    create_auth_routes,
    create_protected_resource_routes,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.applications import Starlette
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from otterwiki_semantic.mcp.backend import BackendError
from otterwiki_semantic.mcp.http_auth import PATH, OAuthSettings
from otterwiki_semantic.mcp.oauth.clients import AUTH_METHODS, SCOPE
from otterwiki_semantic.mcp.oauth.provider import WikiAuthorization

_METADATA = "/.well-known/oauth-authorization-server"
_NO_STORE = {"Cache-Control": "no-store"}
_MAX_REQUEST_BYTES = 1 << 14
"""For a body, and for a query: more than the longest addresses need, and little enough to parse quickly."""


def authorized_app(app: Starlette, settings: OAuthSettings, token: str | None) -> Starlette:
    """Return the application with OAuth around it: its endpoint requires an access token, or the static `token`."""
    provider = WikiAuthorization(settings, token)
    urls = AuthSettings.model_validate(
        {"issuer_url": settings.issuer, "resource_server_url": settings.resource, "validate_token_resource": True}
    )
    assert urls.resource_server_url is not None
    guarded = RequireAuthMiddleware(app, [SCOPE], build_resource_metadata_url(urls.resource_server_url))
    verifier = BearerAuthBackend(ProviderTokenVerifier(provider), resource_server_url=urls.resource_server_url)
    endpoint = AuthenticationMiddleware(AuthContextMiddleware(guarded), backend=verifier)
    registration = ClientRegistrationOptions(enabled=True, default_scopes=[SCOPE])
    revocation = RevocationOptions(enabled=True)
    oauth = create_auth_routes(provider, urls.issuer_url, None, registration)
    return Starlette(
        routes=[
            Route(PATH, endpoint=endpoint),
            *_metadata_routes(urls, registration, revocation),
            *(_bounded(route) for route in (*oauth, _revocation_route(provider)) if route.path != _METADATA),
            *create_protected_resource_routes(urls.resource_server_url, [urls.issuer_url], [SCOPE], "An Otter Wiki"),
        ],
        exception_handlers={BackendError: _unavailable},
        lifespan=app.router.lifespan_context,
    )


def _bounded(route: Route) -> Route:
    """Return a route that rejects a request that is too long before parsing any of it."""
    limited = RequestBodyLimitMiddleware(route.app, _MAX_REQUEST_BYTES)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        too_long = len(scope["query_string"]) > _MAX_REQUEST_BYTES
        await (PlainTextResponse("the query is too long\n", 414) if too_long else limited)(scope, receive, send)

    route.app = answer
    return route


def _metadata_routes(urls: AuthSettings, registration: ClientRegistrationOptions, revocation: RevocationOptions) -> list[Route]:
    """Return the SDK's metadata (RFC 8414), plus what it lacks: public clients, and the issuer in answers (RFC 9207)."""
    metadata = build_metadata(urls.issuer_url, None, registration, revocation)
    metadata.scopes_supported = [SCOPE]
    metadata.token_endpoint_auth_methods_supported = AUTH_METHODS
    metadata.revocation_endpoint_auth_methods_supported = AUTH_METHODS
    metadata.authorization_response_iss_parameter_supported = True
    path = (urlsplit(str(urls.issuer_url)).path or "").rstrip("/")
    endpoint = cors_middleware(MetadataHandler(metadata).handle, ["GET", "OPTIONS"])
    return [Route(each, endpoint=endpoint, methods=["GET", "OPTIONS"]) for each in dict.fromkeys((_METADATA + path, _METADATA))]


def _revocation_route(provider: WikiAuthorization) -> Route:
    """Return the route of RFC 7009; the SDK's rejects public clients, because it requires the client secret."""
    authenticator = ClientAuthenticator(provider)

    async def revoke(request: Request) -> Response:
        try:
            client = await authenticator.authenticate_request(request)
        except AuthenticationError as error:
            return JSONResponse({"error": "invalid_client", "error_description": error.message}, 401, _NO_STORE)
        token = str((await request.form()).get("token") or "")
        await provider.revoke_token(AccessToken(token=token, client_id=client.client_id, scopes=[SCOPE]))
        return Response(status_code=200, headers=_NO_STORE)

    return Route(REVOCATION_PATH, endpoint=cors_middleware(revoke, ["POST", "OPTIONS"]), methods=["POST", "OPTIONS"])


async def _unavailable(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", 503, {"Retry-After": "5"})
