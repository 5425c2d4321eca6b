"""Whether a statement is a shortened form of a unit of a source.

Each word of the statement is mapped to a word of the unit, in the same order. What is left out in between must not change
what is said: a clause is entered at its first word, negations and restrictions are kept, numbers keep their units, and a
word that only stands in the title or in a heading may be added but may not take the place of another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from math import ceil

from otterwiki_semantic.content.analysis import fold
from otterwiki_semantic.search.answering.evidence import Unit
from otterwiki_semantic.search.answering.tokens import OWNED, Token, TokenKind
from otterwiki_semantic.search.answering.vocabulary import (
    ADDITIONS,
    AGENT,
    ALTERNATIVES,
    ARTICLES,
    AUXILIARIES,
    BE,
    BOUNDS,
    CONDITIONS,
    CONTENT_PREPOSITIONS,
    ENABLING,
    GOAL,
    INFINITIVES,
    OBLIGING,
    ORIGIN,
    PERMITTING,
    RANGES,
    RELATIVES,
    SUBORDINATORS,
)

_MAX_STARTS = 8
"""Adverbials that are tried at other places."""
_BELONGS = frozenset({"of", "des", "von", "vom", "du", "de"})
_LONGEST_UNIT = 3
_BYTES = re.compile(r"[kKMGT]i?(?P<bytes>[bB])(?:/s|ps)?")
"""Bytes are ``B``, bits ``b``."""
_MIN_ALIGNED = 2
_MIN_SHARE = 0.6
"""Share of a statement's words that have to stand in the unit itself, not only above it."""


class Fit(IntEnum):
    """How near a unit comes to supporting a statement, from the worst."""

    OTHER_WORDS = 0
    OTHER_ORDER = 1
    """All words are there, but in another order, or in parts of the sentence that do not belong together."""
    RESTRICTED = 2
    """What is said holds only under a restriction that is left out, or is negated."""
    SUPPORTED = 3


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of comparing a statement with a unit."""

    fit: Fit
    missing: tuple[Token, ...] = ()
    dropped: tuple[Token, ...] = ()
    """Restrictions of the unit that the statement leaves out."""


def compare(statement: Sequence[Token], unit: Unit, extra: frozenset[str] = frozenset()) -> Comparison:
    """Compare a statement with a unit; `extra` are keys of words that may be added to those above it."""
    context = unit.context | extra
    has_columns = len(unit.columns) > 1
    heads = frozenset(key for column in unit.columns for key in column.header)
    present = {token.key for token in unit.tokens}
    missing = tuple(
        token
        for token in statement
        if token.key not in present
        and not _is_optional(token)
        and (token.kind is TokenKind.NUMBER or token.is_strict or token.key not in context | heads)
    )
    if missing:
        return Comparison(Fit.OTHER_WORDS, missing)
    if _obliges(statement, unit):
        return Comparison(Fit.OTHER_ORDER)
    if unit.is_code and not any(token.kind in {TokenKind.NAME, TokenKind.NUMBER} for token in statement):
        return Comparison(Fit.OTHER_ORDER)
    if has_columns:
        return _compare_row(statement, unit, context, heads)
    if _is_aligned(statement, unit, context, strict=True):
        dropped = _dropped_above(statement, unit)
        return Comparison(Fit.RESTRICTED, dropped=dropped) if dropped else Comparison(Fit.SUPPORTED)
    if _is_aligned(statement, unit, context, strict=False):
        own = {token.key for token in statement}
        dropped = tuple(token for token in unit.tokens if token.is_strict and token.key not in own)
        return Comparison(Fit.RESTRICTED, dropped=dropped)
    return Comparison(Fit.OTHER_ORDER)


def _obliges(statement: Sequence[Token], unit: Unit) -> bool:
    """Whether a statement demands what the unit allows."""
    said, own = ({word for token in each for word in (fold(token.text), *token.before)} for each in (statement, unit.tokens))
    return bool(OBLIGING & said) and not OBLIGING & own and bool(ENABLING & own)


def _dropped_above(statement: Sequence[Token], unit: Unit) -> tuple[Token, ...]:
    own = {token.key for token in statement}
    return tuple(Token(key, key, TokenKind.KEPT, 0) for key in sorted(unit.required - own))


def _is_optional(token: Token) -> bool:
    return token.kind in {TokenKind.LIGHT, TokenKind.LIGHT_VERB}


def _is_aligned(statement: Sequence[Token], unit: Unit, context: frozenset[str], strict: bool) -> bool:
    conditions = Counter(filter(None, map(_condition, unit.tokens)))
    if strict and conditions - Counter(filter(None, map(_condition, statement))):
        return False
    if strict and any(map(_is_rule, unit.tokens)) and sum(map(_is_bounded, unit.tokens)) > sum(map(_is_bounded, statement)):
        return False
    added = context - {token.key for token in unit.tokens}
    if any(
        _Alignment(tuple(ours), unit.tokens, added if ours is statement else frozenset(), strict, unit.joint).exists()
        for ours in _orders(statement)
    ):
        return True
    turned = _active(unit.tokens)
    return turned is not None and _Alignment(tuple(statement), tuple(turned), frozenset(), strict).exists()


def _condition(token: Token) -> str:
    """Return the class of a word that restricts the whole sentence; nothing for others."""
    name = token.key.strip("<>")
    return name if token.kind is TokenKind.KEPT and name in CONDITIONS else ""


def _is_rule(token: Token) -> bool:
    """Whether a word denies, demands or allows something, which may hold at some times or for some people only."""
    return token.kind is TokenKind.NEGATION or token.key in {"<must>", "<may>"} or fold(token.text) in PERMITTING


def _is_bounded(token: Token) -> bool:
    """Whether it begins what tells when or for whom."""
    return not BOUNDS.isdisjoint((*token.before, fold(token.text)))


class _State(IntEnum):
    """What may be left out before the next word."""

    FREE = 0
    TIED = 1
    """Nothing: a negation is followed by what it negates, and a verb of the model's does not take the place of another."""
    ADDED = 2
    """Nothing: a word from above the unit does not take the place of one in it, nor is it added at an end that is left out."""
    AFTER_ADDED = 3
    """Nothing within the clause."""


