"""Opens the embedding model that the settings name."""

from __future__ import annotations

from otterwiki_semantic.config import Settings
from otterwiki_semantic.embedding import Embedder
from otterwiki_semantic.embedding.minilm_model import MiniLM


def open_embedder(settings: Settings) -> Embedder:
    """Give the model of the settings; nobody is asked yet."""
    return MiniLM(threads=settings.threads or None)
