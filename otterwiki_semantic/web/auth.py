"""Authorization: programs by API key, people by their permissions in the wiki."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any
from urllib.parse import urlsplit

from flask import current_app, request
from flask_login import current_user
from flask_wtf.csrf import CSRFError

from otterwiki_semantic.core.loopback import is_loopback_address, is_loopback_host
from otterwiki_semantic.core.records import BEARER_PREFIX, Purpose
from otterwiki_semantic.core.signing import Signer
from otterwiki_semantic.web.errors import ApiError
from otterwiki_semantic.web.oauth_grants import Connection, ConnectionStore

CONNECTIONS = "otterwiki_semantic.connections"
"""The extension of the Flask application that holds its `ConnectionStore`."""
_SCHEME = "bearer"
_FORWARDING = (
    *("forwarded", "via", "x-forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-original-", "x-envoy-"),
    *("client-ip", "x-arr-", "cdn-loop", "x-otterwiki-", "cf-", "true-client-ip", "fastly-client-ip"),
)
"""Prefixes of headers that proxies add to forwarded requests, in lower case."""


def require_read(api_key: str | None) -> None:
    """Accept the API key, or a user with READ permission; raise `ApiError` otherwise."""
    if not _bearer_may("READ", api_key) and not has_permission("READ"):
        raise _refusal("READ")


def require_admin(api_key: str | None) -> None:
    """Accept the API key, or an administrator's session with a CSRF token for unsafe methods; raise `ApiError` otherwise."""
    _require_session(api_key, "ADMIN")


def require_write(api_key: str | None) -> None:
    """Accept the API key, or a user with READ and WRITE permission and a CSRF token; raise `ApiError` otherwise.

    What a change answers (related pages, what somebody else has changed) is for readers only.
    """
    require_read(api_key)
    _require_session(api_key, "WRITE")


def require_key(api_key: str | None) -> None:
    """Accept only the API key itself; raise `ApiError` otherwise."""
    if api_key is None or not _has_key(api_key, _bearer() or ""):
        raise ApiError("unauthorized", "send the API key of the wiki: Authorization: Bearer …")


def _require_session(api_key: str | None, permission: str) -> None:
    if _bearer_may(permission, api_key):
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
    given = _bearer()
    if given is None or api_key is None:
        return given is None and has_permission("ADMIN")
    account = None if _has_key(api_key, given) else _connected_account(api_key, given)
    return _has_key(api_key, given) or (account is not None and has_permission("ADMIN", account))


def require_monitor(api_key: str | None) -> None:
    """Accept the API key, an administrator's session, or a program on this machine; raise `ApiError` otherwise."""
    if not _bearer_may("ADMIN", api_key) and not _is_local() and not has_permission("ADMIN"):
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


def _bearer_may(permission: str, api_key: str | None) -> bool:
    """Whether the request's bearer token has a permission; False if it has no token.

    The API key has all. The MCP server sends the signed id of a connection instead, which has those of its account, but changes
    something only if the person has let the program write. Errors: `ApiError` for a wrong token, and for an account without the
    permission, whoever sent it.
    """
    given = _bearer()
    if given is None:
        return False
    if api_key is None:
        raise ApiError("no_key_configured", "this wiki has no API key; its administrator can set OTTERWIKI_API_KEY")
    if _has_key(api_key, given):
        return True
    connection = _connection(api_key, given)
    account = account_of(connection) if connection else None
    if connection is None or account is None:
        raise ApiError("wrong_key", "the API key is wrong: it is not the OTTERWIKI_API_KEY that the wiki was started with")
    if not has_permission(permission, account):
        raise ApiError("forbidden", f"the account {account.email} has no {permission} permission in this wiki")
    if permission != "READ" and request.method not in {"GET", "HEAD"} and not connection.may_write:
        raise ApiError("forbidden", "this program was allowed to read, not to write; disconnect it, and connect it again")
    return True


def _bearer() -> str | None:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return given.strip() if scheme.lower() == _SCHEME else None


