"""A server that is asked in JSON over HTTP. What it says for itself is `Refusal.said`: to be quoted, never shown as it is."""

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

from otterwiki_semantic.config import is_on_this_machine
from otterwiki_semantic.embedding.asking import Refusal, within
from otterwiki_semantic.errors import ModelError

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
        """Give the answer to a body, or to a question without one (GET). Errors: `Refusal`; `ModelError`: it is not JSON."""
        import httpx

        try:
            status, headers, content = within(seconds, lambda: self._send(self.url + path, seconds, body))
        except httpx.TimeoutException:
            raise Refusal(None, f"no answer within {seconds:.0f} s") from None
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ModelError(f"{self.url} is no address that can be asked ({error}); correct SEMANTIC_MODEL_URL") from None
        except httpx.RequestError as error:
            raise Refusal(None, type(error).__name__, said=str(error)) from None
        if 300 <= status < 400:
            raise Refusal(status, "it redirects elsewhere")
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if status >= 400:
            raise Refusal(status, "", retry_after(headers.get("retry-after")), said=_said(answer, content))
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
