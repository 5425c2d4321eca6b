"""Authorization: programs by API key, people by their permissions in the wiki."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from flask import current_app, request
from flask_login import current_user
from flask_wtf.csrf import CSRFError

from otterwiki_semantic.core.addresses import is_loopback_address, is_loopback_host
from otterwiki_semantic.core.records import BEARER_PREFIX, Purpose
from otterwiki_semantic.core.signing import Signer
from otterwiki_semantic.web.errors import ApiError
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.oauth_grants import Connection

_FORWARDING = (
    *("forwarded", "via", "x-forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-original-", "x-envoy-"),
    *("client-ip", "x-arr-", "cdn-loop", "x-otterwiki-", "cf-", "true-client-ip", "fastly-client-ip"),
)
"""Prefixes of headers that proxies add to forwarded requests, in lower case."""


class Caller(NamedTuple):
    """A program with a bearer token: the connection and its account, or None of both for the API key."""

    connection: Connection | None
    account: Any


def require_read() -> None:
    """Raise `ApiError` unless the sender has the API key, or READ permission."""
    if not _bearer_may("READ") and not has_permission("READ"):
        raise _refusal("READ")


def require_write() -> None:
    """Raise `ApiError` unless the sender has the API key, or READ and WRITE permission and a CSRF token."""
    require_read()  # the answer to a change (related pages, changes by others) is for readers only
    require_session("WRITE")


def require_key() -> None:
    """Raise `ApiError` unless the sender has the API key itself."""
    if not _is_key(_bearer() or ""):
        raise ApiError("unauthorized", "send the API key of the wiki: Authorization: Bearer …")


def require_session(permission: str) -> None:
    """Raise `ApiError` unless the sender has the API key, or the permission, with a CSRF token for unsafe methods."""
    if _bearer_may(permission):
        return
    if not has_permission(permission):
        raise _refusal(permission)
    try:
        if current_app.config["WTF_CSRF_ENABLED"]:  # checks the method: GET and HEAD need no token
            current_app.extensions["csrf"].protect()
    except CSRFError as error:
        raise ApiError("csrf_failed", f"{error.description} Send it in the header X-CSRFToken.") from error


def may_see_queries() -> bool:
    """Whether the sender may see search queries: with the API key, or as an administrator."""
    caller = _caller()
    if caller is None:
        return has_permission("ADMIN")
    return caller.connection is None or has_permission("ADMIN", caller.account)


def require_monitor() -> None:
    """Raise `ApiError` unless the sender has the API key, is an administrator, or on this machine."""
    if not _bearer_may("ADMIN") and not _is_local() and not has_permission("ADMIN"):
        raise _refusal("ADMIN")


def _is_local() -> bool:
    """Whether a request was sent by this machine to this machine.

    A proxy on this machine forwards remote requests: most add a header, or keep the host name of the request. The host name
    also identifies requests of a browser directed here by a foreign site (DNS rebinding).
    """
    if any(name.lower().startswith(_FORWARDING) for name, _ in request.headers):
        return False
    try:
        name = urlsplit(f"//{request.host}").hostname or ""
    except ValueError:
        return False
    return is_loopback_address(request.remote_addr or "") and is_loopback_host(name)


def _bearer_may(permission: str) -> bool:
    """Whether the request has a bearer token. Raises `ApiError` if that is wrong, or lacks the permission.

    The API key has all permissions. A connection has those of its account, but may change something only if the person has
    allowed the program to write.
    """
    caller = _caller()
    if caller is None:
        return False
    if caller.connection is None:
        return True
    if not has_permission(permission, caller.account):
        raise ApiError("forbidden", f"the account {caller.account.email} has no {permission} permission in this wiki")
    if permission != "READ" and request.method not in {"GET", "HEAD"} and not caller.connection.may_write:
        raise ApiError("forbidden", "this program may only read; to let it write, disconnect it, and connect it again")
    return True


def _caller() -> Caller | None:
    """Return the sender of the request's bearer token, or None without one. Raises `ApiError` for a wrong token."""
    given = _bearer()
    if given is None:
        return None
    api_key = extension().settings.api_key
    if api_key is None:
        raise ApiError("no_key_configured", "this wiki has no API key; its administrator can set OTTERWIKI_API_KEY")
    if _is_key(given):
        return Caller(None, None)
    is_signed = given.startswith(BEARER_PREFIX)  # by the MCP server: the id of a connection
    signed = Signer(api_key, Purpose.CONNECTION).read(given.removeprefix(BEARER_PREFIX), str) if is_signed else None
    connection = extension().connections.get(signed) if signed else None
    account = account_of(connection) if connection else None
    if account is None:
        raise ApiError("wrong_key", "the API key is wrong: it is not the wiki's OTTERWIKI_API_KEY")
    return Caller(connection, account)