def _has_key(api_key: str, given: str) -> bool:
    return hmac.compare_digest(given.encode("latin-1"), api_key.encode())


def _connected_account(api_key: str, given: str) -> Any:
    """Return the account of the connection whose signed id is given; None if it is not signed, or has ended."""
    connection = _connection(api_key, given)
    return account_of(connection) if connection else None


def _connection(api_key: str, given: str) -> Connection | None:
    """Return the connection whose signed id is given; None if it is not signed, or has ended."""
    if not given.startswith(BEARER_PREFIX):
        return None
    signed = Signer(api_key, Purpose.CONNECTION).read(given.removeprefix(BEARER_PREFIX), str)
    return connections().get(signed) if signed else None


def act_as_author(api_key: str | None, key_account: str | None) -> None:
    """Let the rest of the request be that of the account in whose name the caller writes: `current_user`.

    It is that of a connected program, or `key_account`, the address of an account, for the API key. Errors: `ApiError` if the
    key has no account, or that account may not write.
    """
    given = _bearer()
    if given is None or api_key is None:
        return
    account = _account_at(key_account) if _has_key(api_key, given) else _connected_account(api_key, given)
    if account is None:
        raise ApiError("forbidden", f"the API key writes in nobody's name: {_writes_as(key_account)}")
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
    """Return the account with an address; None without one, and where a proxy says who sends a request."""
    if address is None or not current_app.config.get("SQLALCHEMY_DATABASE_URI"):
        return None
    from otterwiki.models import User

    known = User.query.filter_by(email=address).first()
    load: Any = current_app.login_manager._user_callback  # type: ignore[attr-defined]
    return load(str(known.id)) if known is not None and load else None


def connections() -> ConnectionStore:
    """Return the connected programs of the wiki of the current request."""
    store: ConnectionStore = current_app.extensions[CONNECTIONS]
    return store


def account_of(connection: Connection) -> Any:
    """Return the account whose permissions a connection has; None if it was deleted, or replaced by another one."""
    load: Any = current_app.login_manager._user_callback  # type: ignore[attr-defined]
    number, _, _ = connection.account.partition(":")
    account = load(number) if load else None
    return account if account is not None and account_fingerprint(account) == connection.account else None


def account_fingerprint(account: Any) -> str | None:
    """Identify an account: another one with its number or its address has another fingerprint.

    None if the wiki stores no accounts, because a proxy says with each request who sends it.
    """
    number = getattr(account, "id", None)
    if number is None:
        return None
    facts = f"{account.email}\0{account.first_seen}".encode()
    return f"{number}:{hashlib.sha256(facts).hexdigest()}"


def require_same_site() -> None:
    """Refuse a request that a browser sends for another site: `ApiError`. Programs do not say where a request comes from."""
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if site is None and origin is not None:  # of a browser that says less
        site = "same-origin" if urlsplit(origin).netloc == request.host else "cross-site"
    if site not in {None, "same-origin", "none"}:
        raise ApiError("csrf_failed", "another site sent this request; only pages of the wiki may")


def asker(api_key: str | None) -> str:
    """Return whose requests count together: an account, or an address; empty for a program with the key."""
    given = _bearer()
    if given is not None and api_key is not None:
        account = None if _has_key(api_key, given) else _connected_account(api_key, given)
        return f"account {account.email}" if account else ""
    return f"account {current_user.email}" if current_user.is_authenticated else f"address {request.remote_addr}"


def has_permission(name: str, account: Any = None) -> bool:
    """Whether the current user, or an account, has a permission in the wiki, such as `READ` or `ADMIN`.

    Uses the function of the wiki's templates: a process can have several wikis, but a module only the one imported last.
    """
    asked: Any = current_app.jinja_env.globals["has_permission"]
    return bool(asked(name) if account is None else asked(name, account))


def _refusal(permission: str) -> ApiError:
    if current_user.is_authenticated:
        return ApiError("forbidden", f"your account has no {permission} permission in this wiki")
    return ApiError("unauthorized", "log in to the wiki, or send its API key: Authorization: Bearer …")
