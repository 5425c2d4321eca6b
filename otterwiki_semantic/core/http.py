"""JSON over HTTP, with one deadline for the whole exchange."""

from __future__ import annotations

import json
import logging
import time
import weakref
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from otterwiki_semantic.core.loopback import is_on_this_machine
from otterwiki_semantic.core.timeout import call_with_timeout

if TYPE_CHECKING:
    import httpx

_MAX_MESSAGE = 10_000
_MAX_BYTES = 512 * 1024 * 1024
_TEMPORARY = frozenset({408, 409, 425, 429})


class ProviderError(Exception):
    """A server refused a request, or did not answer it."""

    def __init__(self, status: int | None, reason: str, retry_after: float | None = None, *, server_message: str = "") -> None:
        super().__init__(status, reason)
        self.status = status
        """The HTTP status; None if there was no answer."""
        self.reason = reason
        """Why, in our words; empty if the server refused."""
        self.retry_after = retry_after
        """Seconds after which the server wants to be asked again, if it says so."""
        self.server_message = server_message
        """Why, in the words of the server or of a library: may repeat a key or a text, and is shown only through `redact`."""

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status is None or self.status in _TEMPORARY or self.status >= 500


class ProviderTimeoutError(ProviderError):
    """A server did not answer within `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(None, f"no answer within {seconds:.0f} s")


class InvalidUrlError(ProviderError):
    """No request can be sent to this address."""

    @property
    def is_temporary(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class JsonResponse:
    """What a server answered, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: Any
    """None if the answer is not JSON."""
    text: str
    """The beginning of the answer as it was sent."""

    def answer(self) -> Any:
        """Return the body. Errors: `ProviderError` for a redirect, an error status, and an answer that is not JSON."""
        if 300 <= self.status < 400:
            raise ProviderError(self.status, "it redirects elsewhere")
        if self.status >= 400:
            wait = retry_after(self.headers.get("retry-after"))
            raise ProviderError(self.status, "", wait, server_message=self.message)
        if self.body is None:
            raise ProviderError(self.status, "the answer is not JSON")
        return self.body

    @property
    def message(self) -> str:
        """The error message in the body, or the answer itself if it is not JSON."""
        if self.body is None:
            return self.text
        found = self.body
        for name in ("error", "message", "detail"):
            found = found.get(name, found) if isinstance(found, dict) else found
        return found if isinstance(found, str) else ""


class JsonClient:
    """Client of a server that speaks JSON; safe to call from several threads.

    Connections are reused. Redirects are not followed, so that `key`, sent as a bearer token, goes to no other server.
    """

    def __init__(self, url: str, key: str | None = None, *, connect_seconds: float = 10, max_bytes: int = _MAX_BYTES) -> None:
        self.url = url
        self._key = key
        self._connect_seconds = connect_seconds
        self._max_bytes = max_bytes

    def send(
        self,
        path: str,
        seconds: float,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> JsonResponse:
        """POST a body, or GET if there is none, within `seconds`; `key` replaces the client's.

        Errors: `ProviderError` if there is no complete answer.
        """
        import httpx

        # A lone surrogate, as damaged pages have, cannot be sent.
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", errors="replace")
        try:
            response, received = call_with_timeout(seconds, lambda: self._send(self.url + path, seconds, content, params, key))
        except (TimeoutError, httpx.TimeoutException):
            raise ProviderTimeoutError(seconds) from None
        except (httpx.InvalidURL, ValueError) as error:  # ValueError: of a host name, or of a proxy in the environment
            raise InvalidUrlError(None, f"the address is invalid: {error}") from None
        except httpx.RequestError as error:
            raise ProviderError(None, type(error).__name__, server_message=str(error)) from None
        text = received[:_MAX_MESSAGE].decode("utf-8", "replace")
        return JsonResponse(response.status_code, response.headers, _parse(received), text)

    def close(self) -> None:
        """Close the connections, for good."""
        if "_client" in self.__dict__:
            self._client.close()

    def _send(
        self, url: str, seconds: float, content: bytes | None, params: Mapping[str, Any] | None, key: str | None
    ) -> tuple[httpx.Response, bytearray]:
        import httpx

        deadline = time.monotonic() + seconds
        timeout = httpx.Timeout(seconds, connect=min(seconds, self._connect_seconds))  # of each step, not of the exchange
        method, headers = ("GET", {}) if content is None else ("POST", {"Content-Type": "application/json"})
        if key:
            headers["Authorization"] = f"Bearer {key}"
        request = self._client.build_request(method, url, content=content, params=params, headers=headers, timeout=timeout)
        with closing(self._client.send(request, stream=True)) as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ProviderError(None, "it compresses its answer, which it was asked not to do")
            received = bytearray()
            for part in response.iter_bytes():
                received += part
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("too slow")
                if len(received) > self._max_bytes:
                    raise ProviderError(None, f"the answer has more than {self._max_bytes:,} bytes")
        return response, received

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request
        headers = {b"Accept-Encoding": b"identity"}  # so that a small answer is a small one
        if self._key:
            headers[b"Authorization"] = f"Bearer {self._key}".encode()
        client = httpx.Client(headers=headers, trust_env=not is_on_this_machine(self.url))
        weakref.finalize(self, client.close)
        return client


def _parse(content: bytearray) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which may be a date; None if there is none or it is invalid."""
    if value is None:
        return None
    try:
        if value.strip().replace(".", "", 1).isdigit():
            return float(value)
        return max((parsedate_to_datetime(value).astimezone(UTC) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
