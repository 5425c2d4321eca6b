"""Models that read the best candidates of a search again, each together with the query, and say how well it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from otterwiki_semantic.core.settings import Settings


class Reranker(Protocol):
    """A reranking model. Errors of its methods: `RerankerError`, whose text says what to do, and never shows a key."""

    @property
    def name(self) -> str:
        """Its provider and model, such as ``cohere:rerank-v3.5``; nothing in it is private."""
        ...

    @property
    def is_fast(self) -> bool:
        """Whether it is used when nobody said; false until that is known."""
        ...

    def load(self) -> None:
        """Make it ready; that may take minutes."""
        ...

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Give one score a text, the higher the better; gives up soon after so many seconds. Several threads may ask."""
        ...

    def close(self) -> None:
        """Let go of what it holds, for good."""
        ...


def open_reranker(settings: Settings) -> Reranker | None:
    """Give the reranker that is configured, None if none is; asks nobody and loads nothing."""
    from otterwiki_semantic.search.reranking.cohere import CohereReranker
    from otterwiki_semantic.search.reranking.cross_encoder import CrossEncoderReranker

    if settings.reranker is None:
        return None
    provider, _, model = settings.reranker.partition(":")
    if provider == "cohere":
        return CohereReranker(model, settings.reranker_url, settings.reranker_key)
    return CrossEncoderReranker(model)
