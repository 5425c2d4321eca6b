from __future__ import annotations

from tests.support.fixtures import chroma, handbook, model, settings, shared_chroma

__all__ = ["chroma", "handbook", "model", "settings", "shared_chroma"]
