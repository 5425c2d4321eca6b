"""Find pages that state the same fact with different numbers, dates or versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, product

from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.core.records import SourceConflict
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


def find_conflicts(sources: Sequence[Source], language: str = ENGLISH) -> list[SourceConflict]:
    """Return sentences of different pages that differ only in a number, a date or a version.

    Apart from a few words that occur in the other page's title or headings, both have the same words, names, negations and
    restrictions, and exactly one figure differs. At most 20, in the order of the sources.
    """
    candidates = [(source, list(_candidates(source, language))) for source in sources if not _is_dated(source)]
    found: dict[tuple[str, str, str, str], SourceConflict] = {}
    for (one, own), (other, others) in combinations(candidates, 2):
        for first, second in product(own, others) if one.path != other.path else ():
            if len(found) < _MAX_CONFLICTS and (figures := _different_figures(first, second)):
                found.setdefault((one.path, first.text, other.path, second.text), _conflict(one, other, *figures))
    return list(found.values())


def _conflict(one: Source, other: Source, figure: str, other_figure: str) -> SourceConflict:
    text = f"'{one.title}' says \"{figure}\", '{other.title}' says \"{other_figure}\""
    places = one.number - 1, other.number - 1
    if one.updated is None or other.updated is None or one.updated == other.updated:
        return SourceConflict(places, text)
    if one.updated > other.updated:
        return SourceConflict(places, f"{text}; '{one.title}' was changed last")
    return SourceConflict(places[::-1], f"{text}; '{other.title}' was changed last")


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
    ours, theirs = one.whole, other.whole
    pairs = [(a, b) for a, b in zip(ours.numbers, theirs.numbers, strict=False) if a.value != b.value]
    has_same = ours.names == theirs.names and ours.markers.keys() == theirs.markers.keys()
    if len(ours.numbers) != len(theirs.numbers) or len(pairs) != 1 or not has_same:
        return None
    (first, second), shared = pairs[0], ours.words & theirs.words
    different = (ours.words - shared - other.above_words) | (theirs.words - shared - one.above_words)
    is_same = len(shared) >= _MIN_SHARED and len(shared) >= _MIN_SHARE * (len(shared) + len(different))
    same_kind = first.unit == second.unit and _form(first.value) == _form(second.value)
    return (first.text, second.text) if is_same and same_kind else None


def _form(value: str) -> str:
    """Return the form of a figure; only figures of one form contradict each other. Versions and decimals are one form."""
    return re.sub(r"\d+", "0", value.replace(".0", "")) if value.count(".") < 1 else "decimal"
