from __future__ import annotations

from tests.support.fixtures import handbook, model, settings

__all__ = ["handbook", "model", "settings"]
