"""Check that the sources cited by a statement support it.

A statement is compared with the nearest unit of its sources: a sentence, a list item or a table row. The unit must have the
statement's numbers, names and code, and the same negations, restrictions, obligations and permissions, and must be about as
similar as a paraphrase. Tense, irony and conclusions from two sentences are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from otterwiki_semantic.content.analysis import ANNOUNCING, fold
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.search.answering.plain import clean
from otterwiki_semantic.search.answering.sources import Source
from otterwiki_semantic.search.answering.statements import Statement, StatementKind
from otterwiki_semantic.search.answering.units import Clause, Unit, read_unit, read_units, sentences

MIN_LIKENESS = 1.2
"""The least sum of the share of a sentence's words in the nearest unit and the similarity of both."""
MIN_SHARE = 0.6
"""The least share alone, without a model to compare them."""
MAX_ADDED = 0.25
"""The share of words missing from the source above which one of them must resemble the word it replaces."""
MIN_WORD_SIMILARITY = 0.38
"""The least similarity of such a word to a word of the nearest unit."""
NO_SOURCE = "names no source"
_COMPARED_UNITS = 6
"""Units embedded per sentence: the units that share the most words with it."""
_FACT_WEIGHT = 2
"""The weight of a number or name, in words, in the search for the nearest unit."""
_MIN_ORDERED = 3
"""Words that two clauses must share before their order counts."""
_GOVERNING = frozenset({"if", "unless", "unreal", "instead"})
"""Markers that also apply to the clauses next to their own."""
_OF_NUMBERS = frozenset({"about", "least", "most", "above", "below"})
"""Markers that qualify a number."""
_ALIKE = (("not", "deny"), ("must", "deny"), ("above", "after"))
"""Markers that may replace each other."""
_ALLOWING = frozenset({"can", "may"})
"""Markers that *must* contradicts. Adding them to a plain statement, or dropping them, is a matter of style."""
_MAY_BE_LEFT_OUT = frozenset({"can", "on"})
_MAY_BE_ADDED = frozenset({"can", "per"})
_NOTHING_FOUND = re.compile(
    r"(?:the |none of the |these |those |your )?(?:given |provided |named )?(?:wiki )?(?:sources?|passages|excerpts)"
    r"(?: (?:given|provided|above|from the wiki))? (?:(?:do(?:es)?|did) not|don['’]t|doesn['’]t|contains? no"
    r"|ha(?:ve|s) no|gives? no|says? nothing|mentions? no)\b.{0,160}"
    r"|i (?:do not know|don['’]t know|cannot answer|can['’]t answer|could not find|couldn['’]t find|found nothing)\b.{0,120}"
    r"|die quellen (?:sagen nichts|enthalten keine|geben keine|nennen keine|erwähnen)\b.{0,160}"
    r"|les sources ne (?:disent|contiennent|mentionnent|précisent)\b.{0,160}",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"[;:,(\u2013\u2014]|\s-\s|\b(?:but|however|although|though|because|since|aber|sondern|jedoch|mais)\b|\d", re.IGNORECASE
)

