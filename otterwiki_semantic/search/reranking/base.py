"""Models that score the best chunks of a search by reading each together with the query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from otterwiki_semantic.core.settings import Settings


class Reranker(Protocol):
    """A reranking model. Methods raise `RerankerError`, whose message says what to do and never shows a key."""

    name: str
    """Its provider and model, such as ``cohere:rerank-v3.5``; contains nothing private."""
    is_fast: bool
    """Whether it is used by default; false until its speed is known."""

    def load(self) -> None:
        """Load the model, which may take minutes."""
        ...

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Return one score per text, higher is better; give up soon after `seconds`. Thread-safe."""
        ...

    def close(self) -> None:
        """Release all resources for good."""
        ...


def open_reranker(settings: Settings) -> Reranker | None:
    """Return the configured reranker, or None. Sends no request and loads nothing."""
    from otterwiki_semantic.search.reranking.cohere import CohereReranker
    from otterwiki_semantic.search.reranking.cross_encoder import CrossEncoderReranker

    if settings.reranker is None:
        return None
    provider, _, model = settings.reranker.partition(":")
    if provider == "cohere":
        return CohereReranker(model, settings.reranker_url, settings.reranker_key)
    return CrossEncoderReranker(model)
