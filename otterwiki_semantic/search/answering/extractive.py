"""Answer without a generative model, by quoting the best units of the passages.

The lead answers on its own: it has the number, time, person or command that the question asks for. Up to three more units are
added if they contribute something about it. A sentence that begins with a pronoun brings the previous one, and one before code
brings the code. If the best units are not near enough to the question, there is no answer. docs/ask.md has the accuracy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import chain, takewhile
from statistics import fmean
from typing import NamedTuple

from msgspec.structs import replace

from otterwiki_semantic.content import row_parts
from otterwiki_semantic.content.analysis import ANNOUNCING, QUESTION_MARKS, UNFINISHED, fold, sentence_ranges, words
from otterwiki_semantic.content.markdown import STRUCK
from otterwiki_semantic.core.records import Hit, HitUnit, Lead, UnitKind
from otterwiki_semantic.search.answering.languages import vocabulary
from otterwiki_semantic.search.answering.statements import StatementKind
from otterwiki_semantic.search.best_unit import AnswerType, answer_type, asks_for_several, has_answer, is_question

_MAX_MORE = 3
_MAX_WORDS = 64
"""Words of an answer, whose median is then at most 60; a longer lead is returned alone."""
_LEAST_ITEM_WORDS = 9
"""Words of a list item that is quoted as a further unit; a shorter one is mostly a label."""
_MAX_ITEMS = 20
"""Items of a list that is returned as an answer."""
_LONGEST_LIST = 800
"""Characters of a list that is returned as an answer; steps may be longer."""
_FALL, _FALL_OF_ROWS = 2.0, 3.0
"""How far the score of a further unit, or of another row of the lead's table, may be below the lead's."""
_NEAR = 0.5
"""The least similarity of a further unit with none of the question's words."""
_BREVITY = 0.5
"""The penalty for the log-length of a further unit, which the lead does not have, because few words are left."""
_PASSAGE_WEIGHT = 0.5
"""The weight of the passage's score in the score of a unit."""
_NEAREST = 3
_LEAST_SIMILARITY = 0.44
"""The least mean similarity of the three most similar units; fitted on judged questions."""
_LEAST_COVERAGE = 0.6
"""The least share of the question's words in the lead, if nothing is embedded."""
_REQUIRED = frozenset({AnswerType.NUMBER, AnswerType.TIME, AnswerType.PERSON, AnswerType.COMMAND})
"""Types that a lead must have. The other types are too uncertain to require and only raise a unit's score."""
_CELL = " | "
_MARKER = re.compile(r"\A\s*+(?:[-*+•]|\d{1,9}[.)])\s++")
_STRUCK_OUT = re.compile(r"~~(?:[^~\n]|~(?!~)|\n(?!\n))+(?:~~|\Z)")
_UNTICKED, _TICKED = re.compile(r"\A\[ \]"), re.compile(r"\A\[[xX]\] ")


class Extract(NamedTuple):
    """An answer quoted from one passage."""

    source: Hit
    """The passage, named after the unit's section, with the unit as its `best_sentence`."""
    texts: tuple[str, ...]
    """A single text, or the items of a list."""
    kind: StatementKind
    code: tuple[str, str] = ("", "")
    """A sentence that announces code, and the code, if they follow the text."""

    @property
    def statements(self) -> list[tuple[str, StatementKind]]:
        """All texts with their kinds."""
        announcement, code = self.code
        found = *((text, self.kind) for text in self.texts), (announcement, StatementKind.SENTENCE), (code, StatementKind.CODE)
        return [each for each in found if each[0]]


def extract_answer(question: str, hits: Sequence[Hit], languages: Sequence[str]) -> list[Extract]:
    """Return the lead, and up to three more extracts in the order of the results, which must have `units`, if any answers.

    The question tells a row apart from the others of its table, or they are part of the lead.
    """
    ranked = _ranked(hits, languages)
    lead, extracts = _lead_with_peers(question, ranked, languages)
    if lead is None:
        return []
    more: list[_Candidate] = []
    shown = " ".join(text for each in extracts for text, _ in each.statements).casefold()
    length = sum(len(text.split()) for each in extracts for text in each.texts)
    for candidate in sorted(ranked, key=lambda each: _BREVITY * math.log1p(len(each.text.split())) - each.score):
        each = candidate if not any(candidate.overlaps(other) for other in (lead, *more)) else candidate.bare
        text = each.text
        is_other = candidate is not lead and not each.shares_table(lead)
        is_about = each.unit.coverage > 0 or (each.unit.similarity or 0.0) >= _NEAR
        is_told = not text.endswith(UNFINISHED) and not each.is_label(languages)
        is_new = is_other and is_about and is_told and text.casefold() not in shown
        if is_new and each.score >= lead.score - _FALL and length + len(text.split()) <= _MAX_WORDS:
            more.append(each)
            shown += f"\n{text.casefold()}"
            length += len(text.split())
        if len(extracts) + len(more) > _MAX_MORE:
            break
    return [*extracts, *(each.extract() for each in sorted(more, key=lambda each: (hits.index(each.hit), each.unit.range)))]