class _Alignment:
    """The search for a mapping, by dynamic programming over prefixes."""

    def __init__(
        self, ours: tuple[Token, ...], theirs: tuple[Token, ...], context: frozenset[str], strict: bool, joint: int = 0
    ) -> None:
        self._ours, self._theirs, self._context, self._strict, self._joint = ours, theirs, context, strict, joint
        self._places: dict[str, list[int]] = {}
        for place, token in enumerate(theirs):
            self._places.setdefault(token.key, []).append(place)
        self._reach = lru_cache(None)(self._reaches)

    def exists(self) -> bool:
        count = sum(not _is_optional(token) for token in self._ours)
        self._needed = max(min(_MIN_ALIGNED, count), ceil(_MIN_SHARE * count))
        if count <= _MIN_ALIGNED and sum(token.is_content for token in self._theirs) > count * count:
            return False  # too little to tell what it is about
        return self._reach(0, -1, _State.FREE, 0)

    def _reaches(self, at: int, last: int, state: _State, aligned: int) -> bool:
        """Whether the statement from a word on can be mapped behind the last mapped word of the unit."""
        if at == len(self._ours):
            return aligned >= self._needed and self._ends(last, state)
        token = self._ours[at]
        for place in self._places.get(token.key, ()):
            if place > last and self._passes(at, last, place, state) and self._agrees(token, self._theirs[place]):
                after = self._after(token, last, place, state)
                if self._reach(at + 1, place, after, min(aligned + (not _is_optional(token)), self._needed)):
                    return True
        if _is_optional(token) and token.key not in self._places:
            return self._reach(at + 1, last, state if token.kind is TokenKind.LIGHT else max(state, _State.TIED), aligned)
        return self._may_be_added(at, last) and self._reach(at + 1, last, _State.ADDED, aligned)

    def _after(self, token: Token, last: int, place: int, state: _State) -> _State:
        if state in {_State.ADDED, _State.AFTER_ADDED}:
            return _State.AFTER_ADDED
        is_tied = token.kind is TokenKind.NEGATION or (last < 0 and self._is_explained(place) and not self._is_first(place))
        return _State.TIED if is_tied else _State.FREE

    def _is_first(self, place: int) -> bool:
        clause = self._theirs[place].clause
        return not any(token.clause == clause and token.is_content for token in self._theirs[:place])

    def _is_explained(self, place: int) -> bool:
        """Whether a relative clause follows."""
        return place + 1 < len(self._theirs) and bool(RELATIVES & set(self._theirs[place + 1].before))

    def _may_be_added(self, at: int, last: int) -> bool:
        """Whether a word may be taken from what stands above the unit: what the sentence is about, or an adverbial."""
        token = self._ours[at]
        if token.key not in self._context or token.kind is TokenKind.NUMBER:
            return False
        if token.is_strict:  # *after a restart* as a heading
            following = self._ours[at + 1].key if at + 1 < len(self._ours) else ""
            return last < 0 and token.key in {"<after>", "<before>", "<if>"} and following in self._context
        return last < 0 or bool(token.preposition) or (at > 0 and self._ours[at - 1].key in self._context)

    def _ends(self, last: int, state: _State) -> bool:
        rest = self._rest_of_clause(last)
        if self._strict and any(token.is_strict for token in rest):
            return False
        return state is _State.FREE or not _has_content(self._theirs[last + 1 :] if state is _State.ADDED else rest)

    def _rest_of_clause(self, last: int) -> Sequence[Token]:
        if last < 0:
            return ()
        return [token for token in self._theirs[last + 1 :] if token.clause == self._theirs[last].clause]

    def _passes(self, at: int, last: int, place: int, state: _State) -> bool:
        """Whether the words between two that are mapped may be left out."""
        skipped = self._theirs[last + 1 : place]
        if self._changes(self._ours[at], skipped, place, last):
            return False
        is_figure = self._ours[at].kind is TokenKind.NUMBER and at > 0 and not self._ours[at - 1].ends_part
        if is_figure and last >= 0 and any(token.kind is TokenKind.NUMBER for token in skipped):
            return False
        if last >= 0 and self._theirs[last].clause == self._theirs[place].clause:
            return self._passes_within(last, place, skipped, state)
        left = [token for token in skipped if last >= 0 and token.clause == self._theirs[last].clause]
        right = [token for token in skipped if token.clause == self._theirs[place].clause]
        own_clauses = {token.clause for token in skipped if token.is_content}
        apart = [token for token in skipped if token.clause not in own_clauses]  # as *not* in *or not (0)*
        if self._strict and any(token.is_strict for token in (*left, *right, *apart)):
            return False
        if last < 0:
            return self._passes_first(place, skipped, right, state)
        if not self._enters(at, last, place):
            return False
        if state is _State.AFTER_ADDED:
            return not _has_content(left) and not _has_content(right)
        return not _has_content(right) if state is _State.FREE else _is_idle(skipped)

    def _changes(self, own: Token, skipped: Sequence[Token], place: int, last: int) -> bool:
        """Whether a word means something else without those left out before it: *refuses to sign*, *below 10 °C*."""
        other = self._theirs[place]
        alternatives = ALTERNATIVES & set(other.before)
        if alternatives and not alternatives & set(own.before):
            return bool(skipped) or bool(ADDITIONS & set(own.before))
        is_infinitive = not INFINITIVES.isdisjoint(other.before)
        if is_infinitive and not BE.isdisjoint(other.before) and INFINITIVES.isdisjoint(own.before):  # *was to be replaced*
            return True
        if not skipped:
            return False
        first, nearest = skipped[0], skipped[-1]
        is_governed = nearest.is_content and (nearest.clause == other.clause or not other.before)
        is_past = is_infinitive and fold(nearest.text) == "used" and BE.isdisjoint(nearest.before)
        is_verb = is_infinitive or (other.text.endswith("ing") and not own.text.endswith("ing"))
        return (
            fold(nearest.text) in CONTENT_PREPOSITIONS
            or (is_governed and is_verb)
            or is_past
            or (not SUBORDINATORS.isdisjoint(other.before) and _has_content(skipped))
            or (last >= 0 and (OWNED in first.before or _is_range(self._theirs[last], first)))
        )

    def _passes_within(self, last: int, place: int, skipped: Sequence[Token], state: _State) -> bool:
        if self._strict and any(token.is_strict for token in skipped):
            return False
        if state in {_State.TIED, _State.ADDED}:
            return _is_idle(skipped)
        is_bound = bool(AUXILIARIES & set(self._theirs[place].before)) or self._leaves_out_head(last, place)
        return not _has_content(skipped) or (state is _State.FREE and not is_bound)

    def _passes_first(self, place: int, skipped: Sequence[Token], right: Sequence[Token], state: _State) -> bool:
        if state is _State.FREE:
            return not _has_content(right) or self._is_explained(place)
        is_whole = state is _State.ADDED or bool({"that", "dass", "que"} & set(self._theirs[place].before))
        return _is_idle(skipped if is_whole else right)

    def _enters(self, at: int, last: int, place: int) -> bool:
        """Whether another clause may follow: all of it, unless the statement begins one there, too."""
        clause = self._theirs[place].clause
        if last < self._joint <= place and clause != self._theirs[self._joint].clause:
            return False
        if self._ours[at - 1].ends_part:
            return True
        rest = {token.key for token in self._ours[at:]}
        return all(token.key in rest for token in self._theirs if token.clause == clause and token.is_content)

    def _leaves_out_head(self, last: int, place: int) -> bool:
        """Whether what belongs to a word is kept without it, as *fridge* of *the door of the fridge*."""
        return any(_BELONGS & set(self._theirs[at].before) for at in range(last + 2, place + 1))

    def _agrees(self, own: Token, other: Token) -> bool:
        ours, theirs = own.preposition, other.preposition
        if own.is_moved and ours != theirs:
            return False
        if (ours in AGENT) != (theirs in AGENT) and (ours or theirs):
            return False
        if (ours in ORIGIN and theirs in GOAL) or (ours in GOAL and theirs in ORIGIN):
            return False
        article, its_article = ARTICLES.intersection(own.before), ARTICLES.intersection(other.before)
        if article and its_article and article != its_article:
            return False
        if own.kind is TokenKind.NUMBER and own.unit:
            return own.unit == other.unit or not other.unit
        return _is_spelled_alike(own.text, other.text)


