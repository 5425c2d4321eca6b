"""JSON over HTTP with a deadline for the whole exchange.

What a server says of itself is kept in `ProviderError.said`, which is shown only after `redact`: it may repeat a key or a text.
"""

from __future__ import annotations

import json
import logging
import re
import time
import weakref
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.network import is_on_this_machine
from otterwiki_semantic.core.timeout import call_with_timeout

if TYPE_CHECKING:
    import httpx

_LONGEST_SAID = 10_000
_LONGEST_ANSWER = 512 * 1024 * 1024


class JsonServer:
    """The server at `url`; a `key` is sent as a bearer token. The client is made on first use."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url = url
        self._key = key

    def at(self, url: str) -> JsonServer:
        """Give another address of the same server."""
        return JsonServer(url, self._key)

    def ask(self, path: str, seconds: float, body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer to a POST of `body`, or to a GET without one.

        Errors: `ProviderError`; `ModelError` if the answer is not JSON.
        """
        import httpx

        try:
            status, headers, content = call_with_timeout(seconds, lambda: self._send(self.url + path, seconds, body))
        except (TimeoutError, httpx.TimeoutException):
            raise ProviderError(None, f"no answer within {seconds:.0f} s") from None
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ModelError(f"{self.url} is no address that can be asked ({error}); correct SEMANTIC_MODEL_URL") from None
        except httpx.RequestError as error:
            raise ProviderError(None, type(error).__name__, said=str(error)) from None
        if 300 <= status < 400:
            raise ProviderError(status, "it redirects elsewhere")
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if status >= 400:
            raise ProviderError(status, "", retry_after(headers.get("retry-after")), said=_said(answer, content))
        if answer is None:
            raise ModelError(f"{self.url} answered something that is not JSON: is it the server that SEMANTIC_MODEL_URL means?")
        return answer

    def _send(self, url: str, seconds: float, body: Mapping[str, Any] | None) -> tuple[int, Mapping[str, str], bytes]:
        """Send one request; the time holds for all of it, however slowly the answer drips."""
        import httpx

        end = time.monotonic() + seconds
        timeout = httpx.Timeout(seconds, connect=min(seconds, 10))
        content = json.dumps(body).encode("ascii") if body is not None else None
        method = "GET" if body is None else "POST"
        with self._client.stream(method, url, content=content, timeout=timeout) as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise httpx.RemoteProtocolError("it compresses its answer, though it was told not to")
            chunks, size = [], 0
            for chunk in response.iter_bytes():
                chunks.append(chunk)
                size += len(chunk)
                if time.monotonic() > end:
                    raise httpx.ReadTimeout("too slow")
                if size > _LONGEST_ANSWER:
                    raise httpx.RemoteProtocolError("its answer does not end")
            return response.status_code, response.headers, b"".join(chunks)

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        logging.getLogger("httpx").setLevel(logging.WARNING)  # it notes each request
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}  # what is small is small
        if self._key:
            if not re.fullmatch(r"[!-~]+", self._key):
                raise ModelError("SEMANTIC_MODEL_KEY has characters that no key has, such as a space or a line break")
            headers["Authorization"] = f"Bearer {self._key}"
        client = httpx.Client(headers=headers, trust_env=not is_on_this_machine(self.url))
        weakref.finalize(self, client.close)
        return client


def _said(answer: Any, content: bytes) -> str:
    """Give what a refusal says for itself: the message of its JSON; of what is none, all."""
    found = answer
    for name in ("error", "message", "detail"):
        found = found.get(name, found) if isinstance(found, dict) else found
    if answer is None:
        return content[:_LONGEST_SAID].decode("utf-8", "replace")
    return found if isinstance(found, str) else ""


def retry_after(value: str | None) -> float | None:
    """Give the seconds of a Retry-After header, which may be a date; None if there is none that can be read."""
    if value is None:
        return None
    try:
        return max(float(value), 0.0) if value.strip().replace(".", "", 1).isdigit() else _seconds_until(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _seconds_until(date: str) -> float:
    return max((parsedate_to_datetime(date).astimezone(UTC) - datetime.now(UTC)).total_seconds(), 0.0)


_PASSING = frozenset({408, 409, 425, 429})


_TOO_LONG = re.compile(
    r"maximum context|context (length|size|window)|(input|text|prompt|sequence|document)s?\b.{0,40} too (long|large|big)"
    r"|too many tokens|(must have )?less than \d+ tokens|max(imum)?[ _](input|sequence|token)|token limit|physical batch size"
    r"|exceed.{0,40}(tokens?|length)\b",
    re.IGNORECASE,
)


_TOO_MANY = re.compile(
    r"batch size \d|maximum (allowed )?batch|too many (inputs|texts|documents)|array too long", re.IGNORECASE
)


class ProviderError(Exception):
    """A server did not give what it was asked for: its HTTP `status` (None: no answer came), why, and when to come again.

    `reason` is in our words, `said` in the server's: these may repeat a key or a text, and are shown by `quote` alone.
    """

    def __init__(self, status: int | None, reason: str, retry_after: float | None = None, *, said: str = "") -> None:
        super().__init__(status, reason)
        self.status, self.reason, self.retry_after, self.said = status, reason, retry_after, said

    @property
    def is_too_many(self) -> bool:
        """Whether fewer texts would be taken."""
        return self.status in {400, 413, 422} and _TOO_MANY.search(self.said) is not None

    @property
    def is_too_long(self) -> bool:
        """Whether a shorter text would be taken."""
        if self.is_too_many or self.status not in {400, 413, 422, 500}:
            return False
        return self.status == 413 or _TOO_LONG.search(self.said) is not None

    @property
    def is_passing(self) -> bool:
        """Whether the same may be answered later."""
        if self.is_too_many or self.is_too_long:
            return False
        return self.status is None or self.status in _PASSING or self.status >= 500
