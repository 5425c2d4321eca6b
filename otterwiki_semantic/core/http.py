"""JSON over HTTP, with one deadline for the whole exchange."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, cached_property
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from otterwiki_semantic.core.addresses import is_on_this_machine
from otterwiki_semantic.core.errors import causes

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_MAX_MESSAGE = 10_000
_MAX_BYTES = 512 * 1024 * 1024
_TEMPORARY = frozenset({408, 409, 425, 429})
_POLL_SECONDS = 0.1
_LINE_TYPES = ("application/x-ndjson", "application/jsonl", "application/json-lines")


class ProviderError(Exception):
    """A server refused a request, or did not answer."""

    def __init__(self, status: int | None, reason: str, retry_after: float | None = None, *, server_message: str = "") -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        """The reason in our words; empty if the server refused."""
        self.retry_after = retry_after
        """Seconds to wait before the next request, if the server says so."""
        self.server_message = server_message
        """The reason in the words of the server or a library. May repeat a key or a text, so show it only through `redact`."""

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status is None or self.status in _TEMPORARY or self.status >= 500


class ProviderTimeoutError(ProviderError):
    """A server did not answer within `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(None, f"no answer within {seconds:.0f} s")


class InvalidUrlError(ProviderError):
    """A request cannot be sent to this address."""

    @property
    def is_temporary(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class JsonResponse:
    """A server's response, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: Any
    text: str

    def answer(self) -> Any:
        """Return the body. Errors: `ProviderError` for a redirect, an error status, or a body that is not JSON."""
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
        """The error message in the body, or the text of the response if it is not JSON."""
        if self.body is None:
            return self.text
        found = self.body
        for name in ("error", "message", "detail"):
            found = found.get(name, found) if isinstance(found, dict) else found
        return found if isinstance(found, str) else ""


class JsonClient:
    """Client for a server that speaks JSON; safe to call from several threads.

    Connections are reused. Redirects are not followed, so `key`, sent as a bearer token, goes to no other server.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        connect_seconds: float = 10,
        max_bytes: int = _MAX_BYTES,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.url = url
        self._key = key
        self._headers = dict(headers or {})
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
        method: str | None = None,
    ) -> JsonResponse:
        """POST a body, or GET without one, within `seconds`. Errors: `ProviderError` if there is no complete response."""
        content = None if body is None else _encoded(body)
        headers = {} if content is None else {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        method = method or ("GET" if content is None else "POST")
        options = {"content": content, "params": params, "headers": headers}
        sending = asyncio.run_coroutine_threadsafe(self._request(method, path, seconds, self._whole, options), _loop())
        try:
            return sending.result()
        finally:
            sending.cancel()

    def stream(self, path: str, seconds: float, body: Mapping[str, Any], is_cancelled: Callable[[], bool]) -> Iterator[Any]:
        """POST a body, and yield the JSON of each Server-Sent Event, of each line, or of the response, within `seconds`.

        The connection closes when the caller stops, or as soon as `is_cancelled`. Errors: `ProviderError`.
        """
        if is_cancelled():
            return
        arrived: queue.Queue[Any] = queue.Queue()

        async def read(response: httpx.Response) -> None:
            async for value in self._values(response):
                arrived.put(value)

        options = {"content": _encoded(body), "headers": {"Content-Type": "application/json"}}
        reading = asyncio.run_coroutine_threadsafe(self._request("POST", path, seconds, read, options), _loop())
        reading.add_done_callback(arrived.put)
        try:
            while not is_cancelled():
                with suppress(queue.Empty):
                    value = arrived.get(timeout=_POLL_SECONDS)
                    if value is reading:
                        reading.result()  # raises the error that ended it
                        return
                    yield value
        finally:
            reading.cancel()

    def close(self) -> None:
        """Close the connections permanently."""
        if "_client" in self.__dict__:
            _close(self._client)

    async def _request(
        self,
        method: str,
        path: str,
        seconds: float,
        read: Callable[[httpx.Response], Awaitable[T]],
        options: Mapping[str, Any],
    ) -> T:
        import httpx

        timeout = httpx.Timeout(None, connect=min(seconds, self._connect_seconds))
        try:
            httpx.URL(self.url).host.encode("idna")  # with an empty label, it would only be an unknown host
            async with (
                asyncio.timeout(seconds),
                self._client.stream(method, self.url + path, timeout=timeout, **options) as answer,
            ):
                return await read(answer)
        except (TimeoutError, httpx.TimeoutException):
            raise ProviderTimeoutError(seconds) from None
        except httpx.RequestError as error:
            raise ProviderError(None, type(error).__name__, server_message=_reason(error)) from None
        except (httpx.InvalidURL, ValueError) as error:  # ValueError: for a host name, or for a proxy in the environment
            raise InvalidUrlError(None, f"the address is invalid: {error}") from None

    async def _whole(self, response: httpx.Response) -> JsonResponse:
        received = bytearray()
        async for part in self._parts(response):
            received += part
        text = received[:_MAX_MESSAGE].decode("utf-8", "replace")
        return JsonResponse(response.status_code, response.headers, _parse(received), text)

    async def _values(self, response: httpx.Response) -> AsyncIterator[Any]:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        has_events = kind == "text/event-stream"
        if response.status_code != 200 or not (has_events or kind in _LINE_TYPES):
            yield (await self._whole(response)).answer()
            return
        async for line in _lines(self._parts(response)):
            if has_events and not line.startswith(b"data:"):
                continue  # the name of an event, or a comment
            data = line.removeprefix(b"data:").strip()
            if data == b"[DONE]":
                return
            if data:
                value = _parse(data)
                if value is None:
                    raise ProviderError(None, "a part of the answer is not JSON")
                yield value

    async def _parts(self, response: httpx.Response) -> AsyncIterator[bytes]:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ProviderError(None, "it compresses its answer, which it was asked not to do")
        received = 0
        async for part in response.aiter_bytes():
            received += len(part)
            if received > self._max_bytes:
                raise ProviderError(None, f"the answer has more than {self._max_bytes:,} bytes")
            yield part

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        import httpx

        logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request
        headers = {b"Accept-Encoding": b"identity"}  # keeps small responses small
        headers |= {name.encode(): value.encode() for name, value in self._headers.items()}
        if self._key:
            headers[b"Authorization"] = f"Bearer {self._key}".encode()
        client = httpx.AsyncClient(headers=headers, trust_env=not is_on_this_machine(self.url))
        weakref.finalize(self, _close, client).atexit = False
        return client


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop for all requests, in its own thread: any thread can cancel a request at any moment."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="http", daemon=True).start()
    return loop


def _close(client: httpx.AsyncClient) -> None:
    asyncio.run_coroutine_threadsafe(client.aclose(), _loop())


def _reason(error: BaseException) -> str:
    """Return the message of the first cause of an error, such as "Connection refused"."""
    *_, error = causes(error)
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno and error.errno > 0 else str(error)


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    waiting = bytearray()
    async for part in parts:
        waiting += part
        if b"\n" in part:
            *lines, rest = bytes(waiting).split(b"\n")
            waiting = bytearray(rest)
            for line in lines:
                yield line
    if waiting:
        yield bytes(waiting)


def _encoded(body: Mapping[str, Any]) -> bytes:
    """Encode a body as JSON, replacing lone surrogates, which damaged pages may contain."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", errors="replace")


def _parse(content: bytearray | bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def retry_after(value: str | None) -> float | None:
    """Return the seconds in a Retry-After header, which may be a date; None if it is missing or invalid."""
    if value is None:
        return None
    try:
        if value.strip().replace(".", "", 1).isdigit():
            return float(value)
        return max((parsedate_to_datetime(value).astimezone(UTC) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
