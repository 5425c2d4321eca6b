"""Answers to questions, whose every sentence names its sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from otterwiki_semantic.core.records.search import Hit
from otterwiki_semantic.core.records.status import Freshness


class AnswerSentence(Struct, frozen=True):
    """A sentence of an answer, an item of a list, or a block of code; plain text."""

    text: str
    sources: tuple[int, ...]
    """The sources that it names: places in `sources` of the answer, from 0."""
    supported: bool
    """Whether these sources say so, as far as their words, numbers, names and negations tell."""
    kind: Literal["sentence", "item", "code"] = "sentence"
    block: int = 0
    """The sentences of one paragraph, list or block of code have the same number."""


class UnsupportedSentence(Struct, frozen=True):
    """A sentence that the sources which it names do not support."""

    text: str
    reason: str
    """For people, such as `"90" does not stand in its source`."""


class SourceConflict(Struct, frozen=True):
    """Two sources that contradict each other."""

    sources: tuple[int, int]
    """Places in `sources` of the answer, from 0; the one that was changed last stands first."""
    text: str
    """Both statements, for people."""


def numbered_sources(named: Sequence[Sequence[int]], total: int) -> dict[int, int]:
    """Return a number for each named source by its index, from 1 in order of use; for all `total` if none is named."""
    places = [place for of_sentence in named for place in of_sentence] if named else range(total)
    return {place: number for number, place in enumerate(dict.fromkeys(places), 1)}


class GroundedAnswer(Struct, frozen=True, omit_defaults=True):
    """An answer to a question, with its sources."""

    question: str
    answer: tuple[AnswerSentence, ...]
    """Empty if nothing answers the question; `message` says why."""
    sources: tuple[Hit, ...]
    """What the answer rests on, best first, each with its `markdown`; if there is none, the nearest passages."""
    confident: bool
    """Whether any passage is about the question; if none is, no model is asked for an answer."""
    unsupported: tuple[UnsupportedSentence, ...]
    """The sentences that their sources do not support; with `strict` they are left out of `answer`."""
    index: Freshness
    model: str
    """What writes the answers, as in `SEMANTIC_ANSWERS`."""
    rewrites: tuple[str, ...] = ()
    """The model's own wordings of the question, if the sources were found with them (`SEMANTIC_ANSWERS_REWRITE`)."""
    conflicts: tuple[SourceConflict, ...] = ()
    follow_ups: tuple[str, ...] = ()
    """Questions and sections near this question."""
    message: str | None = None
    """Only if there is no answer, or only a part of one: why."""
    degraded: str | None = None
    """Only if a part of the search for sources failed: which, and why."""
    milliseconds: int = 0
    """From the question to the end of the answer."""

    @property
    def is_extractive(self) -> bool:
        """Whether the answer consists of the pages' own sentences, items and rows."""
        return self.model == "extractive"

    @property
    def source_numbers(self) -> dict[int, int]:
        """The number of each source by its index, from 1 in the order of the text; without text, all sources are numbered."""
        return numbered_sources([sentence.sources for sentence in self.answer], len(self.sources))


class AskProgress(Struct, frozen=True, omit_defaults=True):
    """How far an answer has come."""

    id: str
    answer: tuple[AnswerSentence, ...] = ()
    """The sentences that are new."""
    result: GroundedAnswer | None = None
    """At first the sources, without an answer, and again if better ones are found; at the end all of it; otherwise null."""
    done: bool = False