_ANNOUNCES = re.compile(
    r"^(?:(?:according to|as (?:stated|described|mentioned|noted|explained) (?:in|on)|based on|per) "
    r"(?:the |this |these |your )?(?:\w+ )?"
    r"(?:wiki|pages?|sources?|documentation|documents?|passages?|notes?|information|context)"
    r"(?: (?:provided|above|given))?,? (?=\S)"
    r"|the (?:wiki|page|documentation|source|document|passage|text) (?:says|states|mentions|describes|notes|explains)"
    r"(?: that)?,? |it (?:seems|appears)(?: that)? |note that |please note that "
    r"|(?:probably|apparently|likely|yes|also|in short|in summary),? ){1,4}",
    re.IGNORECASE,
)
"""Phrases with which models introduce a statement."""

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""Returns the similarity of a text to each of several texts, -1 to 1."""


def says_nothing_found(text: str) -> bool:
    """Whether a statement only says that the sources do not answer."""
    bare = text.strip().rstrip(".!。")
    return bool(_NOTHING_FOUND.fullmatch(bare)) and not _GOES_ON.search(bare)


def unsupported_reason(
    statement: Statement, sources: Sequence[Source], language: str = ENGLISH, similarity: Similarity | None = None
) -> str | None:
    """Return briefly why the cited sources do not support a statement, or None if they do.

    A statement needs no source if it only announces, with a colon, what follows.
    """
    cited = [source for source in sources if source.number in statement.cited]
    if statement.kind is StatementKind.CODE:
        return _unsupported_code(statement.text, cited)
    text = _ANNOUNCES.sub("", clean(statement.text))
    said = [read_unit(sentence, language) for sentence in sentences(text)]
    said = [each for each in said if each.whole.words or each.whole.numbers or each.whole.markers]
    if not said and text.rstrip().endswith(ANNOUNCING):
        return None
    if not cited:
        return NO_SOURCE
    if not said:
        return "its source does not say this"
    units = [(source.number, unit) for source in cited for unit in read_units(source, language)]
    for sentence in said:
        reason = _reason(sentence, units, similarity)
        parts = [replace(sentence, whole=clause, clauses=(clause,)) for clause in sentence.clauses]
        if reason and (len(parts) == 1 or any(_reason(part, units, similarity) for part in parts)):
            return reason
    return None


def _reason(said: Unit, units: Sequence[tuple[int, Unit]], similarity: Similarity | None) -> str | None:
    """Return why the unit nearest to a sentence does not support it; units have the number of their source."""
    ranked = sorted(units, key=lambda each: -_share(said, each[1]))[:_COMPARED_UNITS]
    if not ranked:
        return NO_SOURCE
    shares = [_share(said, unit) for _, unit in ranked]
    near = similarity(said.text, [unit.text for _, unit in ranked]) if similarity else [0.0] * len(ranked)
    best = max(range(len(ranked)), key=lambda at: shares[at] + near[at])
    number, unit = ranked[best]
    if fact := _other_fact(said, unit):
        return f'"{fact}" is not in its source'
    dropped, added = _other_markers(said, unit)
    if dropped:
        return f'its source restricts this: "{unit.whole.markers.get(min(dropped), min(dropped))}"'
    if added:
        return f'not in its source: "{said.whole.markers[min(added)]}"'
    of_source = [other for source, other in units if source == number]
    if _is_rearranged(said, unit, of_source):
        return "its source has these words, but does not say this"
    if similarity and (word := _added_word(said, unit, of_source, similarity)):
        return f'not in its source: "{word}"'
    is_like = shares[best] + near[best] >= MIN_LIKENESS if similarity else shares[best] >= MIN_SHARE
    return None if is_like else "its source is about something else"


def _added_word(said: Unit, nearest: Unit, of_source: Sequence[Unit], similarity: Similarity) -> str | None:
    """Return a word missing from the source, if there are many and none resembles a word that it may replace."""
    known = frozenset[str]().union(*(unit.whole.words | unit.above_words for unit in of_source))
    added = [word for stem, word in said.whole.spelled if stem not in known]
    instead = [word for stem, word in nearest.whole.spelled if stem not in said.whole.words]
    if len(added) < MAX_ADDED * max(len(said.whole.words), 1) or not instead or not added:
        return None
    return added[0] if max(max(similarity(word, instead)) for word in added) < MIN_WORD_SIMILARITY else None


def _share(said: Unit, unit: Unit) -> float:
    """Return the share of a sentence's words, numbers and names in a unit; words of the headings above the unit count half."""
    words, known = said.whole.words, unit.whole.words
    facts = said.whole.facts - words
    found = len(words & known) + len(words & unit.above_words - known) / 2 + _FACT_WEIGHT * len(facts & unit.whole.facts)
    total = len(words) + _FACT_WEIGHT * len(facts)
    return found / total if total else 0.0


def _other_fact(said: Unit, unit: Unit) -> str | None:
    """Return a number, name or word form of a sentence that a unit lacks or has with another unit of measurement."""
    everything = f"{fold(unit.text)} {unit.above}"
    for number in said.whole.numbers:
        measures = {other.unit for other in unit.whole.numbers if other.value == number.value}
        is_known = {number.unit, ""} & measures if measures else _has_word(unit.above, number.value)
        if not is_known and (number.unit or not measures):
            return number.text
    for name in sorted(said.whole.names):
        if not (name in everything if len(name) > 1 else _has_word(everything, name)):
            return name
    theirs = {form.partition("+")[0] for form in unit.whole.forms}
    others = (form for form in sorted(said.whole.forms - unit.whole.forms) if form.partition("+")[0] in theirs)
    return next((form.replace("+", "") for form in others), None)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w.,]){re.escape(word)}(?!\w)", text) is not None


