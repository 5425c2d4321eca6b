"""A line in the log for each slow search, without its words; when they are many, for some of them."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence

from otterwiki_semantic.logfmt import logfmt
from otterwiki_semantic.records import Answer, SearchOptions

LINES_A_MINUTE = 10
_MINUTE = 60.0

log = logging.getLogger(__name__)


class SlowSearches:
    """Logs the searches that take `milliseconds` or longer, at most ten in a minute; then says how many were left out."""

    def __init__(self, milliseconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._milliseconds = milliseconds
        self._clock = clock
        self._lock = threading.Lock()
        self._minute_began = -math.inf
        self._lines = 0
        self._left_out = 0

    def searched(self, answers: Sequence[Answer], options: SearchOptions, seconds: float) -> None:
        """Look at the answers of a request that took so long; each of several questions is taken for an equal share of it."""
        milliseconds = 1000 * seconds / len(answers)
        if milliseconds < self._milliseconds:
            return
        left_out = self._leave()
        if left_out is None:
            return
        facts = logfmt(
            "slow_search",
            milliseconds=round(milliseconds, 1),
            mode=options.mode.value,
            n=options.n,
            questions=len(answers),
            results=sum(len(answer.hits) for answer in answers),
            degraded=any(answer.degraded for answer in answers),
            draft=not options.note,
            left_out=left_out,
        )
        log.info("a search took %.0f ms; %s", milliseconds, facts)

    def _leave(self) -> int | None:
        """Give how many were left out since the last line, if there is room for another one in this minute; None if not."""
        with self._lock:
            now = self._clock()
            if now - self._minute_began >= _MINUTE:
                self._minute_began, self._lines = now, 0
            if self._lines >= LINES_A_MINUTE:
                self._left_out += 1
                return None
            self._lines += 1
            left_out, self._left_out = self._left_out, 0
            return left_out
