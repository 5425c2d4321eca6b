"""The page on which a person lets a program read the wiki, and what the MCP server asks about connected programs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
from flask import Blueprint, Response, flash, redirect, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.loopback import is_loopback_host
from otterwiki_semantic.core.records import CONNECTIONS_PATH, CONSENT_PATH, ConsentRequest, Grant, Purpose, SecretRequest
from otterwiki_semantic.core.serialization import encode
from otterwiki_semantic.core.signing import Signer
from otterwiki_semantic.web.auth import (
    account_fingerprint,
    account_of,
    connections,
    has_permission,
    require_key,
    require_same_site,
)
from otterwiki_semantic.web.errors import ERRORS, ApiError, handle_errors
from otterwiki_semantic.web.oauth_grants import REFRESH_SECONDS, Connection
from otterwiki_semantic.web.pages.layout import guarded, keep_private, render_page

_HEADERS = {"Content-Security-Policy": "frame-ancestors 'none'", "Referrer-Policy": "same-origin"}
_DAYS = REFRESH_SECONDS // (24 * 3600)
_STALE = "This request to connect is not valid, or no longer. Start again in the program that wants to connect."
_NO_ACCOUNTS = "Programs cannot be connected: a proxy logs people in to this wiki, which knows no accounts of its own."


def make_connect_pages(api_key: str | None, *, allow_write: bool) -> Blueprint:
    """Return the pages; the wiki's CSRF protection applies to them."""
    views = _Views(api_key, allow_write=allow_write)
    pages = Blueprint("semantic_connect", "otterwiki_semantic.web", url_prefix=CONSENT_PATH, template_folder="templates")
    pages.add_url_rule("", "connect", guarded("READ", views.connect))
    pages.add_url_rule("", "decide", guarded("READ", views.decide), methods=["POST"])
    pages.add_url_rule("/disconnect", "disconnect", guarded("READ", views.disconnect), methods=["GET", "POST"])
    pages.register_error_handler(ApiError, lambda error: views.refusal(str(error), ERRORS[error.code].status))
    pages.after_request(keep_private)
    pages.after_request(_keep_unframed)
    return pages


def _keep_unframed(response: Response) -> Response:
    """Forbid other sites to show the page, where they could lay something over its buttons."""
    response.headers.update(_HEADERS)
    return response


@dataclass(frozen=True, slots=True)
class Program:
    """A connected program, as it is listed."""

    id: str
    name: str
    host: str
    """Where it is sent back to, once it is allowed to connect."""
    email: str
    created: str
    used: str
    may_write: bool


def connected_programs(account: str | None = None) -> list[Program]:
    """Return the connected programs, of an account or of all, the last used first."""
    found = connections().all()
    return [_program(each) for each in found if account is None or each.account == account]


def end_connection(connection: str) -> None:
    """End a connection, and say so on the next page."""
    try:
        if connections().remove(connection):
            flash("The program is disconnected; its tokens are no longer valid.", "alert-success")
    except SemanticError as error:
        flash(f"The program is not disconnected: {error}", "alert-danger")


def _program(connection: Connection) -> Program:
    asked = connection.request
    host = redirect_host(asked.redirect_uri)
    times = _iso(connection.created), _iso(connection.used)
    return Program(connection.id, asked.client_name, host, connection.email, *times, connection.may_write)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).isoformat()


def redirect_host(uri: str) -> str:
    """Return who receives the code at a redirect URI, in words."""
    parts = urlsplit(uri)
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"}:
        return f"the program on your computer that opens {parts.scheme}: addresses"
    return f"a program on your computer ({host})" if is_loopback_host(host) else host


