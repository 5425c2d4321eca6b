"""The units in which statements and sources are compared: sentences, items and rows with words, numbers, names and markers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import chain, islice, pairwise
from typing import NamedTuple

from rapidfuzz.distance import Prefix

from otterwiki_semantic.content.analysis import ANNOUNCING, fold, function_words, sentence_ranges, words
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.search.answering.languages import Language, vocabulary
from otterwiki_semantic.search.answering.plain import plain_text
from otterwiki_semantic.search.answering.sources import Source
from otterwiki_semantic.search.answering.statements import Statement, StatementKind, parsed_statements

_LITERAL = re.compile(
    r"https?://[^\s<>\"']++|[\w.+-]{1,64}+@[\w-]++(?:\.[\w-]++)+|(?<![\w/])[~.]{0,2}/[\w.@:+~%*-]"
    r"[\w./@:+~%*?=&-]*+"
    r"|(?<![^\s(])--?[A-Za-z][\w-]*+|(?<!\w)[^\W\d_][^\W_]{0,40}+(?:(?:[_/\\@=]|::|\.(?=\w)|-(?=\d))[^\W_]{1,40}+){1,20}"
    r"|(?<!\w)[^\W\d_]{1,20}+-?\d\w{0,20}+|(?<!\w)[a-z]{1,20}+[A-Z]\w{0,20}+|(?<!\w)[A-Z]{2,20}+(?!\w)"
    r"|(?<=\w )(?!I\b)[A-Z](?!\w)"
)
"""Addresses, paths, options, identifiers and acronyms."""
_CAPITALISED = re.compile(r"(?<=[\w,;»”] )[A-ZÀ-Þ][\w-]++")
_NUMBER = re.compile(
    r"(?<![\w.,/:-])(?P<currency>[€$£]\s?)?(?P<value>[-\u2212]?\d++(?:[.,:/’'-]\d++|h\d\d){0,6})"
    r"(?P<sign>\s?(?:[%‰€$£]|°\s?[CF]?))?(?:[\s-]?(?P<unit>[^\W\d_]++(?:/s)?[²³]?))?"
)
_RANGE = re.compile(r"(?<=\d)\s*+(?:to|bis|à|\u2013|-)\s*+(?=\d)")
_THOUSANDS = re.compile(r"(?<=\d)[.,’'](?=\d{3}(?!\d))")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]++([^\n]*)$", re.MULTILINE)
_FIRST_CELL = re.compile(r"[^;:]{1,40}: ([^;]{0,200}+); [^;:]{1,40}: ")
_DIGITS = re.compile(r"\d++")
_LEADING_ZERO = re.compile(r"^0(?=\d:)")
_LETTERS = frozenset("cdjlmnst") | {"qu"}
"""Elided prefixes before apostrophes."""
_LATEST_NEGATION = 11
"""Where a negation of a heading may begin, as in *Do not*; other restricting markers only at the beginning."""
_TELLING_WHEN = (" when ", " wenn ", " quand ")
"""Words before which a heading is a title, not a condition."""
_MIN_WORDS = 2
"""Words and numbers of a clause; a shorter one is merged with the clause before it."""
_MAX_CLAUSES = 20
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_MAX_UNITS = 2_000
_KEPT_SOURCES = 64
_RESTRICTING = frozenset({"not", "only", "if", "unless", "unreal"})
"""Markers of a heading that change the meaning of the text below it."""
_LONGEST_ABBREVIATION = 3
"""Letters of units whose case counts, such as *mW*."""


class Number(NamedTuple):
    """A number, normalised for comparison."""

    value: str
    unit: str
    """A sign, an abbreviation as written, or a stem; empty without a unit."""
    text: str
    """As written, with its unit."""


@dataclass(frozen=True)
class Clause:
    """A sentence or part of a sentence."""

    spelled: tuple[tuple[str, str], ...]
    """Stems with their words, in order, without function words."""
    forms: frozenset[str]
    """Stems with an ending that forms a different word, such as *author+ity*; otherwise plain stems."""
    markers: Mapping[str, str]
    """Negations, restrictions, obligations and permissions, with their folded words."""
    leading: frozenset[str]
    """Markers at the beginning of the clause."""
    numbers: tuple[Number, ...]
    names: frozenset[str]
    """Folded names, dates and code."""
    has_agent: bool
    """Whether a passive verb has an agent."""
    is_ordered: bool
    """Whether word order determines subject and object."""

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Stems in order."""
        return tuple(stem for stem, _ in self.spelled)

    @cached_property
    def words(self) -> frozenset[str]:
        """Stems of all content words."""
        return frozenset(self.order)

    @cached_property
    def facts(self) -> frozenset[str]:
        """Words, names and the values of numbers."""
        return self.words | self.names | {number.value for number in self.numbers}


