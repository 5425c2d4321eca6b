"""Answers that are fetched while they are written."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import AskProgress, GroundedAnswer
from otterwiki_semantic.daemon.interface import IndexService


def progress_of(index: IndexService, started: AskProgress) -> Generator[AskProgress]:
    """Yield what is new of an answer, at least once a second, last all of it. If the caller stops, the answer is cancelled.

    Errors: those of the index.
    """
    seen, is_done = 0, False
    try:
        while not is_done:
            progress = index.ask_progress(started.id, seen)
            seen, is_done = seen + len(progress.answer), progress.done
            yield progress
    finally:
        if not is_done:
            with suppress(SemanticError):
                index.cancel_ask(started.id)


def whole_answer(index: IndexService, started: AskProgress) -> GroundedAnswer:
    """Wait for the end of an answer, and return it. Errors: those of the index."""
    *_, last = progress_of(index, started)
    assert last.result is not None
    return last.result
