"""A time limit for calls without a reliable one of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def call_with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Return or raise the outcome of `call`, which continues in its thread after `seconds`. Errors: `TimeoutError`."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            outcome.set_exception(error)

    Thread(target=run, name="call-with-timeout", daemon=True).start()
    return outcome.result(seconds)
