"""Chunk profiles: the numbers that decide how pages are divided, and which of them suit a model.

There is one algorithm (`chunking`); every profile is a set of its numbers.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from enum import StrEnum

from otterwiki_semantic.core.errors import ConfigError

CHUNKING_VERSION = 2
"""Raised with every change that makes other chunks of the same text: the index is then built again."""
AUTO = "auto"
_LONG_WINDOW = 1_000
_EVERY_LEVEL = 6
_ALWAYS_NAMED = 6
"""Fields that every fingerprint has; the others stand in it, with their names, where they are not as `minilm` has them."""


class Unit(StrEnum):
    """What a profile's sizes are counted in."""

    WORDS = "words"
    CHARACTERS = "characters"


@dataclass(frozen=True, slots=True)
class Profile:
    """The numbers of the algorithm. `window` is in word pieces (special ones not counted), the sizes are in `unit`.

    A chunk has about `target`, its overlap included. What has less than `least` is merged with its neighbour: a section with
    the next one, a chunk that would say little new with the one before it. `overlap` is the most that a chunk repeats of the
    one before it, in whole paragraphs if `repeats_paragraphs`.

    `boundaries` are levels of headings. A page is divided at headings up to the first of them, what is still too large for one
    chunk up to the next of them, and so on; without any a page is divided by size alone. A page of at most `whole_page` is not
    divided at all if the window holds it.

    `heading_weight` is the heading path's share in a chunk's vector; see `embedding.passages`.
    """

    name: str = "minilm"
    window: int = 254
    target: int = 150
    least: int = 50
    overlap: int = 35
    heading_weight: float = 0.2
    unit: Unit = Unit.WORDS
    boundaries: tuple[int, ...] = (_EVERY_LEVEL,)
    whole_page: int = 0
    repeats_paragraphs: bool = False

    @property
    def prefix_window(self) -> int:
        """The most word pieces that the heading path may take: a quarter of the window."""
        return self.window // 4

    @property
    def fingerprint(self) -> str:
        """Tells profiles and versions of the algorithm apart."""
        values = astuple(self)
        others = zip(fields(self)[_ALWAYS_NAMED:], values[_ALWAYS_NAMED:], strict=True)
        named = (f"{field.name}={value}" for field, value in others if value != field.default)
        return "/".join(map(str, (CHUNKING_VERSION, *values[:_ALWAYS_NAMED], *named)))


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(),
        Profile("long", target=500, least=150, overlap=100, whole_page=600, repeats_paragraphs=True),
        Profile("heading2", target=2_000, least=300, overlap=200, unit=Unit.CHARACTERS, boundaries=(2, 3), whole_page=1_000),
        Profile("fixed", target=1_000, least=100, overlap=200, unit=Unit.CHARACTERS, boundaries=()),
    )
}


def profile_named(name: str, window: int) -> Profile:
    """Give the profile of this name for a model with this window, in word pieces without the special ones.

    ``auto`` is `long` for a window of 1,000 word pieces or more, else `minilm`. Errors: `ConfigError` for an unknown name.
    """
    if name == AUTO:
        name = "long" if window >= _LONG_WINDOW else "minilm"
    if name not in PROFILES:
        raise ConfigError(f"there is no chunk profile {name!r}; there are: {', '.join((AUTO, *PROFILES))}")
    return replace(PROFILES[name], window=window)