def find_lead(question: str, hits: Sequence[Hit], languages: Sequence[str]) -> Lead | None:
    """Return the unit of the relevant results, which must have `units`, that answers a question on its own, if any does."""
    ranked = [each._replace(unit=replace(each.unit, code=None)) for each in _ranked(hits, languages)]  # a lead is short
    if not ranked or not is_question(question, languages):
        return None
    lead, extracts = _lead_with_peers(question, ranked, languages)
    texts = chain.from_iterable(each.texts for each in extracts)
    return None if lead is None else Lead("\n".join(texts), hits.index(lead.hit), lead.unit)


def _lead_with_peers(
    question: str, ranked: Sequence[_Candidate], languages: Sequence[str]
) -> tuple[_Candidate | None, list[Extract]]:
    """Return the lead, or None, and what is quoted for it: itself or its list, or the rows that answer equally well."""
    asked = _Question.of(question, languages)
    lead = _lead(ranked, asked)
    return lead, [each.answer(asked) for each in _peers(lead, ranked)] if lead else []


def _ranked(hits: Iterable[Hit], languages: Sequence[str]) -> list[_Candidate]:
    pronouns = frozenset[str]().union(*(vocabulary(each).pronouns for each in languages))
    found: list[_Candidate] = []
    for hit in hits:
        if hit.relevant and hit.units:
            visible = hit.snippet
            if STRUCK in visible:
                visible = _STRUCK_OUT.sub(lambda match: " " * len(match[0]), visible)
            found += [_Candidate(hit, _in_context(unit, hit, pronouns), visible, unit) for unit in hit.units]
    return sorted((each for each in found if any(map(str.isalnum, each.text))), key=lambda each: -each.score)


def _in_context(unit: HitUnit, hit: Hit, pronouns: frozenset[str]) -> HitUnit:
    """Return a sentence with the one before it in the paragraph if it begins with a pronoun; a question with the next one."""
    start, end = unit.range
    if unit.kind is not UnitKind.SENTENCE:
        return unit
    if hit.snippet[:end].endswith(QUESTION_MARKS):
        after = sentence_ranges(hit.snippet[end:].partition("\n")[0])
        return replace(unit, range=(start, end + after[0][1])) if after else unit
    first = max(hit.snippet.rfind("\n", 0, start) + 1, hit.prefix_length)
    if pronouns.isdisjoint(fold(hit.snippet[start:end]).split()[:1]):
        return unit
    before = sentence_ranges(hit.snippet[:start], first)
    return replace(unit, range=(before[-1][0], end)) if before else unit


def _lead(ranked: Sequence[_Candidate], question: _Question) -> _Candidate | None:
    """Return the best unit that is complete in itself and has the required type of answer, or None if none is near enough.

    A unit that answers a question in the passage is near enough if that question is.
    """
    lead = next((each for each in ranked if each.answers(question)), None)
    near = [each.unit.similarity for each in ranked if each.unit.similarity is not None]
    if lead is None:
        return None
    if not near:
        return lead if lead.unit.coverage >= _LEAST_COVERAGE else None
    asked = [each.unit.similarity or 0.0 for each in ranked if each.asks and each.is_answered_by(lead)]
    return lead if max(fmean(nlargest(_NEAREST, near)), *asked, 0.0) >= _LEAST_SIMILARITY else None


