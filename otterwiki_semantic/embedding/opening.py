"""The embedding model that the settings name."""

from __future__ import annotations

from otterwiki_semantic.config import BUNDLED, Settings
from otterwiki_semantic.embedding import Embedder
from otterwiki_semantic.errors import ModelError


def open_embedder(settings: Settings) -> Embedder:
    """Give the model; making one asks nobody anything."""
    from otterwiki_semantic.embedding.minilm_model import MiniLM

    if settings.model != BUNDLED:
        raise ModelError(f"there is no model {settings.model}")
    return MiniLM(threads=settings.threads or None)