def _other_markers(said: Unit, unit: Unit) -> tuple[set[str], set[str]]:
    """Return the negations, restrictions, obligations and permissions that a sentence leaves out, and those it adds."""
    own, unit_words = said.whole.markers.keys(), unit.whole.words
    dropped, added = set(unit.required - own), set[str]()
    values = {number.value for number in said.whole.numbers}
    for clause in said.clauses:
        theirs = _markers_of(_related(clause, unit), unit, values)
        dropped |= theirs - own
        added |= clause.markers.keys() - theirs
    for one, other in (*_ALIKE, *((other, one) for one, other in _ALIKE)):
        if one in added and other in dropped:
            added.discard(one)
            dropped.discard(other)
    if said.whole.words & unit.above_words - unit_words:
        added -= {"if", "while"} | unit.above_markers  # the heading is the condition
    if "unless" in own:
        added.discard("if")
    for changed, by in ((dropped, own), (added, unit.whole.markers.keys())):
        if "can" in by:
            changed.discard("may")
        if not by & _ALLOWING:
            changed.discard("must")
    return dropped - _MAY_BE_LEFT_OUT, added - _MAY_BE_ADDED


def _markers_of(related: Sequence[Clause], unit: Unit, values: set[str]) -> set[str]:
    """Return the markers that apply to clauses of a unit: their own, those above, and neighbouring conditions."""
    found = set(unit.required)
    for clause in related:
        is_measured = clause is related[0] or any(number.value in values for number in clause.numbers)
        found |= clause.markers.keys() - (frozenset() if is_measured else _OF_NUMBERS)
    for one, other in pairwise(unit.clauses):
        found |= other.leading & _GOVERNING if one in related else frozenset()
        found |= one.leading & _GOVERNING if other in related else frozenset()
    return found


def _related(clause: Clause, unit: Unit) -> list[Clause]:
    """Return the clauses of a unit that a clause of a sentence refers to, nearest first, then those with its other words."""
    left, first, related = clause.facts, set(clause.order[:1]), list[Clause]()
    while left and unit.clauses:
        best = max(unit.clauses, key=lambda each: (len(left & each.facts), not first.isdisjoint(left & each.facts)))
        if not left & best.facts:
            break
        related.append(best)
        left -= best.facts
    return related or list(unit.clauses)


def _is_rearranged(said: Unit, unit: Unit, of_source: Sequence[Unit]) -> bool:
    """Whether a sentence joins words of different clauses or rows, or swaps subject and object."""
    of_rows = frozenset[str]().union(*(other.subject for other in of_source))
    if said.whole.facts & of_rows - unit.whole.facts - unit.above_words:
        return True
    if unit.subject:
        return unit.subject.isdisjoint(said.whole.facts)
    for clause in said.clauses:
        best, *others = _related(clause, unit)
        for other in others:
            mixed = clause.facts & other.facts - best.facts
            comes_later = unit.clauses.index(other) > unit.clauses.index(best)
            if not (comes_later and best.facts - said.whole.facts):
                mixed -= clause.words
            if mixed and other.facts - said.whole.facts:
                return True
        if "," not in said.text and _is_turned(clause, best):
            return True
    return False


def _is_turned(clause: Clause, other: Clause) -> bool:
    """Whether subject and object are swapped, or unchanged although a passive verb became active."""
    ours = [word for word in clause.order if word in other.words]
    theirs = [word for word in other.order if word in clause.words]
    if len(ours) < _MIN_ORDERED:
        return False
    if ours == theirs:
        return other.has_agent and not clause.has_agent
    is_end = clause.is_ordered and ours[0] in theirs[len(theirs) // 2 :] and ours[-1] == theirs[0]
    return is_end and clause.has_agent == other.has_agent


def _unsupported_code(text: str, cited: Sequence[Source]) -> str | None:
    if not cited:
        return NO_SOURCE
    shown = {" ".join(line.split()) for source in cited for line in source.text.splitlines()}
    shown |= {code for source in cited for code in re.findall(r"`([^`\n]+)`", source.text)}
    for line in filter(None, (" ".join(line.split()) for line in text.splitlines())):
        if line not in shown:
            return f'"{line if len(line) <= 60 else f"{line[:57]}…"}" is not in its source'
    return None
