"""Answers that are fetched while they are written."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress

from msgspec import structs

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import AskProgress, GroundedAnswer
from otterwiki_semantic.daemon.interface import IndexService


def progress_of(
    index: IndexService, started: AskProgress, has_enough: Callable[[], str | None] = lambda: None
) -> Generator[AskProgress]:
    """Yield what is new of an answer, at least once a second, last all of it. If the caller stops, the answer is cancelled.

    It is also cancelled when the reader `has_enough`: then the last is what was written until then, with that reason.
    Errors: those of the index.
    """
    answer, is_done = started.result, False
    assert answer is not None
    try:
        while not is_done:
            if reason := has_enough():
                yield AskProgress(started.id, result=structs.replace(answer, message=reason), done=True)
                return
            progress = index.ask_progress(started.id, len(answer.answer))
            answer = progress.result or structs.replace(answer, answer=(*answer.answer, *progress.answer))
            is_done = progress.done
            yield progress
    finally:
        if not is_done:
            with suppress(SemanticError):
                index.cancel_ask(started.id)


def whole_answer(
    index: IndexService, started: AskProgress, has_enough: Callable[[], str | None] = lambda: None
) -> GroundedAnswer:
    """Wait for the end of an answer, or until the reader `has_enough`, and return it. Errors: those of the index."""
    *_, last = progress_of(index, started, has_enough)
    assert last.result is not None
    return last.result