@dataclass(frozen=True)
class Unit:
    """A sentence, an item of a list, a row of a table or a line of code."""

    text: str
    whole: Clause
    """The whole unit as one clause."""
    clauses: tuple[Clause, ...]
    above: str = ""
    """Folded title and headings above the unit, and the text that announces it."""
    above_words: frozenset[str] = frozenset()
    above_markers: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    """Markers above the unit that change its meaning, such as the negation of *Never do this:*."""
    subject: frozenset[str] = frozenset()
    """The content of a row's first cell; empty if the unit is not a row."""
    is_whole: bool = True
    """Whether the unit is a sentence of a paragraph that can be understood without the previous one."""


def read_unit(text: str, language: str) -> Unit:
    """Return a sentence, parsed for comparison."""
    known = vocabulary(language)
    starts = [0, *(match.start() for match in known.joins.finditer(text)), len(text)]
    parts: list[str] = []
    for start, end in pairwise(starts):
        piece = text[start:end]
        is_own = len(parts) < _MAX_CLAUSES and (
            known.negation.search(fold(piece)) or min(_count(each, language) for each in (piece, *parts[-1:])) >= _MIN_WORDS
        )
        if is_own or not parts:
            parts.append(piece)
        else:
            parts[-1] += piece
    clauses = tuple(_clause(part, language, known) for part in parts)
    whole = replace(
        clauses[0],
        spelled=tuple(chain.from_iterable(each.spelled for each in clauses)),
        forms=frozenset[str]().union(*(each.forms for each in clauses)),
        markers={marker: shown for each in reversed(clauses) for marker, shown in each.markers.items()},
        numbers=tuple(chain.from_iterable(each.numbers for each in clauses)),
        names=frozenset[str]().union(*(each.names for each in clauses)),
    )
    return Unit(text, whole, clauses)


@lru_cache(_KEPT_SOURCES)
def read_units(source: Source, language: str) -> tuple[Unit, ...]:
    """Return the units of a source, each with the text above it and the sentence that it continues."""
    return tuple(islice(_units_of(source, language), _MAX_UNITS))


def _units_of(source: Source, language: str) -> Iterator[Unit]:
    for headings, text in _sections(source):
        required = _restrictions(headings[-1], language) if headings else frozenset[str]()
        template = _below(replace(read_unit("", language), required=required), " . ".join((source.title, *headings)), language)
        yield from _units(parsed_statements([text], 0), template, language)


def _restrictions(heading: str, language: str) -> frozenset[str]:
    """Return the markers of a heading that restrict the text below it: at its beginning, or *myths* anywhere."""
    folded = f" {fold(heading)}"
    if folded.startswith(_TELLING_WHEN):
        return frozenset()
    found = read_unit(heading, language).whole.markers
    begins = {
        name for name, each in found.items() if 0 <= folded.find(f" {each}") <= (_LATEST_NEGATION if name == "not" else 0)
    }
    return frozenset((begins | {"unreal"}) & found.keys() & _RESTRICTING)


def _sections(source: Source) -> Iterator[tuple[list[str], str]]:
    """Yield the parts of a source between headings, with the headings above them."""
    inner: list[str] = []
    start = 0
    for match in _HEADING.finditer(source.text):
        if len(_FENCE.findall(source.text, 0, match.start())) % 2:
            continue  # a comment in code
        yield [*source.headings, *inner], source.text[start : match.start()]
        inner = [*inner[: max(len(match[1]) - 2, 0)], plain_text(match[2].rstrip("# "))]
        start = match.end()
    yield [*source.headings, *inner], source.text[start:]


