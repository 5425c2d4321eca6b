"""Answers as they are written, as Server-Sent Events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from flask import Response

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import AskProgress, GroundedAnswer
from otterwiki_semantic.core.serialization import encode
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.web.errors import error_facts

EVENTS_TYPE = "text/event-stream"
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""No cache keeps events, and nginx passes each on at once."""
_STILL_HERE = b": still writing\n\n"
"""A comment, which tells whether the reader is still there."""


def whole_answer(index: IndexService, started: AskProgress) -> GroundedAnswer:
    """Wait for the end of an answer, and return it."""
    seen = 0
    while True:
        progress = index.ask_progress(started.id, seen)
        if progress.result is not None:
            return progress.result
        seen += len(progress.answer)


def answer_events(index: IndexService, started: AskProgress) -> Response:
    """Return an answer as events: `sources`, `text` for each sentence, and `done`, or `error` if the index fails.

    `sources` and `done` have a `GroundedAnswer`, `text` an `AnswerSentence`. If the reader leaves, the answer is cancelled.
    """
    return Response(_events(index, started), content_type=f"{EVENTS_TYPE}; charset=utf-8", headers=STREAM_HEADERS)


def _events(index: IndexService, started: AskProgress) -> Iterator[bytes]:
    seen, is_done = 0, False
    try:
        yield _event("sources", started.result)
        while not is_done:
            progress = index.ask_progress(started.id, seen)
            for sentence in progress.answer:
                yield _event("text", sentence)
            seen, is_done = seen + len(progress.answer), progress.done
            if progress.result is not None:
                yield _event("done", progress.result)
            elif not progress.answer:
                yield _STILL_HERE
    except SemanticError as error:
        is_done = True
        yield _event("error", error_facts(error.code, str(error)))
    finally:
        if not is_done:
            with suppress(SemanticError):
                index.cancel_ask(started.id)


def _event(name: str, content: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(content))
