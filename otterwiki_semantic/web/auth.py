"""Authorization: programs by API key, people by their permissions in the wiki."""

from __future__ import annotations

import hmac
from typing import Any
from urllib.parse import urlsplit

from flask import current_app, request
from flask_login import current_user
from flask_wtf.csrf import CSRFError

from otterwiki_semantic.core.loopback import is_loopback_address, is_loopback_host
from otterwiki_semantic.web.errors import ApiError

_SCHEME = "bearer"
_FORWARDING = (
    *("forwarded", "via", "x-forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-original-", "x-envoy-"),
    *("client-ip", "x-arr-", "cdn-loop", "x-otterwiki-", "cf-", "true-client-ip", "fastly-client-ip"),
)
"""Prefixes of headers that proxies add to forwarded requests, in lower case."""


def require_read(api_key: str | None) -> None:
    """Accept the API key, or a user with READ permission; raise `ApiError` otherwise."""
    if not _bears_key(api_key) and not has_permission("READ"):
        raise _refusal("READ")


def require_admin(api_key: str | None) -> None:
    """Accept the API key, or an administrator's session with a CSRF token for unsafe methods; raise `ApiError` otherwise."""
    _require_session(api_key, "ADMIN")


def require_write(api_key: str | None) -> None:
    """Accept the API key, or a user with WRITE permission and a CSRF token for unsafe methods; raise `ApiError` otherwise."""
    _require_session(api_key, "WRITE")


def _require_session(api_key: str | None, permission: str) -> None:
    if _bears_key(api_key):
        return
    if not has_permission(permission):
        raise _refusal(permission)
    try:
        if current_app.config["WTF_CSRF_ENABLED"]:  # checks the method: GET and HEAD need no token
            current_app.extensions["csrf"].protect()
    except CSRFError as error:
        raise ApiError("csrf_failed", f"{error.description} Send it in the header X-CSRFToken.") from error


def may_see_queries(api_key: str | None) -> bool:
    """Whether the current request may see what people searched for: with the API key, or as an administrator."""
    return _bears_key(api_key) or has_permission("ADMIN")


def require_monitor(api_key: str | None) -> None:
    """Accept the API key, an administrator's session, or a program on this machine; raise `ApiError` otherwise."""
    if not _bears_key(api_key) and not _is_local() and not has_permission("ADMIN"):
        raise _refusal("ADMIN")


def _is_local() -> bool:
    """Whether a request was sent by this machine to this machine.

    A proxy on this machine forwards requests of others: most add a header, or keep the host name of the request. The host name
    also reveals a browser that a foreign site has sent here (DNS rebinding).
    """
    if any(name.lower().startswith(_FORWARDING) for name, _ in request.headers):
        return False
    try:
        name = urlsplit(f"//{request.host}").hostname or ""
    except ValueError:
        return False
    return is_loopback_address(request.remote_addr or "") and is_loopback_host(name)


def _bears_key(api_key: str | None) -> bool:
    """Whether the request has the API key. Errors: `ApiError` for a wrong one, whoever sent it."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != _SCHEME:
        return False
    if api_key is None:
        raise ApiError("no_key_configured", "this wiki has no API key; its administrator can set OTTERWIKI_API_KEY")
    if not hmac.compare_digest(given.strip().encode("latin-1"), api_key.encode()):
        raise ApiError("wrong_key", "the API key is wrong")
    return True


def has_permission(name: str) -> bool:
    """Whether the current user has a permission in the wiki, such as `READ` or `ADMIN`.

    Uses the function of the wiki's templates: a process can have several wikis, but a module only the one imported last.
    """
    asked: Any = current_app.jinja_env.globals["has_permission"]
    return bool(asked(name))


def _refusal(permission: str) -> ApiError:
    if current_user.is_authenticated:
        return ApiError("forbidden", f"your account has no {permission} permission in this wiki")
    return ApiError("unauthorized", "log in to the wiki, or send its API key: Authorization: Bearer …")
