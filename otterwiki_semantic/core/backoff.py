"""Delays before a retry: a fixed pause, or exponential backoff."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

Clock = Callable[[], float]


class Cooldown:
    """A pause before something may be done again, such as after a failure (as in a circuit breaker). Initially inactive."""

    def __init__(self, seconds: float, clock: Clock | None = None) -> None:
        self._seconds = seconds
        self._clock = clock or time.monotonic
        self._end = -math.inf

    def start(self, seconds: float | None = None) -> None:
        """Pause for `seconds` from now on, by default this cooldown's own, replacing any pause in progress."""
        self._end = self._clock() + (self._seconds if seconds is None else seconds)

    def stop(self) -> None:
        """End the pause."""
        self._end = -math.inf

    @property
    def remaining(self) -> float:
        """Seconds left of the pause; 0 if it is over."""
        return max(0.0, self._end - self._clock())

    @property
    def is_active(self) -> bool:
        return self.remaining > 0


class Backoff:
    """Exponential backoff: a pause of `first` seconds after a failure, twice as long after each further one."""

    def __init__(self, first: float, longest: float, clock: Clock | None = None) -> None:
        self._first = self._next = first
        self._longest = longest
        self._cooldown = Cooldown(first, clock)

    @property
    def is_due(self) -> bool:
        """Whether the pause after the last failure is over."""
        return not self._cooldown.is_active

    def failed(self, longest: float | None = None) -> float:
        """Start the next pause and return its seconds: at most `longest`, by default this backoff's own maximum."""
        pause = min(self._next, self._longest if longest is None else longest)
        self._next = 2 * pause
        self._cooldown.start(pause)
        return pause

    def reset(self) -> None:
        """End the pause; the next failure counts as the first one."""
        self._next = self._first
        self._cooldown.stop()
