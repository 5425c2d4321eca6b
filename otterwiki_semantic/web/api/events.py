"""Answers as Server-Sent Events."""

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
from otterwiki_semantic.web.streaming import event_stream

_STILL_HERE = b": still writing\n\n"
"""A comment, which tells whether the reader is still there."""


def answer_events(index: IndexService, started: AskProgress) -> Response:
    """Return an answer as events: `sources`, `text` for each sentence, and `done`, or `error` if the index fails.

    `sources` comes again if better ones are found before the first sentence.

    `sources` and `done` have a `GroundedAnswer`, `text` an `AnswerSentence`. If the reader leaves, the answer is cancelled.
    """
    return event_stream(_events(index, started))


def _events(index: IndexService, started: AskProgress) -> Iterator[bytes]:
    yield _event("sources", started.result)
    try:
        with closing(progress_of(index, started)) as parts:
            for progress in parts:
                for sentence in progress.answer:
                    yield _event("text", sentence)
                if progress.result is not None:
                    yield _event("done" if progress.done else "sources", progress.result)
                elif not progress.answer:
                    yield _STILL_HERE
    except SemanticError as error:
        yield _event("error", error_facts(error.code, str(error)))


def _event(name: str, content: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(content))
