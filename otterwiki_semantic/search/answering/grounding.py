"""Whether the sources that a statement names say what it says.

A statement is compared with the nearest unit of its sources: a sentence, an item of a list, a row of a table. Its numbers,
names and code have to stand there; what negates, restricts, obliges or allows has to be the same; and it has to be about as
similar as paraphrases are. Tense, irony, and what follows from two sentences are not seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from otterwiki_semantic.content.analysis import fold
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.search.answering.plain import clean
from otterwiki_semantic.search.answering.sources import Source
from otterwiki_semantic.search.answering.statements import Statement, StatementKind
from otterwiki_semantic.search.answering.units import Clause, Unit, read_unit, read_units, sentences

MIN_LIKENESS = 1.2
"""Of a sentence and the nearest unit: the share of its words that stand there, and the similarity of both, together."""
MIN_SHARE = 0.6
"""The share alone, where no model compares them."""
MAX_ADDED = 0.25
"""Share of words that a source has nowhere, from which on one of them has to be about what it stands for."""
MIN_WORD_SIMILARITY = 0.38
"""Similarity of such a word with a word of the nearest unit."""
NO_SOURCE = "names no source"
_COMPARED_UNITS = 6
"""Units that are embedded for each sentence: those that share most words with it."""
_FACT_WEIGHT = 2
"""Words that a number or name is worth when the nearest unit is looked for."""
_MIN_ORDERED = 3
"""Words that two clauses have in common before their order counts."""
_GOVERNING = frozenset({"if", "unless", "unreal", "instead"})
"""Markers that hold for the clauses beside the one that they begin."""
_OF_NUMBERS = frozenset({"about", "least", "most", "above", "below"})
"""Markers that say something of a number."""
_ALIKE = (("not", "deny"), ("must", "deny"), ("above", "after"))
"""Markers that may stand for each other."""
_ALLOWING = frozenset({"can", "may"})
"""What *must* contradicts; that it is added to a mere statement, or left out, is the style of a text."""
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
    r"|(?:probably|apparently|likely|yes|also|in short|in summary),? )++",
    re.IGNORECASE,
)
"""What a model says before it says something."""

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""Return the similarity of a text with each of some others, -1 to 1."""
_Units = Sequence[tuple[int, Unit]]
"""Units with the number of their source."""


def says_nothing_found(text: str) -> bool:
    """Whether a statement only says that the sources do not answer, which needs no source."""
    bare = text.strip().rstrip(".!。")
    return bool(_NOTHING_FOUND.fullmatch(bare)) and not _GOES_ON.search(bare)


def unsupported_reason(
    statement: Statement, sources: Sequence[Source], language: str = ENGLISH, similarity: Similarity | None = None
) -> str | None:
    """Return why the sources that a statement names do not support it, in a few words; None if they do.

    One that only announces what follows it with a colon, or that says that the sources do not answer, needs none.
    """
    cited = [source for source in sources if source.number in statement.cited]
    if statement.kind is StatementKind.CODE:
        return _unsupported_code(statement.text, cited)
    if says_nothing_found(statement.text):
        return None
    text = _ANNOUNCES.sub("", clean(statement.text))
    said = [read_unit(sentence, language) for sentence in sentences(text)]
    said = [each for each in said if each.whole.words or each.whole.numbers or each.whole.markers]
    if not said:
        announces = text.rstrip().endswith((":", "："))
        return None if announces else NO_SOURCE if not cited else "its source does not say this"
    if not cited:
        return NO_SOURCE
    units = [(source.number, unit) for source in cited for unit in read_units(source, language)]
    for sentence in said:
        reason = _reason(sentence, units, similarity)
        parts = [replace(sentence, whole=clause, clauses=(clause,)) for clause in sentence.clauses]
        if reason and (len(parts) == 1 or any(_reason(part, units, similarity) for part in parts)):
            return reason
    return None


def _reason(said: Unit, units: _Units, similarity: Similarity | None) -> str | None:
    """Return why the unit that is nearest to a sentence does not say it."""
    ranked = sorted(units, key=lambda each: -_share(said, each[1]))[:_COMPARED_UNITS]
    if not ranked:
        return NO_SOURCE
    shares = [_share(said, unit) for _, unit in ranked]
    near = similarity(said.text, [unit.text for _, unit in ranked]) if similarity else [0.0] * len(ranked)
    best = max(range(len(ranked)), key=lambda at: shares[at] + near[at])
    number, unit = ranked[best]
    if fact := _other_fact(said, unit):
        return f'"{fact}" does not stand in its source'
    dropped, added = _other_markers(said, unit)
    if dropped:
        return f'its source restricts this: "{unit.whole.markers.get(min(dropped), min(dropped))}"'
    if added:
        return f'not in its source: "{said.whole.markers[min(added)]}"'
    if _is_rearranged(said, unit):
        return "its source has these words, but does not say this"
    if similarity and (word := _added_word(said, number, units, _without(unit, said.whole.words), similarity)):
        return f'not in its source: "{word}"'
    is_like = shares[best] + near[best] >= MIN_LIKENESS if similarity else shares[best] >= MIN_SHARE
    return None if is_like else "its source is about something else"


