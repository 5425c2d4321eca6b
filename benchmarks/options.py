"""What a run of the benchmarks was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SMALL_PAGES = 250
"""Pages of the generated wiki of about 2,000 chunks."""
LARGE_PAGES = 10_000
"""Pages of the generated wiki of about 80,000 chunks."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure with.

    `small` leaves out the large wiki, `small_pages` and `large_pages` are the sizes, `wikis` are directories of markdown whose
    chunks are looked at, `edits` is how many page edits the index's growth is measured over, `rounds` how often the two sides
    of a ratio take turns, `fresh` builds kept indexes again, and `picture` is where the pictures go (None: none are drawn).
    """

    small: bool = False
    small_pages: int = SMALL_PAGES
    large_pages: int = LARGE_PAGES
    wikis: Sequence[Path] = ()
    edits: int = 5_000
    rounds: int = 3
    fresh: bool = False
    picture: Path | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of pages that are measured at."""
        return (self.small_pages,) if self.small else (self.small_pages, self.large_pages)
