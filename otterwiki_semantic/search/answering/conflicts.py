"""Where two pages say the same with different numbers, dates or versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from otterwiki_semantic.content.analysis import fold
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.search.answering.evidence import Unit, read_source
from otterwiki_semantic.search.answering.source import Source
from otterwiki_semantic.search.answering.tokens import Token, TokenKind
from otterwiki_semantic.search.answering.vocabulary import PRONOUNS

_MIN_SHARED = 2
"""Words that the sentences have to share besides the unit."""
_MIN_SHARE = 0.85
"""Share of the words of both sentences that they have in common."""
_MAX_CONFLICTS = 20
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d-(?:0\d|1[0-2])(?!\d)")
_VERSION = re.compile(r"\Av?\d++(?:\.\d++)++")


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
                        Claim(one.number, one.title, first.unit.text, figures[0]),
                        Claim(other.number, other.title, second.unit.text, figures[1]),
                        _newer(one, other),
                    )
                    found.setdefault((one.path, first.unit.text, other.path, second.unit.text), conflict)
    return list(found.values())


def _is_dated(source: Source) -> bool:
    """Whether a page tells of a time, as minutes and release notes do, and nothing in it contradicts what holds later."""
    return bool(_DATE.search(source.path) or _DATE.search(source.title))


@dataclass(frozen=True, slots=True)
class _Candidate:
    unit: Unit
    figures: tuple[Token, ...]
    words: Mapping[str, TokenKind]
    subject: str


def _candidates(source: Source, language: str) -> Iterator[_Candidate]:
    """Yield the sentences with figures that say what they are about."""
    for unit in read_source(source, language).units:
        figures = tuple(token for token in unit.tokens if token.kind is TokenKind.NUMBER)
        if not figures or unit.is_code or unit.is_joined or unit.columns or unit.continues:
            continue
        words = {token.key: token.kind for token in unit.tokens if token.is_content or token.is_strict}
        first = next(token for token in unit.tokens if token.is_content)
        if (
            first.kind is TokenKind.WORD
            and unit.tokens[0].kind is not TokenKind.KEPT
            and not PRONOUNS & {fold(word) for word in unit.text.split()[:1]}
        ):
            others = {key: kind for key, kind in words.items() if kind is not TokenKind.NUMBER}
            yield _Candidate(unit, figures, others, first.key)


def _different_figures(one: _Candidate, other: _Candidate) -> tuple[str, str] | None:
    if len(one.figures) != len(other.figures):
        return None
    pairs = [(a, b) for a, b in zip(one.figures, other.figures, strict=True) if a.key != b.key]
    if (
        len(pairs) != 1
        or not _same_kind(*pairs[0])
        or any(_is_label(*pair) for pair in zip((one, other), pairs[0], strict=True))
    ):
        return None
    return (
        (_shown(pairs[0][0], one.unit), _shown(pairs[0][1], other.unit))
        if _same_otherwise(one, other, pairs[0][0].unit)
        else None
    )


def _is_label(candidate: _Candidate, figure: Token) -> bool:
    """Whether a figure belongs to the name right before it, as in *Figure 2* or *Debian 12*."""
    at = candidate.unit.tokens.index(figure)
    before = candidate.unit.tokens[at - 1] if at else None
    return before is None or (not figure.before and before.is_capital and before.clause == figure.clause)


def _same_kind(one: Token, other: Token) -> bool:
    """Whether two figures are of the same unit and form, so that only one of them can be right."""
    return one.unit == other.unit and _form(one) == _form(other)


def _form(token: Token) -> str:
    if _VERSION.fullmatch(token.key.removeprefix("#")):
        return "decimal"
    return re.sub(r"\d+", "0", token.key)


def _same_otherwise(one: _Candidate, other: _Candidate, unit: str) -> bool:
    first, second = one.words, other.words
    for kind in (TokenKind.NAME, TokenKind.NEGATION, TokenKind.KEPT):
        if {key for key, of in first.items() if of is kind} != {key for key, of in second.items() if of is kind}:
            return False
    shared = first.keys() & second.keys()
    only_one = {key for key in first.keys() - shared if key not in other.unit.context}
    only_other = {key for key in second.keys() - shared if key not in one.unit.context}
    count = len(shared) + len(only_one) + len(only_other)
    return len(shared - {unit}) >= _MIN_SHARED and len(shared) >= _MIN_SHARE * count and _about_the_same(one, other)


def _about_the_same(one: _Candidate, other: _Candidate) -> bool:
    return (one.subject in other.words or one.subject in other.unit.context) and (
        other.subject in one.words or other.subject in one.unit.context
    )


def _shown(token: Token, unit: Unit) -> str:
    """Return a figure with its unit as the sentence has it."""
    at = unit.tokens.index(token)
    if token.unit and at + 1 < len(unit.tokens):
        return f"{token.text} {unit.tokens[at + 1].text}"
    return token.text


def _newer(one: Source, other: Source) -> int | None:
    first, second = _time(one.updated), _time(other.updated)
    if first is None or second is None or first == second:
        return None
    return one.number if first > second else other.number


def _time(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None