def _added_word(said: Unit, number: int, units: _Units, instead: Sequence[str], similarity: Similarity) -> str | None:
    """Return a word that a source has nowhere, if there are many such, and none is like one that stands in its place."""
    known = frozenset[str]().union(*(unit.whole.words | unit.above_words for source, unit in units if source == number))
    added = _without(said, known)
    if len(added) < MAX_ADDED * max(len(said.whole.words), 1) or not instead or not added:
        return None
    return added[0] if max(max(similarity(word, instead)) for word in added) < MIN_WORD_SIMILARITY else None


def _without(unit: Unit, known: frozenset[str]) -> list[str]:
    """Return the words of a unit whose stems are not among some."""
    return [word for stem, word in unit.whole.spelled if stem not in known]


def _share(said: Unit, unit: Unit) -> float:
    """Return the share of a sentence's words, numbers and names that a unit has; words above it count half."""
    words, known = said.whole.words, unit.whole.words
    facts = said.whole.facts - words
    found = len(words & known) + len(words & unit.above_words - known) / 2 + _FACT_WEIGHT * len(facts & unit.whole.facts)
    total = len(words) + _FACT_WEIGHT * len(facts)
    return found / total if total else 0.0


def _other_fact(said: Unit, unit: Unit) -> str | None:
    """Return what of a sentence's numbers, names and word forms a unit has not, or has with another unit of measurement."""
    everything = f"{fold(unit.text)} {unit.above}"
    for number in said.whole.numbers:
        measures = {other.unit for other in unit.whole.numbers if other.value == number.value}
        is_above = _stands_in(number.value, unit.above)
        if not (not number.unit or {number.unit, ""} & measures if measures else is_above):
            return number.text
    for name in sorted(said.whole.names):
        if not (name in everything if len(name) > 1 else _stands_in(name, everything)):
            return name
    return _other_form(said, unit)


def _stands_in(fact: str, text: str) -> bool:
    """Whether a text has a number or a name as a word of its own."""
    return re.search(rf"(?<![\w.,]){re.escape(fact)}(?!\w)", text) is not None


def _other_form(said: Unit, unit: Unit) -> str | None:
    """Return a word of a sentence of whose stem a unit only has another word."""
    theirs = {form.partition("+")[0] for form in unit.whole.forms}
    return next(
        (form.replace("+", "") for form in sorted(said.whole.forms - unit.whole.forms) if form.partition("+")[0] in theirs),
        None,
    )


def _other_markers(said: Unit, unit: Unit) -> tuple[set[str], set[str]]:
    """Return what a sentence leaves out, and what it adds, of what negates, restricts, obliges or allows."""
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
        added -= {"if", "while"} | unit.above_markers  # a heading says when
    if "unless" in own:
        added.discard("if")
    for changed, by in ((dropped, own), (added, unit.whole.markers.keys())):
        if "can" in by:
            changed.discard("may")
        if not by & _ALLOWING:
            changed.discard("must")
    return dropped - _MAY_BE_LEFT_OUT, added - _MAY_BE_ADDED


def _markers_of(related: Sequence[Clause], unit: Unit, values: set[str]) -> set[str]:
    """Return the markers that hold for clauses of a unit: theirs, those above them, and conditions that stand beside them."""
    found = set(unit.required)
    for clause in related:
        is_measured = clause is related[0] or any(number.value in values for number in clause.numbers)
        found |= clause.markers.keys() - (frozenset() if is_measured else _OF_NUMBERS)
    for one, other in pairwise(unit.clauses):
        found |= other.leading & _GOVERNING if one in related else frozenset()
        found |= one.leading & _GOVERNING if other in related else frozenset()
    return found


def _related(clause: Clause, unit: Unit) -> list[Clause]:
    """Return the clauses of a unit that a clause of a sentence speaks of: the nearest first, then those with the rest of it."""
    left, first, related = clause.facts, set(clause.order[:1]), list[Clause]()
    while left and unit.clauses:
        best = max(unit.clauses, key=lambda each: (len(left & each.facts), not first.isdisjoint(left & each.facts)))
        if not left & best.facts:
            break
        related.append(best)
        left -= best.facts
    return related or list(unit.clauses)


def _is_rearranged(said: Unit, unit: Unit) -> bool:
    """Whether a sentence joins words of different clauses or rows, or has subject and object in each other's place."""
    if unit.subject:
        return unit.subject.isdisjoint(said.whole.facts)
    for clause in said.clauses:
        best, *others = _related(clause, unit)
        for other in others:
            mixed = clause.facts & other.facts - best.facts
            if not (_comes_later(other, best, unit) and best.facts - said.whole.facts):
                mixed -= clause.words
            if mixed and other.facts - said.whole.facts:
                return True
        if "," not in said.text and _is_turned(clause, best):
            return True
    return False


def _comes_later(one: Clause, other: Clause, unit: Unit) -> bool:
    return unit.clauses.index(one) > unit.clauses.index(other)


def _is_turned(clause: Clause, other: Clause) -> bool:
    """Whether subject and object have changed places, or the verb has become active without that."""
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
            return f'"{line if len(line) <= 60 else f"{line[:57]}…"}" does not stand in its source'
    return None
