"""When pages that the model failed on are tried again: after a minute, then after twice as long each time."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_SECONDS = 60.0
_LONGEST_SECONDS = 3600.0
_LONGEST_WITHOUT_SERVER_SECONDS = 300.0
"""For a model whose server cannot be reached: pages are not to blame."""


class Finishing:
    """The moments at which unfinished pages are tried again."""

    def __init__(self) -> None:
        self._seconds = _FIRST_SECONDS
        self._not_before = 0.0

    @property
    def is_due(self) -> bool:
        """Whether they may be tried again now."""
        return time.monotonic() >= self._not_before

    def tried(self, *, is_left: bool, is_unreachable: bool) -> None:
        """Note that a sync has ended: whether it left unfinished pages, and whether the model could not be reached."""
        self._not_before = time.monotonic() + self._seconds
        longest = _LONGEST_WITHOUT_SERVER_SECONDS if is_unreachable else _LONGEST_SECONDS
        self._seconds = min(2 * self._seconds, longest) if is_left else _FIRST_SECONDS


class Breaker:
    """Keeps people from waiting for a server that has just failed: for some seconds it is not asked."""

    def __init__(self, seconds: float = 10) -> None:
        self._seconds = seconds
        self._until = float("-inf")

    def trip(self, now: float) -> None:
        """Ask no more from now on."""
        self._until = now + self._seconds

    def reset(self) -> None:
        """Ask again."""
        self._until = float("-inf")

    def is_open(self, now: float) -> bool:
        """Tell whether nobody is to be asked now."""
        return now < self._until


class Cooldown:
    """A pause of some seconds, in which something is not tried again."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self.reset()

    def start(self) -> None:
        """Start the pause now, or again from now on."""
        self._until = self._clock() + self._seconds

    def reset(self) -> None:
        """End the pause."""
        self._until = float("-inf")

    @property
    def is_active(self) -> bool:
        """Whether the pause lasts."""
        return self.seconds_left > 0

    @property
    def seconds_left(self) -> float:
        """How long the pause still lasts; 0 if it is over."""
        return max(0.0, self._until - self._clock())
