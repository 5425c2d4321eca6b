"""Who may ask: programs by key, people by what the wiki lets them do."""

from __future__ import annotations

import hmac
from typing import Any
from urllib.parse import urlsplit

from flask import current_app, request
from flask_login import current_user
from flask_wtf.csrf import CSRFError

from otterwiki_semantic.core.network import is_loopback_address, is_loopback_host
from otterwiki_semantic.web.errors import ApiError

_SCHEME = "bearer"
_FORWARDING = (
    *("forwarded", "via", "x-forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-original-", "x-envoy-"),
    *("client-ip", "x-arr-", "cdn-loop", "x-otterwiki-", "cf-", "true-client-ip", "fastly-client-ip"),
)
"""How headers begin that proxies add to what they pass on, in small letters."""


def require_read(api_key: str | None) -> None:
    """Let a request pass that bears the key or comes from someone who may read the wiki; raises `ApiError` otherwise."""
    if not _bears_key(api_key) and not has_permission("READ"):
        raise _refusal("READ")


def require_admin(api_key: str | None) -> None:
    """Let a request pass that bears the key, or comes from an administrator's session; with a token to change things."""
    if _bears_key(api_key):
        return
    if not has_permission("ADMIN"):
        raise _refusal("ADMIN")
    try:
        if current_app.config["WTF_CSRF_ENABLED"]:  # it looks at the method: GET and HEAD need no token
            current_app.extensions["csrf"].protect()
    except CSRFError as error:
        raise ApiError("csrf_failed", f"{error.description} Send it in the header X-CSRFToken.") from error


def require_monitor(api_key: str | None) -> None:
    """Let a request pass that bears the key, comes from an administrator's session, or from a program on this machine."""
    if not _bears_key(api_key) and not _is_local() and not has_permission("ADMIN"):
        raise _refusal("ADMIN")


def _is_local() -> bool:
    """Whether a request was sent by this machine to this machine.

    A proxy on this machine sends everybody's: most say for whom, or keep the name that the wiki was asked by. So does a browser
    that a foreign site has led here by a name of its own.
    """
    if any(name.lower().startswith(_FORWARDING) for name, _ in request.headers):
        return False
    try:
        name = urlsplit(f"//{request.host}").hostname or ""
    except ValueError:
        return False
    return is_loopback_address(request.remote_addr or "") and is_loopback_host(name)


def _bears_key(api_key: str | None) -> bool:
    """Tell whether the request bears the key; one that bears something else is refused, whoever sent it."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != _SCHEME:
        return False
    if api_key is None:
        raise ApiError("no_key_configured", "this wiki has no API key: its administrator has to set OTTERWIKI_API_KEY")
    if not hmac.compare_digest(given.strip().encode("latin-1"), api_key.encode()):
        raise ApiError("wrong_key", "the API key is wrong")
    return True


def has_permission(name: str) -> bool:
    """Tell whether the wiki lets whoever asks do a thing: `READ`, `ADMIN` and so on.

    It is asked as its own templates ask it: a process can hold several wikis, and a module only the one imported last.
    """
    asked: Any = current_app.jinja_env.globals["has_permission"]
    return bool(asked(name))


def _refusal(permission: str) -> ApiError:
    if current_user.is_authenticated:
        return ApiError("forbidden", f"your account has no {permission} permission in this wiki")
    return ApiError("unauthorized", "log in to the wiki, or send its API key: Authorization: Bearer …")
