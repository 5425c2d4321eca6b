"""Check that the running wiki and its plugin answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from otterwiki_semantic import __version__
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.core.http import JsonClient, JsonResponse, ProviderError
from otterwiki_semantic.core.loopback import is_http_url

_KEY = "OTTERWIKI_API_KEY"
_CONNECT_SECONDS, _ANSWER_SECONDS = 3.0, 15.0
_REFUSALS = {
    "wrong_key": (f"the wiki was started with another {_KEY}", f"set the key of the wiki, or restart it with this {_KEY}"),
    "no_key_configured": (f"the wiki has no {_KEY}", f"also set {_KEY} where the wiki is started, and restart it"),
    "unauthorized": ("the wiki is not public, and no key was sent", f"set {_KEY} to the one that the wiki was started with"),
}


def check_wiki(context: DoctorContext) -> Iterator[Finding]:
    """Ask the wiki at `context.url` for the status of its index."""
    if context.url is None:
        yield note("wiki", "not checked", "to check it: --url http://127.0.0.1:8080, or wherever it is served")
        return
    if not is_http_url(context.url):  # not repeated: it may contain a password
        yield problem("wiki", "the URL in --url is invalid", "give http://host:port, without a user name")
        return
    key = context.given(_KEY)
    if not key.isprintable():  # the error of the HTTP client would show it
        yield problem("wiki", f"{_KEY} has characters that cannot be sent", "correct it, here and where the wiki is started")
        return
    url = context.url.rstrip("/")
    client = JsonClient(url, key or None, connect_seconds=_CONNECT_SECONDS)
    try:
        response = client.send("/api/v1/semantic-search/status", _ANSWER_SECONDS)
    except ProviderError as error:
        reason = error.server_message or error.reason
        yield problem("wiki", f"{url} cannot be reached: {reason}", "make sure that it runs, and that the address is right")
    else:
        yield from _read(url, response)


def _read(url: str, response: JsonResponse) -> Iterator[Finding]:
    body = response.body if isinstance(response.body, dict) else {}
    location = response.headers.get("location")
    if response.status == 200 and "indexed_commit" in body:
        yield _answered(url, body)
    elif "error" in body:
        yield from _refused(url, response.status, body)
    elif location:
        yield problem("wiki", f"{url} leads to {location}", "give the address that it leads to")
    elif response.status == 404:
        hint = (
            "see in the wiki's log for: Loaded plugin: otterwiki-semantic; install it into the wiki's own environment, restart"
        )
        yield problem("wiki", f"{url} answers, without the plugin (404)", hint)
    else:
        detail = f"{url} answers with status {response.status}, not as a wiki would"
        yield problem("wiki", detail, "make sure that the address is right")


def _answered(url: str, body: dict[str, Any]) -> Finding:
    theirs = body.get("version")
    if theirs != __version__:
        return problem(
            "wiki", f"{url} runs version {theirs}, and this is {__version__}", "restart the wiki, or run its own command"
        )
    return ok("wiki", f"{url} answers: version {theirs}, {body.get('pages')} pages, index daemon {body.get('owner_pid')}")


def _refused(url: str, status: int, body: dict[str, Any]) -> Iterator[Finding]:
    error = body["error"] if isinstance(body["error"], dict) else {}
    code, message = str(error.get("code")), str(error.get("message"))
    detail, hint = _REFUSALS.get(code, (message, "correct this; the wiki's log may have details"))
    yield problem("wiki", f"{url}: {detail} (status {status})", hint)
    for each in body.get("problems") or ():
        if isinstance(each, dict):
            yield problem("wiki", str(each.get("message")), str(each.get("hint")))
