"""What a provider is told beside the model's name: SEMANTIC_MODEL_OPTIONS, taken apart and checked by name."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.settings import Settings


def options_of(settings: Settings) -> dict[str, Any]:
    """Give the options by name."""
    options: dict[str, Any] = json.loads(settings.model_options)
    return options


def check_names(options: Mapping[str, Any], allowed: Collection[str], provider: str) -> None:
    """See that options have names that a provider knows. Errors: `ModelError`, with those that are allowed."""
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        known = ", ".join(sorted(allowed)) or "none"
        raise ModelError(f"SEMANTIC_MODEL_OPTIONS has {', '.join(unknown)}, which {provider} does not take; allowed: {known}")


def check_free(options: Mapping[str, Any], taken: Collection[str]) -> None:
    """See that options do not say what is said already. Errors: `ModelError`."""
    twice = sorted(set(options) & set(taken))
    if twice:
        raise ModelError(
            f"SEMANTIC_MODEL_OPTIONS may not have {', '.join(twice)}: other settings, or this program, decide that"
        )
