"""A light client: one connection that stays open, no cookies but its own, times in seconds."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from tests.support.live_wiki import KEY

_TIMEOUT_SECONDS = 60.0
_TOKEN = re.compile(rb'name="csrf_token"[^>]*value="([^"]+)"')
_AS_PROGRAM = {"Authorization": f"Bearer {KEY}"}


@dataclass(frozen=True, slots=True)
class Timed:
    """An answer, the seconds from the request's first byte until the last byte of the answer was read, and who gave it.

    `worker` is the id of the wiki's process that answered.
    """

    status: int
    body: bytes
    seconds: float
    worker: int


class Client:
    """Someone who uses the wiki; use it in a `with` statement. A server that closes connections is connected to again."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
        self._form: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.close()

    def _request(self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None) -> Timed:
        start = time.perf_counter()
        try:
            self._connection.request(method, path, body, dict(headers or {}))
            with closing(self._connection.getresponse()) as response:
                content = response.read()
                seconds = time.perf_counter() - start
                self._remember(response)
                return Timed(response.status, content, seconds, int(response.headers["X-Worker"]))
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise

    def _remember(self, response: http.client.HTTPResponse) -> None:
        cookie = response.headers["Set-Cookie"]
        if cookie:
            self._form["Cookie"] = cookie.partition(";")[0]

    def get(self, path: str) -> Timed:
        """GET a page without the key, as a browser does."""
        return self._request("GET", path)

    def search(self, query: str, **parameters: str | float) -> Timed:
        """Search as a program does, with the key; fails unless there is a whole answer."""
        path = f"/api/v1/semantic-search?{urlencode({'q': query, **parameters})}"
        answer = self._request("GET", path, headers=_AS_PROGRAM)
        assert answer.status == 200, answer.body[:500]
        return answer

    def suggest(self, typed: str) -> Timed:
        """Ask for suggestions as a program does, with the key; fails unless there is a whole answer."""
        answer = self._request("GET", f"/api/v1/semantic-search/suggest?{urlencode({'q': typed})}", headers=_AS_PROGRAM)
        assert answer.status == 200, answer.body[:500]
        return answer

    def results(self, query: str, **parameters: str | float) -> list[dict[str, Any]]:
        """Return a search's results."""
        found: list[dict[str, Any]] = json.loads(self.search(query, **parameters).body)["results"]
        return found

    def status(self) -> dict[str, Any]:
        """Return the index's status."""
        answer = self._request("GET", "/api/v1/semantic-search/status", headers=_AS_PROGRAM)
        assert answer.status == 200, answer.body[:500]
        status: dict[str, Any] = json.loads(answer.body)
        return status

    def reindex(self) -> None:
        """Start a rebuild."""
        answer = self._request("POST", "/api/v1/reindex", headers=_AS_PROGRAM)
        assert answer.status == 202, answer.body[:500]

    def save(self, page: str, content: str) -> Timed:
        """Save a page as the editor does; its token is fetched once, from a form that is small in every wiki, and not timed."""
        if "token" not in self._form:
            self._form["token"] = self._token("/-/login")
        body = urlencode({"csrf_token": self._form["token"], "content": content, "commit": "edit"})
        headers = {"Cookie": self._form["Cookie"], "Content-Type": "application/x-www-form-urlencoded"}
        answer = self._request("POST", f"/{quote(page)}/save", body, headers)
        assert answer.status == 302, (answer.status, answer.body[:500])
        return answer

    def _token(self, form_page: str) -> str:
        token = _TOKEN.search(self.get(form_page).body)
        assert token, f"no form at {form_page}"
        return token[1].decode()
