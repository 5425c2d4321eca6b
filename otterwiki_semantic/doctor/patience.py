"""Waiting for an answer, but not for ever."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, question: Callable[[], T]) -> T:
    """Give the answer of `question`, or its error.

    `TimeoutError` if it takes longer: it goes on by itself, and does not keep the process from ending.
    """
    answer: Future[T] = Future()

    def ask() -> None:
        try:
            answer.set_result(question())
        except BaseException as error:  # noqa: BLE001 - told to the thread that waits
            answer.set_exception(error)

    Thread(target=ask, name="doctor", daemon=True).start()
    return answer.result(seconds)
