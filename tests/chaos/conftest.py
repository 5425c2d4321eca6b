from __future__ import annotations

from tests.support.fixtures import model

__all__ = ["model"]
