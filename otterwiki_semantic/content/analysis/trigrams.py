"""Names that are spelled like another one, for who mistyped it."""

from __future__ import annotations

from collections.abc import Mapping

from otterwiki_semantic.content.analysis.tokenizer import fold

_LONGEST = 80
"""Characters of a name that are compared."""
_RUN = 3


def trigram_similarity(one: str, other: str) -> float:
    """Give how alike two names are spelled, 0 to 1: what they share of their runs of three characters (Dice, 1945)."""
    return _share(_runs(one), _runs(other))


def nearest_names(name: str, others: Mapping[str, str], most: int, least: float) -> list[str]:
    """Give the values of those keys that are spelled most like a name, best first: at most so many, and at least so alike."""
    wanted = _runs(name)
    scored = ((_share(wanted, _runs(key)), value) for key, value in others.items())
    ranked = sorted(((score, value) for score, value in scored if score >= least), key=lambda item: (-item[0], item[1]))
    return list(dict.fromkeys(value for _, value in ranked))[:most]


def _runs(name: str) -> frozenset[str]:
    padded = f"  {fold(name[:_LONGEST])} "
    return frozenset(padded[start : start + _RUN] for start in range(len(padded) - _RUN + 1))


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))
