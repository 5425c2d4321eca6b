"""What a run of the benchmarks was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL_PAGES = 250
"""Pages of the generated wiki of about 2,000 chunks."""
LARGE_PAGES = 10_000
"""Pages of the generated wiki of about 80,000 chunks."""
MANY_PASSAGES = 1_100_000


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure with."""

    small: bool = False
    """Leave out the large wiki."""
    small_pages: int = SMALL_PAGES
    large_pages: int = LARGE_PAGES
    passages: int = MANY_PASSAGES
    """Passages of the wiki of the part `million`."""
    edits: int = 5_000
    """Page edits over which the growth of the index is measured."""
    rounds: int = 3
    """How often the two sides of a ratio take turns."""
    fresh: bool = False
    """Build kept indexes again."""
    repository: Path | None = None
    """A wiki's git repository, to read instead of a generated one."""
    wikis: Path | None = None
    """A directory of judged wikis, for the part `agents`."""
    base: str | None = None
    """A commit to compare with, for the part `promises`."""
    picture: Path | None = None
    """The directory of the pictures; None draws none."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of pages that are measured at."""
        return (self.small_pages,) if self.small else (self.small_pages, self.large_pages)
