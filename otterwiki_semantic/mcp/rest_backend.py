"""A running wiki, accessed over its REST API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote, urljoin

import anyio.to_thread

from otterwiki_semantic.core.addresses import is_http_url
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.http import InvalidUrlError, JsonClient, JsonResponse, ProviderError, ProviderTimeoutError
from otterwiki_semantic.core.records import BEARER_PREFIX, Purpose
from otterwiki_semantic.core.signing import Signer
from otterwiki_semantic.mcp.backend import BackendError, Json
from otterwiki_semantic.mcp.oauth import current_connection

_ANSWER_SECONDS = 30.0
_WRITING_SECONDS = 630.0
"""More than a model may take by its settings."""
_SEARCH = "semantic-search"
_KEY_ERRORS = {
    "wrong_key": "the key is wrong: OTTERWIKI_API_KEY must be the one that the wiki was started with",
    "unauthorized": "the wiki requires a key: set OTTERWIKI_API_KEY to the one that it was started with",
    "no_key_configured": "a key was sent, but the wiki has none: also set OTTERWIKI_API_KEY where the wiki is started",
}


class RestBackend:
    """The `WikiBackend` at a URL; the key is sent with every request, and to no other host.

    Requests of a connected program have the permissions of its account instead. Browsers reach the wiki at `browser_url`.
    Raises `ConfigError` for an invalid URL and for a key that cannot be sent, otherwise `BackendError`.
    """

    def __init__(self, url: str, key: str | None = None, *, browser_url: str | None = None) -> None:
        self._url = _checked_url(url)
        self._browser_url = _checked_url(browser_url) if browser_url else self._url
        self._signer = Signer(key, Purpose.CONNECTION) if key else None
        if key and not key.isprintable():  # the client's own error would show the key
            raise ConfigError("OTTERWIKI_API_KEY has characters that cannot be sent, such as a line break")
        self._client = JsonClient(f"{self._url}/api/v1/", key, connect_seconds=5)

    async def search(self, queries: Sequence[str], arguments: Mapping[str, Any]) -> list[Json]:
        answers = await self._ask(_SEARCH, body={"queries": list(queries), **arguments})
        return list(map(self._with_addresses, answers["answers"]))

    async def ask(self, question: str) -> Json:
        return self._with_addresses(await self._ask(f"{_SEARCH}/ask", body={"question": question}, seconds=_WRITING_SECONDS))

    async def pages(self, arguments: Mapping[str, Any]) -> Json:
        return self._with_addresses(await self._ask(f"{_SEARCH}/pages", arguments))

    async def page(self, path: str, arguments: Mapping[str, Any]) -> Json:
        return self._with_addresses(await self._ask(f"{_SEARCH}/pages/{_quoted(path)}", arguments))

    async def related(self, path: str, n: int) -> Json:
        return self._with_addresses(await self._ask("related", {"path": path, "n": n}))

    async def history(self, path: str, limit: int) -> Json:
        return await self._ask(f"{_SEARCH}/history", {"path": path, "limit": limit})

    async def health(self, kind: str, limit: int) -> Json:
        return await self._ask(f"{_SEARCH}/health", {"kind": kind, "limit": limit})

    async def status(self) -> Json:
        return await self._ask(f"{_SEARCH}/status")

    async def job(self, job: str) -> Json:
        return await self._ask("reindex/status", {"job": job})

    async def reindex(self, pages: Sequence[str], *, full: bool) -> Json:
        return await self._ask("reindex", body={"pages": list(pages)} if pages else {"full": full})

    async def write(self, method: str, path: str, body: Json) -> Json:
        """Create or replace a page (PUT), edit it (PATCH), or delete it (DELETE)."""
        arguments, content = (body, None) if method == "DELETE" else (None, body)
        return self._with_addresses(await self._ask(f"{_SEARCH}/pages/{_quoted(path)}", arguments, content, method))

    async def _ask(
        self,
        route: str,
        arguments: Mapping[str, Any] | None = None,
        body: Json | None = None,
        method: str | None = None,
        seconds: float | None = None,
    ) -> Json:
        params = {name: value for name, value in (arguments or {}).items() if value is not None}
        connection = current_connection()  # restricts the request to the permissions of an account
        key = BEARER_PREFIX + self._signer.sign(connection) if connection and self._signer else None
        options: dict[str, Any] = {"params": params, "key": key, "method": method}
        send = partial(self._client.send, route, seconds or _ANSWER_SECONDS, body, **options)
        try:
            response = await anyio.to_thread.run_sync(send, abandon_on_cancel=True)
        except ProviderTimeoutError:
            raise BackendError(f"the wiki at {self._url} did not answer in time; try again later") from None
        except InvalidUrlError:
            raise BackendError("the request is too long", "invalid_parameter") from None
        except ProviderError as error:
            reason = error.server_message or error.reason
            raise BackendError(f"the wiki at {self._url} cannot be reached ({reason}); make sure that it runs") from None
        return self._read(response)

    def _read(self, response: JsonResponse) -> Json:
        answer = response.body
        if 200 <= response.status < 300 and isinstance(answer, dict):
            return answer
        error = answer.get("error") if isinstance(answer, dict) else None
        if response.status in {414, 431} and not isinstance(error, dict):
            raise BackendError("the request is too long for the wiki's server; ask for less at once", "invalid_parameter")
        if not isinstance(answer, dict) or not isinstance(error, dict):
            raise BackendError(
                f"{self._url} (status {response.status}) is not a wiki with otterwiki-semantic; check the address"
            )
        code, message = str(error.get("code")), str(error.get("message"))
        nearest = answer.get("pages") or answer.get("sections")
        names = [str(name) for name in nearest] if isinstance(nearest, list) else ()
        raise BackendError(_KEY_ERRORS.get(code, message), code, names, str(answer.get("diff") or ""))

    def _with_addresses(self, answer: Json) -> Json:
        """Return an answer with absolute URLs; the wiki's have no host."""
        entries = [answer, *(entry for name in ("results", "pages", "sources") for entry in answer.get(name, ()))]
        for entry in entries:
            if isinstance(entry, dict) and isinstance(entry.get("url"), str):
                entry["url"] = urljoin(f"{self._browser_url}/", entry["url"])
        return answer


def _checked_url(url: str) -> str:
    if not is_http_url(url.strip()) or "?" in url or "#" in url:  # not shown: may contain a password
        raise ConfigError(
            "the wiki's address (OTTERWIKI_URL or --url) is not allowed; allowed: http://host:port, without a user name"
        )
    return url.strip().rstrip("/")


def _quoted(path: str) -> str:
    segments = path.strip("/").split("/")
    if not path.strip("/") or any(segment in {"", ".", ".."} for segment in segments):
        raise BackendError("no page can have such a path", "page_unknown")
    return "/".join(quote(segment, safe="") for segment in segments)
