"""Find pages that state the same fact with different numbers, dates or versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.search.answering.sources import Source
from otterwiki_semantic.search.answering.units import Unit, read_units

_MIN_SHARED = 2
"""Words that two sentences must share, besides the unit of measurement."""
_MIN_SHARE = 0.85
"""The share of words that both sentences must have in common."""
_MAX_CONFLICTS = 20
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d-(?:0\d|1[0-2])(?!\d)")
_LABEL = re.compile(r"(?<![.!?:] )\b[A-ZÄÖÜ]\w*+ \d++(?![.:]?\d| ?[%°€$£])")
"""A number that is part of the preceding name, such as *Figure 2*."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a source, with its figure."""

    source: int
    """The source's number."""
    title: str
    text: str
    figure: str
    """As written, with its unit."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sentences of different pages that differ only in one figure."""

    first: Claim
    second: Claim
    newer: int | None
    """The number of the source whose page changed last; None if unknown or if both changed at the same time."""

    def describe(self) -> str:
        """Return a sentence for people, without a full stop, that quotes both figures and names the page that changed last."""
        said = ", ".join(f"'{each.title}' says \"{each.figure}\"" for each in (self.first, self.second))
        last = next((each.title for each in (self.first, self.second) if each.source == self.newer), None)
        return f"{said}; '{last}' was changed last" if last is not None else said


def find_conflicts(sources: Sequence[Source], language: str = ENGLISH) -> list[Conflict]:
    """Return sentences of different pages that differ only in a number, a date or a version.

    Apart from a few words that occur in the other page's title or headings, both have the same words, names, negations and
    restrictions, and exactly one figure differs. At most 20, in the order of the sources.
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
    """Whether a page describes a moment, as minutes and release notes do, so that later facts do not contradict it."""
    return bool(_DATE.search(source.path) or _DATE.search(source.title))


def _candidates(source: Source, language: str) -> Iterator[Unit]:
    """Yield the units with figures that name their subject."""
    for unit in read_units(source, language):
        if unit.is_whole and unit.whole.numbers and not unit.clauses[0].leading and not _LABEL.search(unit.text):
            yield unit


def _different_figures(one: Unit, other: Unit) -> tuple[str, str] | None:
    """Return the figures in which two units differ, as written, if they differ in nothing else."""
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
    """Return the form of a figure; only figures of one form contradict each other. Versions and decimals are one form."""
    return re.sub(r"\d+", "0", value.replace(".0", "")) if value.count(".") < 1 else "decimal"


def _newer(one: Source, other: Source) -> int | None:
    if one.updated is None or other.updated is None or one.updated == other.updated:
        return None
    return one.number if one.updated > other.updated else other.number
