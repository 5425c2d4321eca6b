"""Retries with backoff, bounded by the caller's deadline."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import tenacity

from otterwiki_semantic.core.http import ProviderError, ProviderTimeoutError
from otterwiki_semantic.embedding.remote.provider import is_temporary

T = TypeVar("T")
_LONGEST_PAUSE = 30.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits for retries; times in seconds."""

    timeout: float
    retries: int
    first_pause: float = 0
    """The longest pause before the first retry. The limit doubles with each further retry; each pause is randomised."""
    total: float = math.inf

    def deadline(self) -> float:
        """Return the deadline of a request that starts now, in the time of `time.monotonic`."""
        return time.monotonic() + self.total


INDEXING = RetryPolicy(timeout=60, retries=3, first_pause=1)
IDENTIFICATION = RetryPolicy(timeout=30, retries=3, first_pause=1, total=60)
"""As patient as indexing, within a minute in which HEAD is not followed. A model may have to be loaded."""
WINDOW_PROBE = RetryPolicy(timeout=60, retries=0)
"""A single probe, with the longest texts of all."""
INTERACTIVE = RetryPolicy(timeout=2.4, retries=1, first_pause=0.1, total=5)
INTERACTIVE_BATCH = replace(INTERACTIVE, timeout=4.8)
"""For several queries, which a slow server embeds one after the other."""


def call_with_retries(call: Callable[[float], T], policy: RetryPolicy, deadline: float) -> T:
    """Return the result of `call`, given the seconds it may take. Raises the last `ProviderError`, and other errors at once."""

    def attempt() -> T:
        left = deadline - time.monotonic()
        if left <= 0:
            raise ProviderTimeoutError(policy.total)
        return call(min(policy.timeout, left))

    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_temporary),
        wait=_pause(policy),
        stop=tenacity.stop_after_attempt(policy.retries + 1) | tenacity.stop_before_delay(deadline - time.monotonic()),
        reraise=True,
    )
    return attempts(attempt)


def _pause(policy: RetryPolicy) -> Callable[[tenacity.RetryCallState], float]:
    """Pause for as long as the server requests, or else for a random and growing time."""
    growing = tenacity.wait_random_exponential(multiplier=policy.first_pause, max=_LONGEST_PAUSE)

    def pause(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, ProviderError) and error.retry_after is not None:
            return min(error.retry_after, _LONGEST_PAUSE)
        return growing(state)

    return pause