class _Views:
    def __init__(self, api_key: str | None, *, allow_write: bool) -> None:
        self._allow_write = allow_write
        self._signer = Signer(api_key, Purpose.CONSENT) if api_key else None

    def connect(self) -> ResponseReturnValue:
        """Ask whether a program may connect; without a request, list the account's programs."""
        if not current_user.is_authenticated:
            return redirect(url_for("login", next=request.script_root + request.full_path.rstrip("?")))
        account = account_fingerprint(current_user)
        if account is None:
            return self.refusal(_NO_ACCOUNTS)
        signed = request.args.get("request")
        if signed is None:
            return render_page("semantic_search/connect.html", title="Programs", programs=connected_programs(account))
        asked = self._asked(signed)
        if asked is None:
            return self.refusal(_STALE)
        return render_page(
            "semantic_search/connect.html",
            title="Connect a program",
            asked=asked,
            signed=signed,
            host=redirect_host(asked.redirect_uri),
            days=_DAYS,
            can_write=self._can_write(),
        )

    def decide(self) -> ResponseReturnValue:
        """Send the browser back to the program, with a code or with the refusal."""
        require_same_site()
        account = account_fingerprint(current_user) if current_user.is_authenticated else None
        asked = self._asked(request.form.get("request", ""))
        if account is None or asked is None:
            return self.refusal(_STALE)
        if request.form.get("decision") != "allow":
            return _back(asked, error="access_denied", error_description="the wiki's user has denied it")
        try:
            may_write = self._can_write() and "write" in request.form
            code = connections().approve(asked, account, current_user.email, may_write=may_write)
        except SemanticError as error:
            return self.refusal(f"The connection cannot be stored: {error}", 503)
        return _back(asked, code=code)

    def disconnect(self) -> ResponseReturnValue:
        """End a connection of the account; a GET, which comes from the login page, redirects to the list."""
        account = account_fingerprint(current_user) if current_user.is_authenticated else None
        found = connections().get(request.form.get("connection", ""))
        if request.method == "POST" and found and found.account == account:
            end_connection(found.id)
        return redirect(url_for("semantic_connect.connect"))

    def _can_write(self) -> bool:
        """Whether the account can let a program write."""
        return self._allow_write and has_permission("WRITE")

    def _asked(self, signed: str) -> ConsentRequest | None:
        asked = self._signer.read(signed, ConsentRequest) if self._signer else None
        return asked if asked and asked.expires > time.time() else None

    def refusal(self, message: str, status: int = 400) -> ResponseReturnValue:
        """Return the page that says why a program cannot be connected."""
        return render_page("semantic_search/connect.html", title="Connect a program", message=message), status


def _back(asked: ConsentRequest, **answer: str) -> ResponseReturnValue:
    """Redirect to the program, with the issuer that answers (RFC 9207)."""
    state = {} if asked.state is None else {"state": asked.state}
    separator = "&" if urlsplit(asked.redirect_uri).query else "?"
    return redirect(f"{asked.redirect_uri}{separator}{urlencode(answer | state | {'iss': asked.issuer})}", 303)


def make_connection_routes(api_key: str | None) -> Blueprint:
    """Return what only the MCP server asks, with the API key. The caller exempts it from the wiki's CSRF protection."""
    blueprint = Blueprint("semantic_connections", __name__, url_prefix=CONNECTIONS_PATH)

    def keyed(answer: Callable[[SecretRequest], Any]) -> Callable[[], Response]:
        def view() -> Response:
            require_key(api_key)
            request.max_content_length = 1 << 14
            try:
                asked = msgspec.json.decode(request.get_data(), type=SecretRequest)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise ApiError("bad_request", "the body is not a JSON object with a secret") from error
            return Response(encode(answer(asked)), content_type="application/json")

        return view

    for name, answer in (("lookup", _lookup), ("exchange", _exchange), ("revoke", _revoke)):
        blueprint.add_url_rule(f"/{name}", name, keyed(answer), methods=["POST"])
    blueprint.after_request(keep_private)
    handle_errors(blueprint)
    return blueprint


def _lookup(asked: SecretRequest) -> dict[str, Grant | None]:
    return {"grant": _valid(asked)}


def _exchange(asked: SecretRequest) -> dict[str, Any]:
    return {"tokens": connections().exchange(asked.secret, asked.client) if _valid(asked) else None}


def _revoke(asked: SecretRequest) -> dict[str, bool]:
    found = connections().find(asked.secret)
    is_its = found is not None and asked.client in {None, found[1].client_id}
    return {"revoked": found is not None and is_its and connections().remove(found[0].id)}


def _valid(asked: SecretRequest) -> Grant | None:
    """Return a code or token whose account may read; the connection of an account that is gone ends."""
    store = connections()
    found = store.find(asked.secret, asked.client)
    if found is None:
        return None
    connection, grant = found
    account = account_of(connection)
    if account is None:
        store.remove(connection.id)
        return None
    if not has_permission("READ", account):
        return None
    store.touch(connection)
    return grant
