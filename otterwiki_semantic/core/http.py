"""JSON over HTTP, with one deadline for the whole exchange."""

from __future__ import annotations

import json
import logging
import queue
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
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
_POLL_SECONDS = 0.1
_END = object()
_EVENT_TYPES = ("text/event-stream",)
_LINE_TYPES = ("application/x-ndjson", "application/jsonl", "application/json-lines")


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
        """POST a body, or GET if there is none, within `seconds`; `key` replaces the client's, `method` POST.

        Errors: `ProviderError` if there is no complete answer.
        """
        import httpx

        content = None if body is None else _encoded(body)
        try:
            response, received = call_with_timeout(
                seconds, lambda: self._send(self.url + path, seconds, content, params, key, method)
            )
        except (TimeoutError, httpx.TimeoutException):
            raise ProviderTimeoutError(seconds) from None
        except (httpx.InvalidURL, httpx.RequestError, ValueError) as error:
            raise _failure(error) from None
        text = received[:_MAX_MESSAGE].decode("utf-8", "replace")
        return JsonResponse(response.status_code, response.headers, _parse(received), text)

    def stream(self, path: str, seconds: float, body: Mapping[str, Any], is_cancelled: Callable[[], bool]) -> Iterator[Any]:
        """POST a body, and yield each JSON text of the answer as it comes, within `seconds` in all.

        They are the data of Server-Sent Events, the lines of another answer, or the whole of it. The connection is closed when
        the caller stops, or as soon as `is_cancelled`. Errors: `ProviderError`; an answer that is cut looks like one that ends.
        """
        import httpx

        deadline = time.monotonic() + seconds
        timeout = httpx.Timeout(max(seconds, 0.001), connect=max(min(seconds, self._connect_seconds), 0.001))
        headers = {"Content-Type": "application/json", "Connection": "close"}  # the connection ends with the answer
        options: dict[str, Any] = {"headers": headers, "timeout": timeout}
        try:
            request = self._client.build_request("POST", self.url + path, content=_encoded(body), **options)
        except (httpx.InvalidURL, ValueError) as error:
            raise _failure(error) from None
        reading = _Reading(self._client, request, self._max_bytes)
        try:
            while not is_cancelled():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ProviderTimeoutError(seconds)
                try:
                    event = reading.events.get(timeout=min(left, _POLL_SECONDS))
                except queue.Empty:
                    continue
                if event is _END:
                    return
                if isinstance(event, Exception):
                    raise _failure(event) from None
                yield event
        finally:
            reading.stop()

    def close(self) -> None:
        """Close the connections, for good."""
        if "_client" in self.__dict__:
            self._client.close()

    def _send(
        self,
        url: str,
        seconds: float,
        content: bytes | None,
        params: Mapping[str, Any] | None,
        key: str | None,
        method: str | None,
    ) -> tuple[httpx.Response, bytearray]:
        import httpx

        deadline = time.monotonic() + seconds
        timeout = httpx.Timeout(seconds, connect=min(seconds, self._connect_seconds))  # of each step, not of the exchange
        headers = {} if content is None else {"Content-Type": "application/json"}
        method = method or ("GET" if content is None else "POST")
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
        headers |= {name.encode(): value.encode() for name, value in self._headers.items()}
        if self._key:
            headers[b"Authorization"] = f"Bearer {self._key}".encode()
        client = httpx.Client(headers=headers, trust_env=not is_on_this_machine(self.url))
        weakref.finalize(self, client.close)
        return client


class _Reading:
    """Reads an answer in a thread of its own, so that whoever waits for it can stop at any moment."""

    def __init__(self, client: httpx.Client, request: httpx.Request, max_bytes: int) -> None:
        self.events: queue.Queue[Any] = queue.Queue()
        """JSON values, and last `_END` or an exception."""
        self._client = client
        self._request = request
        self._request.extensions["trace"] = self._note_connection
        self._max_bytes = max_bytes
        self._connection: Any = None
        """The stream of bytes, as soon as there is one: an answer may begin minutes later."""
        self._is_stopped = False
        threading.Thread(target=self._run, name="reading an answer", daemon=True).start()

    def stop(self) -> None:
        """Close the connection, even while the thread waits for the answer to begin or to go on."""
        self._is_stopped = True
        if self._connection is not None:
            with suppress(OSError):
                self._connection.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def _note_connection(self, event: str, info: Mapping[str, Any]) -> None:
        """Take note of a connection when it is made; called by httpx with what it does."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._connection = info["return_value"]
            if self._is_stopped:
                self.stop()

    def _run(self) -> None:
        try:
            with closing(self._client.send(self._request, stream=True)) as response:
                for event in self._read(response):
                    self.events.put(event)
            self.events.put(_END)
        except Exception as error:  # noqa: BLE001 - raised again in the waiting thread
            self.events.put(error)

    def _read(self, response: httpx.Response) -> Iterator[Any]:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ProviderError(None, "it compresses its answer, which it was asked not to do")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code != 200 or kind not in {*_EVENT_TYPES, *_LINE_TYPES}:
            received = b"".join(self._bounded(response))
            text = received[:_MAX_MESSAGE].decode("utf-8", "replace")
            yield JsonResponse(response.status_code, response.headers, _parse(received), text).answer()
            return
        for line in _lines(self._bounded(response)):
            data = line.removeprefix(b"data:").strip() if kind in _EVENT_TYPES and line.startswith(b"data:") else line.strip()
            if kind in _EVENT_TYPES and not line.startswith(b"data:"):
                continue  # the name of an event, or a comment
            if data == b"[DONE]":
                return
            if data:
                event = _parse(data)
                if event is None:
                    raise ProviderError(None, "a part of the answer is not JSON")
                yield event

    def _bounded(self, response: httpx.Response) -> Iterator[bytes]:
        received = 0
        for part in response.iter_bytes():
            received += len(part)
            if received > self._max_bytes:
                raise ProviderError(None, f"the answer has more than {self._max_bytes:,} bytes")
            yield part


def _lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    waiting = bytearray()
    for part in parts:
        waiting += part
        if b"\n" in part:
            *lines, rest = bytes(waiting).split(b"\n")
            waiting = bytearray(rest)
            yield from lines
    if waiting:
        yield bytes(waiting)


def _encoded(body: Mapping[str, Any]) -> bytes:
    """Return a body as JSON; a lone surrogate, as damaged pages have, cannot be sent."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", errors="replace")


def _failure(error: Exception) -> Exception:
    """Return why a request failed, as a `ProviderError`; another error as it is."""
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return ProviderError(None, "it did not answer in time")
    if isinstance(error, httpx.RequestError):
        return ProviderError(None, type(error).__name__, server_message=str(error))
    if isinstance(error, httpx.InvalidURL | ValueError):  # ValueError: of a host name, or of a proxy in the environment
        return InvalidUrlError(None, f"the address is invalid: {error}")
    return error


def _parse(content: bytearray | bytes) -> Any:
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