def _bearer() -> str | None:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


def _is_key(given: str) -> bool:
    api_key = extension().settings.api_key
    return api_key is not None and hmac.compare_digest(given.encode("latin-1"), api_key.encode())


def act_as_author(key_account: str | None) -> None:
    """Set `current_user` for the rest of the request: to the account of a connected program, or that of the API key.

    Raises `ApiError` if there is none, or it may not write.
    """
    caller = _caller()
    if caller is None:
        return
    account = caller.account if caller.connection else _account_at(key_account)
    if account is None:
        raise ApiError("forbidden", f"the API key has no account to write as: {_writes_as(key_account)}")
    if not has_permission("WRITE", account):
        raise ApiError("forbidden", f"the account {account.email} has no WRITE permission in this wiki")
    current_app.login_manager._update_request_context_with_user(account)  # type: ignore[attr-defined]


def _writes_as(address: str | None) -> str:
    if current_app.login_manager._user_callback is None:  # type: ignore[attr-defined]
        return "a proxy logs people in to this wiki, which has no accounts of its own"
    if address is None:
        return "the administrator can set SEMANTIC_WRITE_AS to the address of an account"
    return "there is no account with the address in SEMANTIC_WRITE_AS"


def _account_at(address: str | None) -> Any:
    """Return the account with an address; None without one, and if a proxy identifies users."""
    if address is None or not current_app.config.get("SQLALCHEMY_DATABASE_URI"):
        return None
    from otterwiki.models import User

    known = User.query.filter_by(email=address).first()
    return _load_account(str(known.id)) if known is not None else None


def _load_account(number: str) -> Any:
    """Return an account of the wiki, or None; also if a proxy identifies users."""
    load: Any = current_app.login_manager._user_callback  # type: ignore[attr-defined]
    return load(number) if load else None


def account_of(connection: Connection) -> Any:
    """Return the account of a connection; None if it was deleted, or replaced by another one."""
    account = _load_account(connection.account.partition(":")[0])
    return account if account is not None and account_fingerprint(account) == connection.account else None


def account_fingerprint(account: Any) -> str | None:
    """Return a fingerprint that no later account with this number or address has; None if a proxy identifies users."""
    number = getattr(account, "id", None)
    if number is None:
        return None
    facts = f"{account.email}\0{account.first_seen}".encode()
    return f"{number}:{hashlib.sha256(facts).hexdigest()}"


def require_same_site() -> None:
    """Raise `ApiError` for a request that a browser sends for another site."""
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if site is None and origin is not None:  # an older browser that sends only the origin
        site = "same-origin" if urlsplit(origin).netloc == request.host else "cross-site"
    if site not in {None, "same-origin", "none"}:
        raise ApiError("csrf_failed", "this request comes from another site")


def asker() -> str:
    """Return whom rate limits count: an account, or an address; empty for a program with the key."""
    caller = _caller()
    if caller is None:
        return session_asker()
    return f"account {caller.account.email}" if caller.connection else ""


def session_asker() -> str:
    """Return whom rate limits of a browser count: an account, or an address."""
    return f"account {current_user.email}" if current_user.is_authenticated else f"address {request.remote_addr}"


def has_permission(name: str, account: Any = None) -> bool:
    """Whether the current user, or an account, has a permission in the wiki, such as `READ` or `ADMIN`.

    Uses the function of the wiki's templates: a process can have several wikis, but a module refers only to the last one
    imported.
    """
    asked: Any = current_app.jinja_env.globals["has_permission"]
    return bool(asked(name) if account is None else asked(name, account))


def _refusal(permission: str) -> ApiError:
    if current_user.is_authenticated:
        return ApiError("forbidden", f"your account has no {permission} permission in this wiki")
    return ApiError("unauthorized", "log in to the wiki, or send its API key: Authorization: Bearer …")
