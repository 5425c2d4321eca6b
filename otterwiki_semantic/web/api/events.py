"""Answers as Server-Sent Events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from flask import Response

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import AskProgress
from otterwiki_semantic.core.serialization import encode
from otterwiki_semantic.daemon import IndexService, progress_of
from otterwiki_semantic.web.errors import error_facts
from otterwiki_semantic.web.waiting import WaitingReader

EVENTS_TYPE = "text/event-stream"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""No cache keeps events, and nginx passes each on at once."""
_STILL_HERE = b": still writing\n\n"
"""A comment, which tells whether the reader is still there."""


def answer_events(index: IndexService, started: AskProgress, reader: WaitingReader) -> Response:
    """Return an answer as events: `sources`, `text` for each sentence, and `done`, or `error` if the index fails.

    `sources` comes again if better ones are found before the first sentence.

    `sources` and `done` have a `GroundedAnswer`, `text` an `AnswerSentence`. If the reader leaves or has enough, the
    answer is cancelled.
    """
    events = _events(index, started, reader)
    return Response(events, 200, _HEADERS, content_type=f"{EVENTS_TYPE}; charset=utf-8")


def _events(index: IndexService, started: AskProgress, reader: WaitingReader) -> Iterator[bytes]:
    yield _event("sources", started.result)
    try:
        with closing(progress_of(index, started, reader.has_enough)) as parts:
            for progress in parts:
                for sentence in progress.answer:
                    yield _event("text", sentence)
                if progress.done:
                    reader.leave()
                if progress.result is not None:
                    yield _event("done" if progress.done else "sources", progress.result)
                elif not progress.answer:
                    yield _STILL_HERE
    except SemanticError as error:
        yield _event("error", error_facts(error.code, str(error)))


def _event(name: str, content: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(content))