def _peers(lead: _Candidate, ranked: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the rows of a table that have as many of the question's words as its row `lead`, in order; else the lead.

    If these are several, a short table is returned whole.
    """
    rows = {each.unit.range: each for each in ranked if each.shares_table(lead)}
    peers = [
        each for each in rows.values() if each.unit.coverage >= lead.unit.coverage and each.score >= lead.score - _FALL_OF_ROWS
    ]
    table = [rows.get(each.unit.range, each) for each in lead.table] if peers[1:] else []
    for quoted in (table, peers):
        if quoted and len(quoted) <= 1 + _MAX_MORE and sum(len(each.text.split()) for each in quoted) <= _MAX_WORDS:
            return sorted(quoted, key=lambda each: each.unit.range)
    return [lead]


class _Question(NamedTuple):
    kind: AnswerType | None
    longest_list: float
    """Characters of a list that answers it whole: any number for steps, and none unless it asks for several things."""
    languages: Sequence[str]

    @classmethod
    def of(cls, text: str, languages: Sequence[str]) -> _Question:
        kind = answer_type(text, languages)
        longest = math.inf if kind is AnswerType.STEPS else _LONGEST_LIST if asks_for_several(text, languages) else 0
        return cls(kind, longest, languages)

    def is_answered_by(self, text: str) -> bool:
        """Whether a text has what an answer must have."""
        return self.kind not in _REQUIRED or has_answer(self.kind, text, self.languages)


class _Candidate(NamedTuple):
    hit: Hit
    unit: HitUnit
    visible: str
    """The passage without struck-out text."""
    own: HitUnit
    """The unit without the sentence before it, or after it."""

    @property
    def score(self) -> float:
        return self.unit.score + _PASSAGE_WEIGHT * self.hit.score

    @property
    def text(self) -> str:
        """The unit's text, readable on its own."""
        return self._text(self.unit.range)

    @property
    def bare(self) -> _Candidate:
        """The candidate with its unit alone."""
        return self._replace(unit=self.own)

    @property
    def asks(self) -> bool:
        """Whether the unit is a question."""
        return self._text(self.own.range).endswith(QUESTION_MARKS)

    def is_answered_by(self, other: _Candidate) -> bool:
        """Whether the unit, a question, is quoted with another one, or announces it as an item of a list."""
        return self.overlaps(other) or (self.hit is other.hit and other.own.range in self.unit.items)

    def overlaps(self, other: _Candidate) -> bool:
        """Whether both have a part of the passage."""
        (start, end), (first, last) = self.unit.range, other.unit.range
        return self.hit is other.hit and start < last and first < end

    def shares_table(self, other: _Candidate) -> bool:
        """Whether both are rows of the same table."""
        is_row = self.unit.kind is UnitKind.ROW is other.unit.kind
        return is_row and self.hit is other.hit and self.unit.header == other.unit.header

    @property
    def table(self) -> list[_Candidate]:
        """All rows of the unit's table that are not struck out, without scores; none if the passage lacks its header."""
        if self.unit.header is None:
            return []
        found, snippet, start = list[_Candidate](), self.hit.snippet, self.unit.header[1] + 1
        line = self.unit.start_line - snippet.count("\n", start, self.unit.range[0])
        for row in takewhile(lambda row: _CELL in f" {row} ", snippet[start:].split("\n")):
            place = {"range": (start, start + len(row)), "start_line": line, "end_line": line}
            unit = replace(self.unit, **place, score=0.0, similarity=None, coverage=0.0)
            found.append(self._replace(unit=unit, own=unit))
            start, line = start + len(row) + 1, line + 1
        return [each for each in found if any(map(str.isalnum, each.text))]

    def is_label(self, languages: Sequence[str]) -> bool:
        """Whether the unit is a list item too short to be understood without the list."""
        return self.unit.kind is UnitKind.ITEM and sum(1 for _ in words(self.text, languages[0])) < _LEAST_ITEM_WORDS

    def is_listed_for(self, question: _Question) -> bool:
        """Whether the whole list of the unit answers a question."""
        return bool(self.unit.items) and sum(end - start for start, end in self.unit.items) <= question.longest_list

    def answers(self, question: _Question) -> bool:
        """Whether the unit is complete in itself and has the type of answer that the question asks for."""
        if self.is_listed_for(question):
            return question.is_answered_by(" ".join(map(self._text, self.unit.items)))
        text, (_, code) = self.text, self.code
        is_finished = not text.endswith(UNFINISHED) or (text.endswith(ANNOUNCING) and bool(code))
        told = self._text((self.own.range[1], self.unit.range[1])) if self.asks else text
        told = f"{told}\n{code}" if question.kind is AnswerType.COMMAND else told
        return is_finished and question.is_answered_by(told)

    def answer(self, question: _Question) -> Extract:
        """Return the answer to a question: the unit, or its list."""
        if not self.is_listed_for(question):
            return self.extract()._replace(code=self.code)
        return Extract(self.hit.at(self.unit), tuple(map(self._text, self.unit.items[:_MAX_ITEMS])), StatementKind.ITEM)

    def extract(self) -> Extract:
        """Return the unit alone."""
        kind = StatementKind.CODE if self.unit.kind is UnitKind.CODE else StatementKind.SENTENCE
        return Extract(self.hit.at(self.unit), (self.text,), kind)

    @property
    def code(self) -> tuple[str, str]:
        """The sentence between the unit and the code that follows it, and the code; empty texts if there is none."""
        if self.unit.code is None:
            return "", ""
        start, end = self.unit.code
        return " ".join(self.visible[self.unit.range[1] : start].split()), self.hit.snippet[start:end]

    def _text(self, place: tuple[int, int]) -> str:
        """Return a unit that is readable on its own; rows get the names of their columns."""
        if self.unit.kind is UnitKind.CODE:
            return self.hit.snippet[slice(*place)]
        text = self.visible[slice(*place)]
        if self.unit.kind is not UnitKind.ROW:
            return " ".join(_TICKED.sub("", _UNTICKED.sub("☐", _MARKER.sub("", text))).split())
        header = self.visible[slice(*self.unit.header)] if self.unit.header else ""
        cells, names = ([cell.strip() for cell in f" {row} ".split(_CELL)] for row in (text, header))
        if cells[0].islower() and cells[0].isalpha():
            cells[0] = cells[0].capitalize()
        return "".join(row_parts(cells, names))
