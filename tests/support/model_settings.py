"""Settings that name a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from otterwiki_semantic.core.settings import Settings


def settings_in(place: Path, model: str, **told: object) -> Settings:
    return replace(Settings(place / "repository", place / "index", model=model), **told)  # type: ignore[arg-type]
