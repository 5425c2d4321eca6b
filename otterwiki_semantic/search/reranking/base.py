"""Models that score the best chunks of a search by reading each together with the query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from otterwiki_semantic.core.settings import Settings


class Reranker(Protocol):
    """A reranking model. Errors of its methods: `RerankerError`, whose text says what to do and never shows a key."""

    name: str
    """Its provider and model, such as ``cohere:rerank-v3.5``, without anything private."""
    is_fast: bool
    """Whether it is used by default; false until that is known."""

    def load(self) -> None:
        """Make it ready, which may take minutes."""
        ...

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Return one score per text, the higher the better; give up soon after `seconds`. Several threads may call it."""
        ...

    def close(self) -> None:
        """Release what it holds, for good."""
        ...


def open_reranker(settings: Settings) -> Reranker | None:
    """Return the configured reranker, if there is one; asks no server and loads nothing."""
    from otterwiki_semantic.search.reranking.cohere import CohereReranker
    from otterwiki_semantic.search.reranking.cross_encoder import CrossEncoderReranker

    if settings.reranker is None:
        return None
    provider, _, model = settings.reranker.partition(":")
    if provider == "cohere":
        return CohereReranker(model, settings.reranker_url, settings.reranker_key)
    return CrossEncoderReranker(model)
