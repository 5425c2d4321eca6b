"""How similarly two names are spelled: suggestions for a mistyped one."""

from __future__ import annotations

from collections.abc import Mapping

from otterwiki_semantic.content.analysis.tokenizer import fold

_MAX_CHARACTERS = 80
"""Characters of a name that are compared."""
_LENGTH = 3


def trigram_similarity(one: str, other: str) -> float:
    """Return how similarly two names are spelled, 0 to 1: the share of trigrams they have in common (Dice, 1945)."""
    return _dice(_trigrams(one), _trigrams(other))


def nearest_names(name: str, others: Mapping[str, str], limit: int, min_similarity: float) -> list[str]:
    """Return the values of the keys that are spelled most like `name`, best first."""
    wanted = _trigrams(name)
    ranked = sorted((-_dice(wanted, _trigrams(key)), value) for key, value in others.items())
    return list(dict.fromkeys(value for score, value in ranked if -score >= min_similarity))[:limit]


def _trigrams(name: str) -> frozenset[str]:
    padded = f"  {fold(name[:_MAX_CHARACTERS])} "
    return frozenset(padded[start : start + _LENGTH] for start in range(len(padded) - _LENGTH + 1))


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))
