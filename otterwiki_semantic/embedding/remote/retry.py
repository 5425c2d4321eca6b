"""Asking a server that may be busy, slow or down: again and again, but not for longer than whoever waits for the answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from otterwiki_semantic.core.http import ProviderError

T = TypeVar("T")
_LONGEST_PAUSE = 30.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait for one answer, how often to ask again, and how long all of it may take (in seconds)."""

    answer: float
    retries: int
    total: float
    first_pause: float


AT_LEISURE = RetryPolicy(answer=60, retries=3, total=float("inf"), first_pause=1)
ASKED_WHAT_IT_IS = RetryPolicy(answer=30, retries=0, total=float("inf"), first_pause=0)
"""While a server is asked what its model is HEAD is not followed, and it is asked again soon; a model may have to be loaded."""
TRYING_ITS_WINDOW = RetryPolicy(answer=60, retries=0, total=float("inf"), first_pause=0)
"""That is done once, with the longest texts of all."""
SOMEBODY_WAITS = RetryPolicy(answer=2.4, retries=1, total=5, first_pause=0.1)


@dataclass(frozen=True, slots=True)
class Pace:
    """The clock and the chance that pauses come from: up to twice as long after each failure, drawn at random."""

    jitter: Callable[[float, float], float] = random.uniform
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


def ask_persistently(ask: Callable[[float], T], patience: RetryPolicy, pace: Pace, until: float) -> T:
    """Give the answer of `ask`, which is told how many seconds it has, none after the moment `until` of the pace's clock.

    Errors: `ProviderError`, the last one.
    """
    for attempt in count():
        left = until - pace.clock()
        if left <= 0:
            raise ProviderError(None, f"no answer within {patience.total:.0f} s")
        try:
            return ask(min(patience.answer, left))
        except ProviderError as refusal:
            pause = _pause(refusal, attempt, patience, pace)
            is_over = pace.clock() + pause >= until
            if not refusal.is_passing or attempt >= patience.retries or is_over:
                raise
        pace.sleep(pause)
    raise AssertionError


def _pause(refusal: ProviderError, attempt: int, patience: RetryPolicy, pace: Pace) -> float:
    if refusal.retry_after is not None:
        return min(refusal.retry_after, _LONGEST_PAUSE)
    return pace.jitter(0, min(patience.first_pause * 2**attempt, _LONGEST_PAUSE))
