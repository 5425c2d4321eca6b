"""Answers that a request waits for: whole, or as Server-Sent Events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from flask import Response, after_this_request, request

from otterwiki_semantic.core.errors import RateLimitError, SemanticError
from otterwiki_semantic.core.records import AskProgress, GroundedAnswer
from otterwiki_semantic.core.serialization import encode
from otterwiki_semantic.daemon import IndexService, progress_of, whole_answer
from otterwiki_semantic.web.errors import error_facts

EVENTS_TYPE = "text/event-stream"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Caches must not store events, and nginx must forward each at once."""
_STILL_HERE = b": still writing\n\n"
"""A comment, to find out whether the reader is still connected."""
_SEND_SECONDS = 5.0
"""How long a reader may take to receive an event, or a whole answer."""
_ONE_THREAD_SECONDS = 1.0
"""How long an answer may take if the server can serve nobody else meanwhile."""
_BUSY = "the wiki's server is busy with another answer; ask again in a moment"
_LEFT = "The reader left."
_ONE_THREAD = (
    "This is what was written in a second: the wiki's server cannot wait longer, because its processes have one thread each. "
    "The search page shows the whole answer if scripts are enabled."
)
_LEFT_EVENTS = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)

_place = threading.BoundedSemaphore()
"""Each process waits for one answer at a time, because a server does not report its number of threads."""


class WaitingReader:
    """The reader of the current request. Raises `RateLimitError` if this process waits for another answer.

    A reader who does not receive what is sent is dropped.
    """

    def __init__(self) -> None:
        self._environ = request.environ
        self._since: float | None = None
        """When the wait for sentences began."""
        self._has_place = "werkzeug.socket" not in self._environ  # the development server starts a thread for each request
        if self._has_place:
            if not _place.acquire(blocking=False):
                raise RateLimitError(_BUSY)
            after_this_request(self._leave_at_the_end)
        if (connection := self._socket()) is not None:
            connection.settimeout(_SEND_SECONDS)

    def whole_answer(self, index: IndexService, started: AskProgress) -> GroundedAnswer:
        """Return an answer as far as it is written while the reader waits."""
        answer = whole_answer(index, started, self.has_enough)
        self.leave()
        return answer

    def answer_events(self, index: IndexService, started: AskProgress) -> Response:
        """Return an answer as events: `sources`, `text` for each sentence, and `done`, or `error` if the index fails.

        `sources` and `done` contain a `GroundedAnswer`, `text` an `AnswerSentence`. `sources` is repeated if better ones are
        found before the first sentence.
        """
        return Response(self._events(index, started), 200, _HEADERS, content_type=f"{EVENTS_TYPE}; charset=utf-8")

    def _events(self, index: IndexService, started: AskProgress) -> Iterator[bytes]:
        yield _event("sources", started.result)
        try:
            with closing(progress_of(index, started, self.has_enough)) as parts:
                for progress in parts:
                    for sentence in progress.answer:
                        yield _event("text", sentence)
                    if progress.done:
                        self.leave()
                    if progress.result is not None:
                        yield _event("done" if progress.done else "sources", progress.result)
                    elif not progress.answer:
                        yield _STILL_HERE
        except SemanticError as error:
            yield _event("error", error_facts(error.code, str(error)))

    def leave(self) -> None:
        """Make room for another reader."""
        if self._has_place:
            self._has_place = False
            _place.release()

    def _leave_at_the_end(self, response: Response) -> Response:
        response.call_on_close(self.leave)
        return response

    def has_enough(self) -> str | None:
        """Return why the reader waits no longer, or None."""
        if self._has_left():
            return _LEFT
        if self._environ.get("wsgi.multithread"):
            return None
        self._since = self._since or time.monotonic()
        return _ONE_THREAD if time.monotonic() - self._since > _ONE_THREAD_SECONDS else None

    def _has_left(self) -> bool:
        """Whether the client has closed its connection, if the server can tell."""
        if is_closed := self._environ.get("waitress.client_disconnected"):
            return bool(is_closed())
        connection: Any = self._socket()
        if connection is None and (uwsgi := sys.modules.get("uwsgi")):
            connection = uwsgi.connection_fd()
        if connection is None:
            return False
        poller = select.poll()
        try:
            poller.register(connection, _LEFT_EVENTS)
            return bool(poller.poll(0))
        except (OSError, ValueError):  # closed here
            return True

    def _socket(self) -> Any:
        return self._environ.get("gunicorn.socket") or self._environ.get("werkzeug.socket")


def _event(name: str, content: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(content))
