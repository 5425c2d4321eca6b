from __future__ import annotations

from tests.support.fixtures import chat, chroma, handbook, model, settings, shared_chroma

__all__ = ["chat", "chroma", "handbook", "model", "settings", "shared_chroma"]
