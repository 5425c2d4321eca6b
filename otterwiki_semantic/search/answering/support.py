"""Whether the sources that a statement names say what it says.

The check is strict: whatever it calls supported stands in a source, in the same words but for endings, with the same numbers,
names, negations and restrictions, in one sentence, item or row of a table. Some true paraphrases do not pass. It compares words
and order; what follows from them, it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.search.answering.alignment import Comparison, Fit, compare
from otterwiki_semantic.search.answering.evidence import Evidence, Unit, read_source, sentences
from otterwiki_semantic.search.answering.plain import clean
from otterwiki_semantic.search.answering.source import Source
from otterwiki_semantic.search.answering.statements import Statement, StatementKind
from otterwiki_semantic.search.answering.tokens import Token, TokenKind, tokens
from otterwiki_semantic.search.answering.vocabulary import COORDINATORS

MIN_SIMILARITY = 0.35
"""Similarity of a statement with its evidence, on the bundled model's scale, below which it is not supported."""
NO_SOURCE = "names no source"
TOO_LONG = "is too long to be checked"
_MAX_TOKENS = 150
"""Words of a sentence that are compared; a longer one is not supported."""
_MAX_PARTS, _MAX_DIVISIONS = 4, 6
_SHOWN_WORDS = 4
_COMPARED_UNITS = 5
_KEPT_SOURCES = 64
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

_Place = tuple[int, int]
"""The number of a source and the place of a unit in it."""
Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""Return the similarity of a text with each of some others, -1 to 1."""


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
        return _unsupported_code(statement.text, cited, language)
    if says_nothing_found(statement.text):
        return None
    parts = [
        found for sentence in sentences(_ANNOUNCES.sub("", clean(statement.text))) if (found := tokens(sentence, language))
    ]
    asserted = [token for part in parts for token in part if token.is_content or token.is_strict]
    if not any(token.is_content for token in asserted):
        announces = not asserted and statement.text.rstrip().endswith((":", "："))
        return None if announces else NO_SOURCE if not cited else _not_said(cited[0].number)
    if not cited:
        return NO_SOURCE
    if any(len(part) > _MAX_TOKENS for part in parts):
        return TOO_LONG
    evidence = [_evidence(source, language) for source in cited]
    if reason := _unsupported_parts(parts, evidence):
        return reason
    return _unlike(statement.text, parts, evidence, similarity)


def _unsupported_parts(parts: Sequence[Sequence[Token]], evidence: Sequence[Evidence]) -> str | None:
    previous: _Place | None = None
    for part in parts:
        found = _support(part, evidence, previous)
        if found is None:
            return _reason(part, evidence)
        previous = found
    return None


def _support(
    part: Sequence[Token], evidence: Sequence[Evidence], previous: _Place | None, parts: int = _MAX_PARTS
) -> _Place | None:
    """Return source and place of the unit that supports a sentence, or the last one of those that support its parts."""
    for each in evidence:
        for unit in each.units:
            if compare(part, unit).fit is Fit.SUPPORTED:
                return each.number, unit.place
    for at in islice(_divisions(part), _MAX_DIVISIONS if parts > 1 else 0):
        first = _support_whole(part[:at], evidence, previous)
        if (
            first is not None
            and (rest := _support(part[at:], _following(evidence, part[at:], first), first, parts - 1)) is not None
        ):
            return rest
    return None


def _support_whole(part: Sequence[Token], evidence: Sequence[Evidence], previous: _Place | None) -> tuple[int, int] | None:
    for each in _following(evidence, part, previous):
        for unit in each.units:
            if compare(part, unit).fit is Fit.SUPPORTED:
                return each.number, unit.place
    return None


def _following(evidence: Sequence[Evidence], part: Sequence[Token], previous: _Place | None) -> Sequence[Evidence]:
    """Return what a part may rest on that follows another: units that say what they speak of, from their beginning."""
    if previous is None:
        return evidence
    return [Evidence(each.number, tuple(_usable(each, part, previous)), each.code, each.text) for each in evidence]


def _usable(evidence: Evidence, part: Sequence[Token], previous: _Place) -> Iterator[Unit]:
    for unit in evidence.units:
        first = next((token for token in unit.tokens if token.is_content), None)
        begins = first is not None and any(token.key == first.key for token in part[:2])
        if begins and (not unit.continues or (evidence.number, unit.place - 1) == previous):
            yield unit


def _divisions(part: Sequence[Token]) -> Iterator[int]:
    """Yield where a sentence may be divided: between coordinate clauses that have two words of their own."""
    for at in range(2, len(part) - 1):
        if part[at - 1].ends_part and (part[at - 1].stop in {";", "；"} or COORDINATORS & set(part[at].before)):
            yield at


def _reason(part: Sequence[Token], evidence: Sequence[Evidence]) -> str:
    """Return what the nearest unit lacks, in words for people."""
    number, best = _nearest(part, evidence)
    whole = next(each for each in evidence if each.number == number)
    keys = {token.key for unit in whole.units for token in unit.tokens}.union(*(unit.context for unit in whole.units))
    absent = [token for token in best.missing if token.key not in keys] or list(best.missing)
    figures = [token for token in absent if token.kind is TokenKind.NUMBER]
    if figures:
        return f'"{figures[0].text}" does not stand in source {number}'
    if absent:
        negated = [token for token in absent if token.kind is TokenKind.NEGATION]
        shown = dict.fromkeys(token.text for token in (negated or absent))
        return f"not in source {number}: {_quoted(shown)}"
    if best.fit is Fit.RESTRICTED and best.dropped:
        shown = dict.fromkeys(token.text.strip("<>") for token in best.dropped)
        return f"source {number} restricts this: {_quoted(shown)}"
    return _not_said(number)


def _quoted(shown: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in islice(shown, _SHOWN_WORDS))


def _not_said(number: int) -> str:
    return f"source {number} has these words, but does not say this"


def _nearest(part: Sequence[Token], evidence: Sequence[Evidence]) -> tuple[int, Comparison]:
    compared = [(each.number, compare(part, unit)) for each in evidence for unit in each.units]
    if not compared:
        missing = tuple(token for token in part if token.is_content)
        return evidence[0].number, Comparison(Fit.OTHER_WORDS, missing)
    return max(compared, key=lambda pair: (pair[1].fit, -len(pair[1].missing)))


def _unlike(
    text: str, parts: Sequence[Sequence[Token]], evidence: Sequence[Evidence], similarity: Similarity | None
) -> str | None:
    if similarity is None:
        return None
    keys = {token.key for part in parts for token in part}
    units = [unit for each in evidence for unit in each.units]
    nearest = sorted(units, key=lambda unit: -len(keys & {token.key for token in unit.tokens}))[:_COMPARED_UNITS]
    if max(similarity(text, [unit.text for unit in nearest]), default=1.0) >= MIN_SIMILARITY:
        return None
    return f"source {evidence[0].number} is about something else"


def _unsupported_code(text: str, cited: Sequence[Source], language: str) -> str | None:
    if not cited:
        return NO_SOURCE
    evidence = [_evidence(source, language) for source in cited]
    for line in filter(None, map(str.strip, text.splitlines())):
        if not any(line in each.code or " ".join(line.split()) in each.code for each in evidence):
            shown = line if len(line) <= 60 else f"{line[:57]}…"
            return f'"{shown}" does not stand in source {cited[0].number}'
    return None


@lru_cache(_KEPT_SOURCES)
def _evidence(source: Source, language: str) -> Evidence:
    return read_source(source, language)
