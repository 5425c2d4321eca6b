"""A running wiki, asked over its REST API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urljoin, urlsplit

import httpx

from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.network import is_on_this_machine
from otterwiki_semantic.mcp.backend import BackendError, Json

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_SEARCH = "semantic-search"
_TOO_LONG = (414, 431)
_OF_KEY = {
    "wrong_key": "the key is wrong: OTTERWIKI_API_KEY is not the one that the wiki was started with",
    "unauthorized": "the wiki wants a key: set OTTERWIKI_API_KEY to the one that it was started with",
    "no_key_configured": "a key was sent and the wiki has none: set OTTERWIKI_API_KEY where the wiki is started, too",
}


class RestBackend:
    """A `Wiki` at an address; the key is sent with every request, and to no other host.

    Errors: `ConfigError` for an address that is none and a key that cannot be sent, else `BackendError`.
    """

    def __init__(self, url: str, key: str | None = None, answer_seconds: float = _ANSWER_SECONDS) -> None:
        self._url = _checked_url(url)
        if key and not key.isprintable():  # the client's own error would show it
            raise ConfigError("OTTERWIKI_API_KEY has characters in it that cannot be sent, such as an end of line")
        self._client = httpx.AsyncClient(
            headers={b"Authorization": f"Bearer {key}".encode()} if key else None,
            timeout=httpx.Timeout(answer_seconds, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=32, max_keepalive_connections=8),
            trust_env=not is_on_this_machine(self._url),  # a proxy of the environment is for other machines
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def search(self, query: str, arguments: Mapping[str, Any]) -> Json:
        """See `Wiki`."""
        given = {name: value for name, value in arguments.items() if value is not None}
        answers = await self._ask("POST", _SEARCH, {}, {"queries": [query], **given})  # a long one is none for an address
        return self._with_addresses(answers["answers"][0])

    async def pages(self, arguments: Mapping[str, Any]) -> Json:
        """See `Wiki`."""
        return self._with_addresses(await self._ask("GET", f"{_SEARCH}/pages", arguments))

    async def page(self, path: str, arguments: Mapping[str, Any]) -> Json:
        """See `Wiki`."""
        return self._with_addresses(await self._ask("GET", f"{_SEARCH}/pages/{_quoted(path)}", arguments))

    async def related(self, path: str, n: int) -> Json:
        """See `Wiki`."""
        return self._with_addresses(await self._ask("GET", "related", {"path": path, "n": n}))

    async def status(self) -> Json:
        """See `Wiki`."""
        return await self._ask("GET", f"{_SEARCH}/status", {})

    async def reindex(self, pages: Sequence[str], *, full: bool) -> Json:
        """See `Wiki`."""
        return await self._ask("POST", "reindex", {}, {"pages": list(pages)} if pages else {"full": full})

    async def _ask(self, method: str, route: str, arguments: Mapping[str, Any], body: Json | None = None) -> Json:
        given = {name: _shown(value) for name, value in arguments.items() if value is not None}
        try:
            response = await self._client.request(method, f"{self._url}/api/v1/{route}", params=given, json=body)
        except httpx.TimeoutException:
            raise BackendError(f"the wiki at {self._url} did not answer in time; try again in a while") from None
        except httpx.InvalidURL:
            raise BackendError("that is too long to be asked for", "invalid_parameter") from None
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise BackendError(f"the wiki at {self._url} cannot be reached ({reason}); see that it runs") from None
        return self._read(response)

    def _read(self, response: httpx.Response) -> Json:
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if response.is_success and isinstance(answer, dict):
            return answer
        error = answer.get("error") if isinstance(answer, dict) else None
        if response.status_code in _TOO_LONG and not isinstance(error, dict):
            raise BackendError("that is too long for the server of the wiki; ask for less at once", "invalid_parameter")
        if not isinstance(answer, dict) or not isinstance(error, dict):
            raise BackendError(
                f"{self._url} answered with status {response.status_code} and no JSON, as a wiki with otterwiki-semantic "
                "would; see that the address is right"
            )
        code, message = str(error.get("code")), str(error.get("message"))
        nearest = answer.get("pages") or answer.get("sections")
        raise BackendError(
            _OF_KEY.get(code, message), code, [str(name) for name in nearest] if isinstance(nearest, list) else ()
        )

    def _with_addresses(self, answer: Json) -> Json:
        """Give an answer whose addresses, which the wiki gives without its host, can be opened."""
        entries = [answer, *(entry for name in ("results", "pages") for entry in answer.get(name, ()))]
        for entry in entries:
            if isinstance(entry, dict) and isinstance(entry.get("url"), str):
                entry["url"] = urljoin(f"{self._url}/", entry["url"])
        return answer


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        is_good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or "@" in url or parts.query or parts.fragment:  # not repeated: it may hold a password
        raise ConfigError(
            "the wiki's address (OTTERWIKI_URL or --url) is not allowed; allowed: http://host:port, without a user name"
        )
    return url.strip().rstrip("/")


def _quoted(path: str) -> str:
    segments = path.strip("/").split("/")
    if not path.strip("/") or any(segment in {"", ".", ".."} for segment in segments):
        raise BackendError("no page can have such a path", "page_unknown")
    return "/".join(quote(segment, safe="") for segment in segments)


def _shown(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
