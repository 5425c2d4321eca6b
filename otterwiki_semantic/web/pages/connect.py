"""The page on which people connect programs, and the calls of the MCP server about connected programs."""

from __future__ import annotations

import time
from urllib.parse import urlencode, urlsplit

import msgspec
from flask import Blueprint, Response, flash, redirect, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from otterwiki_semantic.core.addresses import is_loopback_host
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import CONNECTIONS_PATH, CONSENT_PATH, ConsentRequest, Grant, Purpose, SecretRequest
from otterwiki_semantic.core.serialization import decode
from otterwiki_semantic.core.signing import Signer
from otterwiki_semantic.web.auth import account_fingerprint, account_of, has_permission, require_key, require_same_site
from otterwiki_semantic.web.errors import ApiError, handle_errors, json_response
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.oauth_grants import REFRESH_SECONDS
from otterwiki_semantic.web.pages.layout import guarded, keep_private, render_page, status_of, to_login

_HEADERS = {"Content-Security-Policy": "frame-ancestors 'none'", "Referrer-Policy": "same-origin"}
_STALE = "This request is invalid or has expired. Start again in the program that wants to connect."
_NO_ACCOUNTS = "Programs cannot be connected: a proxy logs people in to this wiki, which has no accounts of its own."

pages = Blueprint("semantic_connect", __name__, url_prefix=CONSENT_PATH)
"""The page for people; the wiki's CSRF protection applies to it."""
connections_api = Blueprint("semantic_connections", __name__, url_prefix=CONNECTIONS_PATH)
"""The calls of the MCP server, with the API key; exempt from the wiki's CSRF protection."""
pages.after_request(keep_private)
connections_api.after_request(keep_private)
handle_errors(connections_api)


@pages.after_request
def _keep_unframed(response: Response) -> Response:
    response.headers.update(_HEADERS)  # otherwise another site could cover its buttons
    return response


@pages.errorhandler(ApiError)
def _refused(error: ApiError) -> ResponseReturnValue:
    return _refusal(str(error), status_of(error))


def _refusal(message: str, status: int = 400) -> ResponseReturnValue:
    return render_page("connect.html", title="Connect a program", message=message), status


def end_connection(connection: str) -> None:
    """End a connection, and report it on the next page."""
    try:
        if extension().connections.remove(connection):
            flash("The program is disconnected. Its tokens are no longer valid.", "alert-success")
    except SemanticError as error:
        flash(f"The program could not be disconnected: {error}", "alert-danger")


@pages.app_template_global("semantic_redirect_host")
def redirect_host(uri: str) -> str:
    """Return the receiver of the code at a redirect URI, in words."""
    parts = urlsplit(uri)
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"}:
        return f"the program on your computer that opens {parts.scheme}: addresses"
    return f"a program on your computer ({host})" if is_loopback_host(host) else host


@pages.get("")
@guarded("READ")
def connect() -> ResponseReturnValue:
    """Ask whether a program may connect; without a request, list the account's programs."""
    if not current_user.is_authenticated:
        return to_login()
    account = account_fingerprint(current_user)
    if account is None:
        return _refusal(_NO_ACCOUNTS)
    signed = request.args.get("request")
    if signed is None:
        programs = [each for each in extension().connections.all() if each.account == account]
        return render_page("connect.html", title="Programs", programs=programs)
    asked = _consent_request(signed)
    if asked is None:
        return _refusal(_STALE)
    values = {"asked": asked, "signed": signed, "days": REFRESH_SECONDS // (24 * 3600), "can_write": _can_write()}
    return render_page("connect.html", title="Connect a program", **values)


@pages.post("")
@guarded("READ")
def decide() -> ResponseReturnValue:
    """Redirect to the program, with a code or with the refusal."""
    require_same_site()
    account = account_fingerprint(current_user) if current_user.is_authenticated else None
    asked = _consent_request(request.form.get("request", ""))
    if account is None or asked is None:
        return _refusal(_STALE)
    if request.form.get("decision") != "allow":
        return _back(asked, error="access_denied", error_description="the user denied the request")
    try:
        may_write = _can_write() and "write" in request.form
        code = extension().connections.approve(asked, account, current_user.email, may_write=may_write)
    except SemanticError as error:
        return _refusal(f"The connection cannot be stored: {error}", 503)
    return _back(asked, code=code)


@pages.route("/disconnect", methods=["GET", "POST"])
@guarded("READ")
def disconnect() -> ResponseReturnValue:
    """End a connection of the account; a GET, which comes from the login page, redirects to the list."""
    account = account_fingerprint(current_user) if current_user.is_authenticated else None
    found = extension().connections.get(request.form.get("connection", ""))
    if request.method == "POST" and found and found.account == account:
        end_connection(found.id)
    return redirect(url_for("semantic_connect.connect"))


def _can_write() -> bool:
    return extension().settings.allow_write and has_permission("WRITE")


def _consent_request(signed: str) -> ConsentRequest | None:
    """Return the request signed by the MCP server; None if it is invalid or has expired."""
    key = extension().settings.api_key
    asked = Signer(key, Purpose.CONSENT).read(signed, ConsentRequest) if key else None
    return asked if asked and asked.expires > time.time() else None


def _back(asked: ConsentRequest, **answer: str) -> ResponseReturnValue:
    """Redirect to the program, with the issuer of the answer (RFC 9207)."""
    state = {} if asked.state is None else {"state": asked.state}
    separator = "&" if urlsplit(asked.redirect_uri).query else "?"
    return redirect(f"{asked.redirect_uri}{separator}{urlencode(answer | state | {'iss': asked.issuer})}", 303)


def _secret() -> SecretRequest:
    require_key()
    request.max_content_length = 1 << 14
    try:
        return decode(request.get_data(), SecretRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ApiError("bad_request", "the body is not a JSON object with a secret") from error


@connections_api.post("/lookup")
def lookup() -> Response:
    """Return the purpose of a code or token; null if it is not valid."""
    return json_response({"grant": _valid(_secret())})


@connections_api.post("/exchange")
def exchange() -> Response:
    """Return tokens for a code or a refresh token; null if it is not valid."""
    asked = _secret()
    return json_response({"tokens": extension().connections.exchange(asked.secret, asked.client) if _valid(asked) else None})


@connections_api.post("/revoke")
def revoke() -> Response:
    """End the connection of a token, unless it belongs to another client."""
    asked, store = _secret(), extension().connections
    found = store.find(asked.secret)
    is_its = found is not None and asked.client in {None, found[1].client_id}
    return json_response({"revoked": found is not None and is_its and store.remove(found[0].id)})


def _valid(asked: SecretRequest) -> Grant | None:
    """Return a code or token whose account may read; the connection of a deleted account is ended."""
    store = extension().connections
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
