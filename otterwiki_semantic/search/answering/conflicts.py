"""Where two pages say the same with different numbers, dates or versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.search.answering.sources import Source
from otterwiki_semantic.search.answering.units import Unit, read_units

_MIN_SHARED = 2
"""Words that the sentences have to share besides the unit."""
_MIN_SHARE = 0.85
"""Share of the words of both sentences that they have in common."""
_MAX_CONFLICTS = 20
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d-(?:0\d|1[0-2])(?!\d)")
_LABEL = re.compile(r"(?<![.!?:] )\b[A-ZÄÖÜ]\w*+ \d++(?![.:]?\d| ?[%°€$£])")
"""A number that belongs to the name before it, such as *Figure 2*."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a source, and the figure in it."""

    source: int
    """The source's number."""
    title: str
    text: str
    figure: str
    """As it is written, with its unit."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sentences of different pages that agree but for one figure."""

    first: Claim
    second: Claim
    newer: int | None
    """The number of the source whose page was changed last; None if that is not known, or at the same time."""

    def describe(self) -> str:
        """Return both, and which page was changed last, as a sentence for people without a full stop."""
        said = ", ".join(f"'{each.title}' says \"{each.figure}\"" for each in (self.first, self.second))
        last = next((each.title for each in (self.first, self.second) if each.source == self.newer), None)
        return f"{said}; '{last}' was changed last" if last is not None else said


def find_conflicts(sources: Sequence[Source], language: str = ENGLISH) -> list[Conflict]:
    """Return the sentences of different pages that say the same but for a number, a date or a version.

    Both have the same words but for a few that stand in the other page's title or headings, the same names, negations and
    restrictions, and one figure that differs. The first 20 in the order of the sources.
    """
    candidates = [(source, list(_candidates(source, language))) for source in sources]
    found: dict[tuple[str, str, str, str], Conflict] = {}
    for (one, own), (other, others) in combinations(candidates, 2):
        if one.path == other.path or _is_dated(one) or _is_dated(other):
            continue
        for first in own:
            for second in others:
                if len(found) < _MAX_CONFLICTS and (figures := _different_figures(first, second)):
                    conflict = Conflict(
                        Claim(one.number, one.title, first.text, figures[0]),
                        Claim(other.number, other.title, second.text, figures[1]),
                        _newer(one, other),
                    )
                    found.setdefault((one.path, first.text, other.path, second.text), conflict)
    return list(found.values())


def _is_dated(source: Source) -> bool:
    """Whether a page tells of a time, as minutes and release notes do, and nothing in it contradicts what holds later."""
    return bool(_DATE.search(source.path) or _DATE.search(source.title))


def _candidates(source: Source, language: str) -> Iterator[Unit]:
    """Yield the units with figures that say what they are about."""
    for unit in read_units(source, language):
        if unit.is_whole and unit.whole.numbers and not unit.clauses[0].leading and not _LABEL.search(unit.text):
            yield unit


def _different_figures(one: Unit, other: Unit) -> tuple[str, str] | None:
    """Return the figures in which two units differ, as they are written, if they differ in nothing else."""
    first_whole, second_whole = one.whole, other.whole
    pairs = [(a, b) for a, b in zip(first_whole.numbers, second_whole.numbers, strict=False) if a.value != b.value]
    has_same = first_whole.names == second_whole.names and first_whole.markers.keys() == second_whole.markers.keys()
    if len(first_whole.numbers) != len(second_whole.numbers) or len(pairs) != 1 or not has_same:
        return None
    (first, second), shared = pairs[0], first_whole.words & second_whole.words
    different = (first_whole.words - shared - other.above_words) | (second_whole.words - shared - one.above_words)
    is_same = len(shared) >= _MIN_SHARED and len(shared) >= _MIN_SHARE * (len(shared) + len(different))
    same_kind = first.unit == second.unit and _form(first.value) == _form(second.value)
    return (first.text, second.text) if is_same and same_kind else None


def _form(value: str) -> str:
    """Return what figures have in common of which only one can be right: versions and decimals are alike, dates are."""
    return re.sub(r"\d+", "0", value.replace(".0", "")) if value.count(".") < 1 else "decimal"


def _newer(one: Source, other: Source) -> int | None:
    if one.updated is None or other.updated is None or one.updated == other.updated:
        return None
    return one.number if one.updated > other.updated else other.number
