"""A search whose best candidates are read again: it is asked for them, then, for the order in which they were read.

Nothing is held between the two, neither a state of the catalog nor a place among the searches: a reranker that is slow slows
nobody but who asked it. What it gave is told by the passages' texts, so that a sync between the two does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from otterwiki_semantic.core.errors import RerankerError
from otterwiki_semantic.core.records import Answer, Mode, SearchOptions
from otterwiki_semantic.core.telemetry import Failure, Telemetry
from otterwiki_semantic.search.pipeline import RerankScores, Shortlist
from otterwiki_semantic.search.reranking.bounded import BoundedReranker, Question

Ask = Callable[[Sequence[RerankScores]], list[tuple[Answer, Shortlist]] | None]
"""Answers the queries, with what is known of each one's candidates; None if there is nothing to ask."""
NONE_CONFIGURED = "the answer is not reranked: no reranker is configured; set SEMANTIC_RERANKER"


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read for a query (nothing, if there is nothing to put in order), or why it was not."""

    scores: RerankScores = field(default_factory=dict)
    trouble: str | None = None


class RerankStage:
    """Lets a reranker, where there is one, read the candidates of those searches that want it."""

    def __init__(self, reranker: BoundedReranker | None, watcher: Telemetry) -> None:
        self._reranker = reranker
        self._watcher = watcher
        self._counted: RerankerError | None = None
        self.name = reranker.name if reranker else None

    @property
    def is_loading(self) -> bool:
        """Whether the reranker is not there yet."""
        return self._reranker is not None and self._reranker.is_loading

    @property
    def error(self) -> RerankerError | None:
        """Why the reranker was of no use when it was asked last; None if it was, or there is none."""
        return self._reranker.error if self._reranker else None

    def start(self) -> None:
        """Begin to load the reranker."""
        if self._reranker is not None:
            self._reranker.load()

    def close(self) -> None:
        """Ask the reranker no more."""
        if self._reranker is not None:
            self._reranker.close()

    def is_wanted(self, options: SearchOptions) -> bool:
        """Tell whether a search is reranked: if it says so, else if that is fast and the ranking is left to us."""
        if self._reranker is None:
            return False
        if options.rerank is None:
            return self._reranker.is_fast and options.mode is Mode.HYBRID
        return options.rerank

    def answers(self, queries: Sequence[str], options: SearchOptions, ask: Ask) -> list[Answer] | None:
        """Give the answers to queries as `ask` gives them, reranked if that is wanted; None if it gives none."""
        first = ask([{} for _ in queries])
        if first is None:
            return None
        if self._reranker is None or not self.is_wanted(options):
            trouble = NONE_CONFIGURED if options.rerank and self._reranker is None else None
            return [_told(answer, trouble) for answer, _ in first]
        read = self._read(self._reranker, queries, [shortlist for _, shortlist in first])
        last = (ask([each.scores for each in read]) if any(each.scores for each in read) else None) or first
        return [
            replace(_told(answer, each.trouble), reranker=self._reranker.name if each.scores else None)
            for (answer, _), each in zip(last, read, strict=True)
        ]

    def _read(self, reranker: BoundedReranker, queries: Sequence[str], shortlists: Sequence[Shortlist]) -> list[_Read]:
        worth = [place for place, listed in enumerate(shortlists) if len(listed) > 1 and queries[place].strip()]
        given = reranker.scores([Question(queries[place], list(shortlists[place].values())) for place in worth])
        self._count_failure(reranker, [each for each in given if isinstance(each, RerankerError)], len(given))
        read = [_Read() for _ in queries]
        for place, scores in zip(worth, given, strict=True):
            if isinstance(scores, RerankerError):
                read[place] = _Read(trouble=f"the answer is not reranked: {scores}")
            else:
                read[place] = _Read(dict(zip(shortlists[place], scores, strict=True)))
        return read

    def _count_failure(self, reranker: BoundedReranker, failures: Sequence[RerankerError], asked: int) -> None:
        """Count a search that it failed; not again while it is left alone after that, and not while it is being loaded."""
        failure = reranker.error if len(failures) == asked else failures[0] if failures else None
        if failure is not None and failure is not self._counted:
            self._counted = failure
            self._watcher.failed(Failure.RERANKER)


def _told(answer: Answer, trouble: str | None) -> Answer:
    """Give an answer that says, if something kept it from being reranked, what that was."""
    return replace(answer, degraded="; ".join(filter(None, (answer.degraded, trouble)))) if trouble else answer