def _is_range(first: Token, second: Token) -> bool:
    """Whether two numbers are the ends of a range, such as *5 to 10*."""
    return first.kind is second.kind is TokenKind.NUMBER and not RANGES.isdisjoint(second.before)


def _is_spelled_alike(own: str, other: str) -> bool:
    """Whether two words are not told apart by an accent alone (*fördert*), nor two units by their case (*mW*, *MW*)."""
    if fold(own) != fold(other):
        return True
    if (ours := _BYTES.fullmatch(own)) and (theirs := _BYTES.fullmatch(other)):
        return ours["bytes"] == theirs["bytes"]
    is_unit = 1 < len(own) <= _LONGEST_UNIT and (own.isupper() or other.isupper()) != (own.isupper() and other.isupper())
    return own.lower() == other.lower() and not (is_unit and own[1:] == other[1:] and own[0] not in "kK")


def _has_content(skipped: Sequence[Token]) -> bool:
    return any(token.is_content for token in skipped)


def _is_idle(skipped: Sequence[Token]) -> bool:
    """Whether nothing is left out that another word could take the place of."""
    return all(token.kind is TokenKind.LIGHT for token in skipped)


def _orders(statement: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the orders in which the same may be said: active for passive, and adverbials at the other end."""
    yield statement
    if turned := _active(statement):
        yield turned
    starts = [at for at, token in enumerate(statement) if _begins_adverbial(token)]
    for at, start in enumerate(starts[:_MAX_STARTS]):
        for end in dict.fromkeys((*starts[at + 1 : at + 2], len(statement))):
            block = [replace(statement[start], is_moved=True), *statement[start + 1 : end]]
            if start:
                yield [*block, *statement[:start], *statement[end:]]
            if end < len(statement):
                yield [*statement[:start], *statement[end:], *block]
    comma = next((at + 1 for at, token in enumerate(statement) if token.ends_part), 0)
    if starts and not starts[0] and 0 < comma < len(statement):
        yield [*statement[comma:], replace(statement[0], is_moved=True), *statement[1:comma]]


def _begins_adverbial(token: Token) -> bool:
    return token.preposition not in {"", "of", "by"} or token.key in {"<if>", "everi", "each"}


def _active(passive: Sequence[Token]) -> list[Token] | None:
    """Return *X does V to Y* for *Y is V by X*; None if it is no passive."""
    agent = next((at for at, token in enumerate(passive) if at and {"by", "durch", "par"} & set(token.before)), None)
    if agent is None:
        return None
    verb = next((at for at in range(agent - 1, -1, -1) if BE & set(passive[at].before)), None)
    if verb is None or verb == 0:
        return None
    end = next(
        (at for at in range(agent, len(passive)) if passive[at].ends_part or (at > agent and passive[at].preposition)), None
    )
    end = len(passive) if end is None else end + 1 if passive[end].ends_part else end
    first = passive[agent]
    doer = replace(first, before=())
    return [doer, *passive[agent + 1 : end], *passive[verb:agent], *passive[:verb], *passive[end:]]


def _compare_row(statement: Sequence[Token], unit: Unit, context: frozenset[str], heads: frozenset[str]) -> Comparison:
    """Compare a statement with a row of a table, whose cells are said in any order, each with its own header."""
    values = [{token.key for token in column.value} for column in unit.columns]
    matched: list[int] = []
    named: list[int] = []
    for token in statement:
        at = next((number for number, keys in enumerate(values) if token.key in keys), None)
        head = next((number for number, column in enumerate(unit.columns) if token.key in column.header), None)
        if at is not None:
            matched += [at] if not matched or matched[-1] != at else []
        elif head is not None and len([1 for column in unit.columns if token.key in column.header]) == 1:
            named += [head] if not named or named[-1] != head else []
    own = {token.key for token in statement}
    if len(set(matched)) < _MIN_ALIGNED:
        return Comparison(Fit.OTHER_ORDER)
    subject = min(set(matched))
    pairs = [at for at in matched if at != subject or at in named]
    named = [at for at in named if at != subject or at in pairs]
    if subject != 0 or any(at not in matched for at in named):
        return Comparison(Fit.OTHER_ORDER)
    ordered = [at for at in dict.fromkeys(pairs) if at in named]
    if len(named) != len(set(named)) or ordered != [at for at in named if at in ordered]:
        return Comparison(Fit.OTHER_ORDER)
    for at in set(matched):
        first = next((token for token in unit.columns[at].value if token.is_content), None)
        if first is not None and first.key not in own:
            return Comparison(Fit.OTHER_ORDER)
        dropped = tuple(token for token in unit.columns[at].value if token.is_strict and token.key not in own)
        if dropped:
            return Comparison(Fit.RESTRICTED, dropped=dropped)
    return Comparison(Fit.SUPPORTED) if _units_agree(statement, unit, context | heads) else Comparison(Fit.OTHER_ORDER)


def _units_agree(statement: Sequence[Token], unit: Unit, context: frozenset[str]) -> bool:
    """Whether each number has the unit that it has in its cell, or one that stands above it."""
    for token in statement:
        if token.kind is TokenKind.NUMBER and token.unit:
            units = {other.unit for other in unit.tokens if other.key == token.key}
            if token.unit not in units and not ("" in units and token.unit in context | {t.key for t in unit.tokens}):
                return False
    return True