def _units(statements: Iterable[Statement], template: Unit, language: str) -> Iterator[Unit]:
    """Yield the units between two headings."""
    pronouns = vocabulary(language).pronouns
    announced, previous, block = template, "", -1
    for statement in statements:
        is_code, is_item = statement.kind is StatementKind.CODE, statement.kind is StatementKind.ITEM
        for text in statement.text.splitlines() if is_code else sentences(statement.text):
            continues = not pronouns.isdisjoint(fold(text).split()[:1])
            above = announced if (is_item or is_code) and block in {-1, statement.block} else template
            if previous and (continues or is_code):
                above = _below(above, previous, language)
            cell = _FIRST_CELL.match(text) if is_item else None
            own = read_unit(text, language)
            yield replace(
                above,
                text=text,
                whole=own.whole,
                clauses=own.clauses,
                subject=read_unit(cell[1], language).whole.facts if cell else frozenset(),
                is_whole=not (continues or is_code or is_item),
            )
            previous = previous if is_code else text
        block = statement.block if is_item or is_code else -1
        if previous.endswith(ANNOUNCING):
            block = -1
            below = _below(template, previous, language)
            announced = replace(below, required=template.required | below.above_markers - template.above_markers)
        elif not is_item:
            announced = template


def _below(unit: Unit, text: str, language: str) -> Unit:
    """Return a unit with one more text above it."""
    own = read_unit(text, language).whole
    return replace(
        unit,
        above=f"{unit.above} {fold(text)}",
        above_words=unit.above_words | own.words,
        above_markers=unit.above_markers | own.markers.keys(),
    )


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [text[start:end] for start, end in sentence_ranges(text)]


def _clause(text: str, language: str, known: Language) -> Clause:
    folded = fold(known.with_digits(text))
    markers = {name: match[0] for name, pattern in known.markers.items() if (match := pattern.search(folded))}
    begins = known.joins.sub(" ", folded).lstrip()
    found = [*_LITERAL.findall(text), *known.dates.findall(folded)]
    if known.capitals_name:
        found += _CAPITALISED.findall(text)
    pairs = _words(text, language)
    return Clause(
        spelled=tuple(pairs),
        forms=frozenset(_form(stem, word, known.endings) for stem, word in pairs),
        markers=markers,
        leading=frozenset(name for name in markers if known.markers[name].match(begins)),
        numbers=tuple(_numbers(text, language, known)),
        names=frozenset(fold(each).rstrip(".,:;!?") for each in found),
        has_agent=bool(known.agent.search(folded)),
        is_ordered=known.is_ordered,
    )


def _words(text: str, language: str) -> list[tuple[str, str]]:
    """Return the content words, as stems and as spelled."""
    common = _common_stems(language)
    found = (pair for word in words(text, language) if not word.is_unigram for pair in zip(word.parts, word.exact, strict=True))
    return [(stem, word) for stem, word in found if not stem[0].isdigit() and stem not in common]


def _form(stem: str, word: str, endings: frozenset[str]) -> str:
    """Return a stem, plus its word's ending if that forms a different word; without `endings` always the plain stem."""
    ending = word[Prefix.similarity(stem, word) :]
    ending = ending if ending in endings else ending.removesuffix("s").replace("ie", "y")
    return stem if not endings or ending in endings else f"{stem}+{ending}"


def _count(text: str, language: str) -> int:
    """Return the number of content words and numbers in a text."""
    return len(_words(text, language)) + len(_DIGITS.findall(text))


@cache
def _common_stems(language: str) -> frozenset[str]:
    stems = (part for each in function_words(language) for word in words(each, language) for part in word.parts)
    return frozenset(stems) | _LETTERS


def _numbers(text: str, language: str, known: Language) -> Iterator[Number]:
    joining = function_words(language) | function_words(ENGLISH)
    for match in _NUMBER.finditer(_RANGE.sub("-", known.with_digits(text))):
        value = _THOUSANDS.sub("", match["value"].replace("\u2212", "-").replace("h", ":"))
        sign = (match["sign"] or match["currency"] or "").replace(" ", "")
        unit = "" if sign or fold(match["unit"] or "") in joining else match["unit"] or ""
        if len(unit.split("/")[0]) > _LONGEST_ABBREVIATION:
            unit = next((part for word in words(unit, language) for part in word.parts), unit)
        shown = match[0] if sign or unit else match["value"]
        yield Number(_LEADING_ZERO.sub("", value.replace(",", ".")), sign or unit, shown.strip())
