"""Answers without a model that writes: the units of the passages that answer best, as they stand.

The lead answers by itself: it has the number, time, person or command that the question asks for. Up to three more units add
something to it. If the best units are not near enough to the question, there is no answer; docs/ask.md says how often that is
right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from heapq import nlargest
from statistics import fmean
from typing import NamedTuple

from otterwiki_semantic.content.markdown import STRUCK
from otterwiki_semantic.core.records import Hit, HitUnit, Lead, UnitKind
from otterwiki_semantic.search.answer_type import AnswerType, answer_type, has_answer, is_question
from otterwiki_semantic.search.answering.statements import StatementKind

_MAX_MORE = 3
_MAX_WORDS = 64
"""Of an answer, which then has up to 60 in the median; a longer lead stands alone."""
_MAX_ITEMS = 20
"""Of the list that is an answer."""
_FALL = 3.0
"""How much worse than the lead a further unit may be."""
_BREVITY = 0.5
"""How much less the length of a further unit counts than that of a lead, since there is room for few words."""
_PASSAGE_WEIGHT = 0.5
"""What a point of the passage's score adds to the score of a unit."""
_NEAREST = 3
_LEAST_SIMILARITY = 0.44
"""The mean of the three most similar units; fitted on judged questions."""
_LEAST_COVERAGE = 0.6
"""The share of the question's words that the lead has, if nothing is embedded."""
_REQUIRED = frozenset({AnswerType.NUMBER, AnswerType.TIME, AnswerType.PERSON, AnswerType.COMMAND})
"""Types that a lead has to have. The signs of the others are too uncertain: they only count for a unit."""
_CELL = " | "
_MARKER = re.compile(r"\A\s*+(?:[-*+•]|\d{1,9}[.)])\s++")
_STRUCK_OUT = re.compile(r"~~(?:[^~\n]|~(?!~)|\n(?!\n))++(?:~~|\Z)")
_UNTICKED, _TICKED = re.compile(r"\A\[ \]"), re.compile(r"\A\[[xX]\] ")
_UNFINISHED = (":", "：", "?", "？")
"""Ends of units that answer nothing without what follows."""


class Extract(NamedTuple):
    """What answers, of one passage."""

    source: Hit
    """The passage, named after the section of the unit and with the unit as its `best_sentence`."""
    texts: tuple[str, ...]
    """One, or the items of a list."""
    kind: StatementKind


def extract_answer(question: str, hits: Sequence[Hit], languages: Sequence[str]) -> list[Extract]:
    """Return the lead and up to three more extracts from the relevant of some results; none if nothing answers.

    The results list their `units`.
    """
    ranked = _ranked(hits)
    kind = answer_type(question, languages)
    lead = _lead(ranked, kind, languages)
    if lead is None:
        return []
    extracts = [lead.answer(kind)]
    shown = " ".join(extracts[0].texts).casefold()
    words = len(shown.split())
    for each in sorted(ranked, key=lambda each: _BREVITY * math.log1p(len(each.text.split())) - each.score):
        text = each.text
        is_new = each is not lead and text.casefold() not in shown and not text.endswith(_UNFINISHED)
        if is_new and each.score >= lead.score - _FALL and words + len(text.split()) <= _MAX_WORDS:
            extracts.append(each.extract())
            shown += f"\n{text.casefold()}"
            words += len(text.split())
        if len(extracts) > _MAX_MORE:
            break
    return extracts


def find_lead(question: str, hits: Sequence[Hit], languages: Sequence[str]) -> Lead | None:
    """Return what answers a question by itself, of the relevant of some results, which list their `units`.

    Other queries have no answer.
    """
    ranked = _ranked(hits)
    if not ranked or not is_question(question, languages):
        return None
    kind = answer_type(question, languages)
    lead = _lead(ranked, kind, languages)
    return lead and Lead("\n".join(lead.answer(kind).texts), hits.index(lead.hit), lead.unit)


def _ranked(hits: Iterable[Hit]) -> list[_Candidate]:
    listing = (hit for hit in hits if hit.relevant and hit.units)
    found = (_Candidate(hit, unit, visible) for hit in listing for visible in [_visible(hit.snippet)] for unit in hit.units)
    return sorted((each for each in found if any(map(str.isalnum, each.text))), key=lambda each: -each.score)


def _visible(snippet: str) -> str:
    """Return a passage with spaces in the place of what is struck out."""
    return _STRUCK_OUT.sub(lambda match: " " * len(match[0]), snippet) if STRUCK in snippet else snippet


def _lead(ranked: Sequence[_Candidate], kind: AnswerType | None, languages: Sequence[str]) -> _Candidate | None:
    """Return the best unit that can stand alone and has the type of answer that is asked for, unless none is near enough."""
    lead = next((each for each in ranked if each.answers(kind, languages)), None)
    return lead if lead is not None and _is_near(lead, ranked) else None


def _is_near(lead: _Candidate, candidates: Iterable[_Candidate]) -> bool:
    """Whether units are near enough to a question to answer it."""
    near = [each.unit.similarity for each in candidates if each.unit.similarity is not None]
    return fmean(nlargest(_NEAREST, near)) >= _LEAST_SIMILARITY if near else lead.unit.coverage >= _LEAST_COVERAGE


class _Candidate(NamedTuple):
    hit: Hit
    unit: HitUnit
    visible: str
    """The passage without what is struck out."""

    @property
    def score(self) -> float:
        return self.unit.score + _PASSAGE_WEIGHT * self.hit.score

    @property
    def text(self) -> str:
        """What it says, as it is read by itself."""
        return self._text(self.unit.range)

    def answers(self, kind: AnswerType | None, languages: Sequence[str]) -> bool:
        """Whether it can stand alone, and has the type of answer that a question asks for."""
        if kind is AnswerType.STEPS and self.unit.items:
            return True
        return not self.text.endswith(_UNFINISHED) and (kind not in _REQUIRED or has_answer(kind, self.text, languages))

    def answer(self, kind: AnswerType | None) -> Extract:
        """Return what answers a question of a type: the unit, or the list that has the steps."""
        return self.whole_list() if kind is AnswerType.STEPS and self.unit.items else self.extract()

    def extract(self) -> Extract:
        """Return the unit alone."""
        kind = StatementKind.CODE if self.unit.kind is UnitKind.CODE else StatementKind.SENTENCE
        return Extract(self.hit.at(self.unit), (self.text,), kind)

    def whole_list(self) -> Extract:
        """Return the list that the unit is an item of, or announces."""
        return Extract(self.hit.at(self.unit), tuple(map(self._text, self.unit.items[:_MAX_ITEMS])), StatementKind.ITEM)

    def _text(self, place: tuple[int, int]) -> str:
        """Return a unit as it is read by itself: a row as "nightly: 14", or with the names of its columns."""
        if self.unit.kind is UnitKind.CODE:
            return self.hit.snippet[slice(*place)]
        text = self.visible[slice(*place)]
        if self.unit.kind is not UnitKind.ROW:
            return " ".join(_TICKED.sub("", _UNTICKED.sub("☐", _MARKER.sub("", text))).split())
        cells = text.split(_CELL)
        names = self.visible[slice(*self.unit.header)].split(_CELL) if self.unit.header else []
        if len(cells) > 2 and len(names) == len(cells):
            return "; ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True) if cell.strip())
        return ": ".join(cell.strip() for cell in cells if cell.strip())
