"""A time limit for calls that have none of their own, or none that can be relied on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def call_with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Return what `call` returns, or raise what it raises; `TimeoutError` after `seconds`.

    A call that takes longer continues in its own thread, which does not keep the process from ending.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            outcome.set_exception(error)

    Thread(target=run, name="call-with-timeout", daemon=True).start()
    return outcome.result(seconds)
