"""Chunk profiles: the parameters of the chunker, as set in ``SEMANTIC_CHUNKS``, and the choice of a profile for a model."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from enum import StrEnum
from functools import cache
from typing import Any

from otterwiki_semantic.core.errors import ConfigError

CHUNKING_VERSION = 3
"""Increase with every change that produces different chunks from the same text, so that indexes are rebuilt."""
AUTO = "auto"
_LONG_WINDOW = 1_000
_EVERY_LEVEL = 6
_ALWAYS_NAMED = 6
"""Fields in every fingerprint. Others are added by name only if they differ from their defaults, so fingerprints persist."""


class SizeUnit(StrEnum):
    """The unit of a profile's sizes."""

    WORDS = "words"
    CHARACTERS = "characters"


@dataclass(frozen=True, slots=True)
class Profile:
    """The parameters of the chunker. Sizes are in `unit`."""

    name: str = "minilm"
    window: int = 254
    """The most tokens of a chunk, including its heading path: the model's window without its special tokens."""
    target: int = 150
    """The size of a full chunk, including overlap."""
    min_size: int = 50
    """A smaller section is merged with the next one; a last chunk with less new text is merged with the previous one."""
    overlap: int = 35
    """The most text that a chunk repeats from the previous one."""
    heading_weight: float = 0.2
    """The weight of the heading path in a chunk's vector: see `embedding.vectors`."""
    unit: SizeUnit = SizeUnit.WORDS
    boundaries: tuple[int, ...] = (_EVERY_LEVEL,)
    """Heading levels at which to divide a page: always at the first, at later ones only what is too large for one chunk.

    Empty to divide by size alone.
    """
    whole_page: int = 0
    """A page of at most this size is a single chunk, if it fits in the window."""
    repeats_paragraphs: bool = False
    max_size: int = 0
    """A section of at most this size is a single chunk, if it fits in the window. Only whole-page chunks may be larger.

    0 for the target, which a chunk may exceed if it or the last one would otherwise be below the minimum.
    """
    alone_level: int = 0
    """Sections up to this heading level are never merged with text before them, however short it is."""

    @property
    def fingerprint(self) -> str:
        """The identity of the profile and of the chunker's version."""
        return _fingerprint(self)

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that can be set, by their names in ``SEMANTIC_CHUNKS``."""
        return {name: getattr(self, field) for name, field in _SIZES.items()}


@cache
def _fingerprint(profile: Profile) -> str:
    values = astuple(profile)
    others = zip(fields(profile)[_ALWAYS_NAMED:], values[_ALWAYS_NAMED:], strict=True)
    named = (f"{field.name}={value}" for field, value in others if value != field.default)
    return "/".join(map(str, (CHUNKING_VERSION, *values[:_ALWAYS_NAMED], *named)))


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(),
        Profile("long", target=500, min_size=150, overlap=100, whole_page=600, repeats_paragraphs=True),
        Profile("sections", target=1_000, min_size=100, overlap=200, unit=SizeUnit.CHARACTERS, max_size=1_500),
        Profile(
            *("heading2", 254, 2_048, 300, 200),
            unit=SizeUnit.CHARACTERS,
            boundaries=(2, 3),
            whole_page=1_000,
            max_size=6_000,
            alone_level=2,
        ),
        Profile("fixed", target=1_000, min_size=100, overlap=200, unit=SizeUnit.CHARACTERS, boundaries=()),
    )
}
_SIZES = {"target": "target", "overlap": "overlap", "min": "min_size", "max": "max_size", "page": "whole_page"}
_LARGEST = 100_000
_SMALLEST_TARGET = {SizeUnit.WORDS: 20, SizeUnit.CHARACTERS: 100}
EXAMPLE = "sections:target=1000,overlap=200"


def profile_named(chunks: str, window: int) -> Profile:
    """Return the profile that ``SEMANTIC_CHUNKS`` selects, for a model with this window in tokens, without special tokens.

    ``name:target=1000,overlap=200`` is the profile with this name and other sizes. ``auto`` is `long` for a window of 1,000
    tokens or more, else `minilm`. Errors: `ConfigError` for an unknown name or invalid sizes.
    """
    if chunks == AUTO:
        chunks = "long" if window >= _LONG_WINDOW else "minilm"
    name, colon, numbers = chunks.partition(":")
    if name == AUTO:
        raise ConfigError(f"{AUTO} takes no sizes, because it stands for several profiles; name one of: {', '.join(PROFILES)}")
    if name not in PROFILES:
        raise ConfigError(f"there is no chunk profile {name!r}; there are: {', '.join((AUTO, *PROFILES))}")
    profile = PROFILES[name]
    return replace(profile, window=window, **(_sizes(profile, numbers) if colon else {}))


def _sizes(profile: Profile, numbers: str) -> dict[str, Any]:
    """Return the fields that ``target=1000,overlap=200`` sets. The maximum, unless given, is at least the target."""
    given: dict[str, int] = {}
    for part in numbers.split(","):
        name, _, value = (each.strip() for each in part.partition("="))
        if name not in _SIZES or name in given:
            problem = "is given twice" if name in given else "is no size"
            raise ConfigError(f"{name!r} {problem}; the sizes are {', '.join(_SIZES)}, as in {EXAMPLE}")
        least = _SMALLEST_TARGET[profile.unit] if name in {"target", "max"} else 0
        if not (value.isascii() and value.isdigit() and least <= int(value) <= _LARGEST):
            raise ConfigError(f"{name} is {value!r}; allowed: a whole number of {profile.unit}, {least} to {_LARGEST}")
        given[name] = int(value)
    if profile.max_size and "target" in given:
        given.setdefault("max", max(profile.max_size, given["target"]))
    sizes = profile.sizes | given
    _check(sizes["overlap"] < sizes["target"], sizes, "overlap", "less than the target")
    _check(sizes["min"] <= sizes["target"], sizes, "min", "at most the target")
    _check(not sizes["max"] or sizes["max"] >= sizes["target"], sizes, "max", "at least the target")
    return {_SIZES[name]: size for name, size in given.items()}


def _check(is_allowed: object, sizes: dict[str, int], name: str, allowed: str) -> None:
    if not is_allowed:
        raise ConfigError(f"{name} is {sizes[name]} with a target of {sizes['target']}; allowed: {allowed}")
