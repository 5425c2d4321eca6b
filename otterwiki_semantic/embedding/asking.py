"""Asking a server that may be busy, slow or down: again and again, but not for longer than whoever waits for the answer."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
_LONGEST_PAUSE = 30.0
_PASSING = frozenset({408, 409, 425, 429})
_TOO_LONG = re.compile(
    r"maximum context|context (length|size|window)|(input|text|prompt|sequence|document)s?\b.{0,40} too (long|large|big)"
    r"|too many tokens|(must have )?less than \d+ tokens|max(imum)?[ _](input|sequence|token)|token limit|physical batch size"
    r"|exceed.{0,40}(tokens?|length)\b",
    re.IGNORECASE,
)
_TOO_MANY = re.compile(
    r"batch size \d|maximum (allowed )?batch|too many (inputs|texts|documents)|array too long", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for one answer, how often to ask again, and how long all of it may take (in seconds)."""

    answer: float
    retries: int
    total: float
    first_pause: float


AT_LEISURE = Patience(answer=60, retries=3, total=float("inf"), first_pause=1)
ASKED_WHAT_IT_IS = Patience(answer=30, retries=0, total=float("inf"), first_pause=0)
"""While a server is asked what its model is HEAD is not followed, and it is asked again soon; a model may have to be loaded."""
TRYING_ITS_WINDOW = Patience(answer=60, retries=0, total=float("inf"), first_pause=0)
"""That is done once, with the longest texts of all."""
SOMEBODY_WAITS = Patience(answer=2.4, retries=1, total=5, first_pause=0.1)


@dataclass(frozen=True, slots=True)
class Pace:
    """The clock and the chance that pauses come from: up to twice as long after each failure, drawn at random."""

    jitter: Callable[[float, float], float] = random.uniform
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


class Refusal(Exception):  # noqa: N818 - no answer for a person yet: whoever asked makes an error of it
    """A server did not give what it was asked for: its HTTP `status` (None: no answer came), why, and when to come again.

    `reason` is in our words, `said` in the server's: these may repeat a key or a text, and are shown by `quote` alone.
    """

    def __init__(self, status: int | None, reason: str, retry_after: float | None = None, *, said: str = "") -> None:
        super().__init__(status, reason)
        self.status, self.reason, self.retry_after, self.said = status, reason, retry_after, said

    @property
    def is_too_many(self) -> bool:
        """Whether fewer texts would be taken."""
        return self.status in {400, 413, 422} and _TOO_MANY.search(self.said) is not None

    @property
    def is_too_long(self) -> bool:
        """Whether a shorter text would be taken."""
        if self.is_too_many or self.status not in {400, 413, 422, 500}:
            return False
        return self.status == 413 or _TOO_LONG.search(self.said) is not None

    @property
    def is_passing(self) -> bool:
        """Whether the same may be answered later."""
        if self.is_too_many or self.is_too_long:
            return False
        return self.status is None or self.status in _PASSING or self.status >= 500


def ask_persistently(ask: Callable[[float], T], patience: Patience, pace: Pace, until: float) -> T:
    """Give the answer of `ask`, which is told how many seconds it has, none after the moment `until` of the pace's clock.

    Errors: `Refusal`, the last one.
    """
    for attempt in count():
        left = until - pace.clock()
        if left <= 0:
            raise Refusal(None, f"no answer within {patience.total:.0f} s")
        try:
            return ask(min(patience.answer, left))
        except Refusal as refusal:
            pause = _pause(refusal, attempt, patience, pace)
            is_over = pace.clock() + pause >= until
            if not refusal.is_passing or attempt >= patience.retries or is_over:
                raise
        pace.sleep(pause)
    raise AssertionError


def _pause(refusal: Refusal, attempt: int, patience: Patience, pace: Pace) -> float:
    if refusal.retry_after is not None:
        return min(refusal.retry_after, _LONGEST_PAUSE)
    return pace.jitter(0, min(patience.first_pause * 2**attempt, _LONGEST_PAUSE))


def within(seconds: float, ask: Callable[[], Any]) -> Any:
    """Give the answer of `ask`, or refuse after some seconds, whatever it waits for: libraries have a patience of their own."""
    answers: list[Any] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            answers.append(ask())
        except Exception as error:  # noqa: BLE001 - told to the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, name="embedding-request", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise Refusal(None, f"no answer within {seconds:.0f} s")
    return answers[0]


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
