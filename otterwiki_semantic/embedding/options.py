"""Options of a provider, from SEMANTIC_MODEL_OPTIONS."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.settings import Settings


def model_options(settings: Settings) -> dict[str, Any]:
    """Return the options by name."""
    options: dict[str, Any] = json.loads(settings.model_options)
    return options


def check_known(options: Mapping[str, Any], allowed: Collection[str], provider: str) -> None:
    """Raise `ModelError` for options that the provider does not know; the message lists the allowed options."""
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        known = ", ".join(sorted(allowed)) or "none"
        raise ModelError(f"SEMANTIC_MODEL_OPTIONS has {', '.join(unknown)}, which {provider} does not take; allowed: {known}")


def check_not_reserved(options: Mapping[str, Any], reserved: Collection[str]) -> None:
    """Raise `ModelError` for options that are set elsewhere."""
    found = sorted(set(options) & set(reserved))
    if found:
        raise ModelError(
            f"SEMANTIC_MODEL_OPTIONS may not have {', '.join(found)}: this is decided by other settings, or by this program"
        )
