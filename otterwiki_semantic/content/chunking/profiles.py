"""Chunk profiles: the parameters of the chunker, and which of them suit a model."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace

from otterwiki_semantic.content.chunking.sizes import Unit
from otterwiki_semantic.core.errors import ConfigError

CHUNKING_VERSION = 2
"""To be raised with every change that makes different chunks of the same text: indexes are then rebuilt."""
AUTO = "auto"
_LONG_WINDOW = 1_000
_EVERY_LEVEL = 6
_ALWAYS_NAMED = 6
"""Fields that every fingerprint contains; the others are added by name where they differ from their defaults, so names stay."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The parameters of the chunker. Sizes are in `unit`."""

    name: str = "minilm"
    window: int = 254
    """The most tokens of a chunk, heading path included; the model's window without its special tokens."""
    target: int = 150
    """The size of a full chunk, overlap included."""
    min_size: int = 50
    """Smaller sections are merged with a neighbour, as is a last chunk with less new text."""
    overlap: int = 35
    """The most that a chunk repeats of the previous one."""
    heading_weight: float = 0.2
    """The heading path's share in a chunk's vector: see `embedding.passages`."""
    unit: Unit = Unit.WORDS
    boundaries: tuple[int, ...] = (_EVERY_LEVEL,)
    """Heading levels to divide a page at: always at the first, at the next ones what is still too large for one chunk.

    Empty to divide by size alone.
    """
    whole_page: int = 0
    """A page of at most this size is a single chunk, if the window holds it."""
    repeats_paragraphs: bool = False
    """Whether the overlap consists of whole paragraphs."""

    @property
    def prefix_window(self) -> int:
        """The most tokens that the heading path may take: a quarter of the window."""
        return self.window // 4

    @property
    def fingerprint(self) -> str:
        """Identifies the profile and the version of the chunker."""
        values = astuple(self)
        others = zip(fields(self)[_ALWAYS_NAMED:], values[_ALWAYS_NAMED:], strict=True)
        named = (f"{field.name}={value}" for field, value in others if value != field.default)
        return "/".join(map(str, (CHUNKING_VERSION, *values[:_ALWAYS_NAMED], *named)))


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(),
        Profile("long", target=500, min_size=150, overlap=100, whole_page=600, repeats_paragraphs=True),
        Profile("heading2", target=2_000, min_size=300, overlap=200, unit=Unit.CHARACTERS, boundaries=(2, 3), whole_page=1_000),
        Profile("fixed", target=1_000, min_size=100, overlap=200, unit=Unit.CHARACTERS, boundaries=()),
    )
}


def profile_named(name: str, window: int) -> Profile:
    """Return the profile of this name for a model with this window, in tokens without the special ones.

    ``auto`` is `long` for a window of 1,000 tokens or more, else `minilm`. Errors: `ConfigError` for an unknown name.
    """
    if name == AUTO:
        name = "long" if window >= _LONG_WINDOW else "minilm"
    if name not in PROFILES:
        raise ConfigError(f"there is no chunk profile {name!r}; there are: {', '.join((AUTO, *PROFILES))}")
    return replace(PROFILES[name], window=window)
