"""The reranking stage: a reranker reads the best candidates of a search.

It holds neither a snapshot of the catalog nor a search slot meanwhile, so that a slow reranker delays only the searches that
use it. Scores belong to the texts of chunks, so that a sync in between does no harm.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from msgspec import structs

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import RerankerError
from otterwiki_semantic.core.records import Answer, Mode, SearchOptions, Sort
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.telemetry import Failure, Telemetry
from otterwiki_semantic.search.pipeline import RerankScores, Shortlist

NONE_CONFIGURED = "the answer is not reranked: no reranker is configured; set SEMANTIC_RERANKER"
_TIMEOUT = 2.0
"""Seconds for all questions of one search together."""
_PAUSE_SECONDS = 30.0
"""How long the reranker is not used after a failure."""
_CONCURRENCY = 4
_MAX_CHARACTERS = 4_000
"""Characters per text. A chunk of 150 words has about 1,000, and most rerankers read about 2,000."""

log = logging.getLogger(__name__)


class Reranker(Protocol):
    """A reranking model. Methods raise `RerankerError`, whose message says what to do and never shows a key."""

    name: str
    """Its provider and model, such as ``cohere:rerank-v3.5``; contains nothing private."""
    is_fast: bool
    """Whether it is used by default; false until its speed is known."""

    def load(self) -> None:
        """Load the model, which may take minutes."""

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Return one score per text, higher is better; give up soon after `seconds`. Thread-safe."""

    def close(self) -> None:
        """Release all resources for good."""


def open_reranker(settings: Settings) -> Reranker | None:
    """Return the configured reranker, or None. Sends no request and loads nothing."""
    from otterwiki_semantic.search.reranking.cohere import CohereReranker
    from otterwiki_semantic.search.reranking.cross_encoder import CrossEncoderReranker

    if settings.reranker is None:
        return None
    provider, _, model = settings.reranker.partition(":")
    if provider == "cohere":
        return CohereReranker(model, settings.reranker_url, settings.reranker_key)
    return CrossEncoderReranker(model, settings.device)


@dataclass(frozen=True, slots=True)
class Reranking:
    """The outcome for one query."""

    scores: RerankScores = field(default_factory=dict)
    """Empty if there was nothing to order, or the reranker failed."""
    failure: str | None = None
    """Why the requested scores are missing."""
    reranker: str | None = None

    def applied_to(self, answer: Answer) -> Answer:
        """Return an answer that names the reranker, or the reason why it was not used."""
        degraded = "; ".join(filter(None, (answer.degraded, self.failure))) or None
        return structs.replace(answer, degraded=degraded, reranker=self.reranker if self.scores else None)


class RerankStage:
    """Rerank searches, at most two seconds each. A reranker is loaded in the background, and pauses after a failure."""

    def __init__(self, reranker: Reranker | None, telemetry: Telemetry) -> None:
        self.name = reranker.name if reranker else None
        self.error: RerankerError | None = None
        """The reranker's last failure; None if it works, or there is none."""
        self._reranker = reranker
        self._telemetry = telemetry
        self._deciding = Lock()
        self._threads = ThreadPoolExecutor(_CONCURRENCY, "reranking")
        self._loading: Future[None] | None = None
        self._is_loaded = False
        self._cooldown = Cooldown(_PAUSE_SECONDS)

    @property
    def is_loading(self) -> bool:
        """Whether the reranker is loading."""
        return self._loading is not None and not self._loading.done()

    def start(self) -> None:
        """Start loading the reranker in the background."""
        if self._reranker is not None:
            self._loading = self._threads.submit(self._load, self._reranker)

    def close(self) -> None:
        """Stop using the reranker; does not wait for requests in progress."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._reranker is not None:
            self._reranker.close()

    def is_wanted(self, options: SearchOptions) -> bool:
        """Whether to rerank a search: on request, or by default if the reranker is fast."""
        if self._reranker is None or options.sort is not Sort.RELEVANCE:
            return False
        if options.rerank is None:
            return self._reranker.is_fast and options.mode is Mode.HYBRID and not options.draft
        return options.rerank

    def rerank(self, queries: Sequence[str], shortlists: Sequence[Shortlist], options: SearchOptions) -> list[Reranking]:
        """Return the scores of each query's shortlist, if the search is reranked."""
        if not self.is_wanted(options):
            return [Reranking(failure=NONE_CONFIGURED if options.rerank and self._reranker is None else None) for _ in queries]
        rerankable = [at for at, shortlist in enumerate(shortlists) if len(shortlist) > 1 and queries[at].strip()]
        scored = self.scores([(queries[at], list(shortlists[at].values())) for at in rerankable])
        found = [Reranking(reranker=self.name) for _ in queries]
        for at, scores in zip(rerankable, scored, strict=True):
            if isinstance(scores, RerankerError):
                found[at] = Reranking(failure=f"the answer is not reranked: {scores}")
            else:
                found[at] = Reranking(dict(zip(shortlists[at], scores, strict=True)), reranker=self.name)
        return found

    def scores(self, questions: Sequence[tuple[str, Sequence[str]]]) -> list[list[float] | RerankerError]:
        """Return for each query and its texts one score per text, higher is better, or why there are none."""
        with self._deciding:
            refusal = self._refusal()
        if refusal is not None:
            return [refusal for _ in questions]
        deadline = time.monotonic() + _TIMEOUT
        pending = [self._threads.submit(self._ask, query, texts, deadline) for query, texts in questions]
        found = [self._result(future, deadline) for future in pending]
        failures = [each for each in found if isinstance(each, RerankerError)]
        if failures and len(failures) == len(found):
            self._fail(failures[0])
        elif found:
            self.error = None
            if failures:
                self._telemetry.record_failure(Failure.RERANKER)
        return found

    def _refusal(self) -> RerankerError | None:
        """Return why the reranker cannot be used now. Starts loading it if that is the reason."""
        if not self.is_loading:
            if self.error is not None and self._cooldown.is_active:
                return self.error
            if self._is_loaded:
                return None
            self.start()
        return RerankerError(f"{self.name} is being loaded; try again in a while")

    def _ask(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        assert self._reranker is not None
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise self._timeout()
        scores = self._reranker.scores(query, [text[:_MAX_CHARACTERS] for text in texts], seconds)
        if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
            raise RerankerError(f"{self.name} gives scores that make no sense; set SEMANTIC_RERANKER to another model")
        return scores

    def _result(self, future: Future[list[float]], deadline: float) -> list[float] | RerankerError:
        try:
            error = future.exception(max(0.0, deadline - time.monotonic()))
        except (TimeoutError, CancelledError):
            future.cancel()
            return self._timeout()
        return future.result() if error is None else self._known(error)

    def _timeout(self) -> RerankerError:
        return RerankerError(f"{self.name} did not answer within {_TIMEOUT:g} s; make sure that it runs, or use a faster one")

    def _known(self, error: BaseException) -> RerankerError:
        if isinstance(error, RerankerError):
            return error
        log.error("%s failed", self.name, exc_info=error)
        return RerankerError(f"{self.name} failed ({type(error).__name__}); see owner.log")

    def _load(self, reranker: Reranker) -> None:
        try:
            reranker.load()
        except Exception as error:  # noqa: BLE001 - reported to searches
            self._fail(self._known(error))
        else:
            self.error, self._is_loaded = None, True

    def _fail(self, error: RerankerError) -> None:
        if self.error is None:
            log.warning("%s; answers are not reranked meanwhile", error)
        self._telemetry.record_failure(Failure.RERANKER)
        self._cooldown.start()
        self.error = error
