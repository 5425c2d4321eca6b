"""A reranker that holds nobody up: loaded in the background, asked for a bounded time, left alone while it fails."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import RerankerError
from otterwiki_semantic.search.reranking.base import Reranker

_ASKED_SECONDS = 2.0
"""How long all the questions of one search may take together."""
_REST_SECONDS = 30.0
_AT_A_TIME = 4
_LONGEST_TEXT = 4_000
"""Characters of a text that are read; a passage of 150 words has about 1,000, and most rerankers take about 2,000."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and the texts that may answer it."""

    query: str
    texts: Sequence[str]


class BoundedReranker:
    """Asks a reranker. `error` is why it was of no use when it was asked last, None if it was."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self.name = reranker.name
        self.error: RerankerError | None = None
        self._deciding = Lock()
        self._threads = ThreadPoolExecutor(_AT_A_TIME, "reranking")
        self._loading: Future[None] | None = None
        self._is_loaded = False
        self._cooldown = Cooldown()

    @property
    def is_fast(self) -> bool:
        """Whether it is used when nobody said."""
        return self._reranker.is_fast

    @property
    def is_loading(self) -> bool:
        """Whether it will soon be known to be of use, or not."""
        return self._loading is not None and not self._loading.done()

    def load(self) -> None:
        """Begin to make it ready, in the background."""
        self._loading = self._threads.submit(self._load)

    def close(self) -> None:
        """Ask it no more; what is under way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._reranker.close()

    def scores(self, questions: Sequence[Question]) -> list[list[float] | RerankerError]:
        """Give for each question a score a text, or why there are none: within two seconds, and at once while it rests."""
        with self._deciding:
            refusal = self._refusal()
        if refusal is not None:
            return [refusal for _ in questions]
        deadline = time.monotonic() + _ASKED_SECONDS
        coming = [self._threads.submit(self._ask, question, deadline) for question in questions]
        found = [self._result(future, deadline) for future in coming]
        failures = [each for each in found if isinstance(each, RerankerError)]
        if len(failures) < len(found):
            self.error = None
        elif failures:
            self._fail(failures[0])
        return found

    def _refusal(self) -> RerankerError | None:
        if self.is_loading:
            return RerankerError(f"{self.name} is being loaded; ask again in a while")
        if self.error is not None and self._cooldown.is_active:
            return self.error
        if not self._is_loaded:
            self.load()
            return RerankerError(f"{self.name} is being loaded; ask again in a while")
        return None

    def _ask(self, question: Question, deadline: float) -> list[float]:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise self._late()
        texts = [text[:_LONGEST_TEXT] for text in question.texts]
        scores = self._reranker.scores(question.query, texts, seconds)
        if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
            raise RerankerError(f"{self.name} gives scores that make no sense; set SEMANTIC_RERANKER to another model")
        return scores

    def _result(self, future: Future[list[float]], deadline: float) -> list[float] | RerankerError:
        try:
            error = future.exception(max(0.0, deadline - time.monotonic()))
        except (TimeoutError, CancelledError):
            future.cancel()
            return self._late()
        return future.result() if error is None else self._known(error)

    def _late(self) -> RerankerError:
        return RerankerError(f"{self.name} did not answer within {_ASKED_SECONDS:g} s; see that it runs, or take a faster one")

    def _known(self, error: BaseException) -> RerankerError:
        if isinstance(error, RerankerError):
            return error
        log.error("%s failed", self.name, exc_info=error)
        return RerankerError(f"{self.name} failed ({type(error).__name__}); see owner.log")

    def _load(self) -> None:
        try:
            self._reranker.load()
        except Exception as error:  # noqa: BLE001 - told to whoever asks
            self._fail(self._known(error))
        else:
            self.error, self._is_loaded = None, True

    def _fail(self, error: RerankerError) -> None:
        if self.error is None:
            log.warning("%s; answers are not reranked meanwhile", error)
        self._cooldown.start(_REST_SECONDS)
        self.error = error
