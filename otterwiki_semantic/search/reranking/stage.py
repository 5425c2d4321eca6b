"""The reranking stage: a reranker reads the best candidates of a search.

Neither a state of the catalog nor a search slot is held while it reads, so that a slow reranker delays only those who ask for
it. Its scores belong to the chunks' texts, so that a sync in between does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import structs

from otterwiki_semantic.core.errors import RerankerError
from otterwiki_semantic.core.records import Answer, Mode, SearchOptions
from otterwiki_semantic.core.telemetry import Failure, Telemetry
from otterwiki_semantic.search.pipeline import RerankScores, Shortlist
from otterwiki_semantic.search.reranking.bounded import BoundedReranker, Question

NONE_CONFIGURED = "the answer is not reranked: no reranker is configured; set SEMANTIC_RERANKER"


@dataclass(frozen=True, slots=True)
class Reranking:
    """What a reranker made of the candidates of one query."""

    scores: RerankScores = field(default_factory=dict)
    """Empty if it has read none."""
    failure: str | None = None
    """Why not, if it should have."""
    reranker: str | None = None

    def applied_to(self, answer: Answer) -> Answer:
        """Return an answer that says who ordered it, or why nobody has."""
        degraded = "; ".join(filter(None, (answer.degraded, self.failure))) or None
        return structs.replace(answer, degraded=degraded, reranker=self.reranker if self.scores else None)


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
            return self._reranker.is_fast and options.mode is Mode.HYBRID and not options.draft
        return options.rerank

    def rerank(self, queries: Sequence[str], shortlists: Sequence[Shortlist], options: SearchOptions) -> list[Reranking]:
        """Return the scores of each query's shortlist, if the search is to be reranked."""
        reranker = self._reranker
        if reranker is None or not self.is_wanted(options):
            return [Reranking(failure=NONE_CONFIGURED if options.rerank and reranker is None else None) for _ in queries]
        worth = [at for at, shortlist in enumerate(shortlists) if len(shortlist) > 1 and queries[at].strip()]
        given = reranker.scores([Question(queries[at], list(shortlists[at].values())) for at in worth])
        self._count_failure(reranker, [each for each in given if isinstance(each, RerankerError)], len(given))
        found = [Reranking(reranker=reranker.name) for _ in queries]
        for at, scores in zip(worth, given, strict=True):
            if isinstance(scores, RerankerError):
                found[at] = Reranking(failure=f"the answer is not reranked: {scores}")
            else:
                found[at] = Reranking(dict(zip(shortlists[at], scores, strict=True)), reranker=reranker.name)
        return found

    def _count_failure(self, reranker: BoundedReranker, failures: Sequence[RerankerError], asked: int) -> None:
        """Count a search that it failed; not again while it is left alone after that, and not while it is being loaded."""
        failure = reranker.error if len(failures) == asked else failures[0] if failures else None
        if failure is not None and failure is not self._counted:
            self._counted = failure
            self._watcher.record_failure(Failure.RERANKER)
