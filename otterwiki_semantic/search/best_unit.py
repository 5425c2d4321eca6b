"""The unit of each passage that answers best: a sentence, a list item, a table row or a line of code.

Longer units are preferred, as are units with the expected answer type; lines of code are penalised. The other evidence is the
unit's similarity to the query if it is embedded, and otherwise the share of the query's words in it, weighted by rarity. A
row is read with its heading and the header of its table. docs/quality.md has the accuracy.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from otterwiki_semantic.content.analysis import words
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import StoredChunk, Unit, UnitKind
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.answer_type import AnswerType, answer_type, has_answer
from otterwiki_semantic.search.query import Query
from otterwiki_semantic.search.scoring import QueryWords
from otterwiki_semantic.search.similarity_scale import Scale

MAX_EMBEDDED = 40
"""Units embedded per answer; each takes about a millisecond."""
_MAX_EMBEDDED_OF_CHUNK = 6
"""Units embedded per chunk, best by words; more hardly improve the choice."""
_SIMILARITY_WEIGHT = 8.0
"""Values from 7 to 9 are equally good."""
_COVERAGE_WEIGHT = 3.0
_TYPE_WEIGHT = 1.0
_CODE_WEIGHT = -2.0
_NAMES = frozenset({UnitKind.HEADING, UnitKind.HEADER})
"""Kinds of units that only label other units."""
_LEAST_WORDS = 3
"""Shorter sentences and items are mostly labels."""
_ANNOUNCING = (":", "：")

Embed = Callable[[Sequence[str]], Matrix]
Range = tuple[int, int]

log = logging.getLogger(__name__)


class ScoredUnit(NamedTuple):
    """A candidate unit for the answer."""

    unit: Unit
    text: str
    """The text to embed: the chunk's names, the table's header, and the unit."""
    prior: float
    """How likely such a unit is to answer, independent of the query."""
    coverage: float
    """The weighted share of the query's words in the unit."""
    header: Range | None
    """The range of the table's header, if the unit is a row."""
    items: tuple[Range, ...]
    """The ranges of the items of the list that contains the unit or is announced by it."""
    similarity: float | None = None
    """Similarity to the query, on the bundled model's scale; None if the unit is not embedded."""

    @property
    def score(self) -> float:
        """The score; comparable among embedded units, and among units that are not."""
        if self.similarity is None:
            return self.prior + _COVERAGE_WEIGHT * self.coverage
        return self.prior + _SIMILARITY_WEIGHT * self.similarity


class UnitChooser:
    """Choose the units that best answer a query.

    `vector` is the query's vector. Without it or `embed`, or after 40 embedded units, words alone decide. `scale` converts
    the model's similarities.
    """

    def __init__(
        self,
        query: Query,
        query_words: Sequence[QueryWords],
        vector: Matrix | None,
        embed: Embed | None,
        scale: Scale,
    ) -> None:
        self._languages = query.languages
        self._text = query.text
        self._weights: dict[str, float] = {}
        for each in query_words:
            for word, weight in each.names.items():
                self._weights[word] = max(weight, self._weights.get(word, 0.0))
        self._whole = max((sum(each.names.values()) for each in query_words), default=0.0)
        self._vector = vector
        self._embed = embed
        self._scale = scale
        self._left = MAX_EMBEDDED
        self._stems: dict[str, frozenset[str]] = {}

    def rank(self, chunks: Sequence[StoredChunk], highlights: Sequence[Sequence[Range]]) -> list[list[ScoredUnit]]:
        """Return the units of each chunk that may answer, best first; none if no word matches and nothing is embedded.

        `highlights` are the ranges of each chunk's text that match the query's words. If some units are embedded, the rest
        are dropped.
        """
        ranked = [self._by_words(chunk, ranges) for chunk, ranges in zip(chunks, highlights, strict=True)]
        embedded: list[list[ScoredUnit]] = []
        for units in ranked:
            embedded.append(units[: min(self._left, _MAX_EMBEDDED_OF_CHUNK)])
            self._left -= len(embedded[-1])
        near = iter(self._similarities([unit.text for units in embedded for unit in units]))
        found = [
            [unit._replace(similarity=similarity) for unit, similarity in zip(units, near, strict=False)] for units in embedded
        ]
        by_words = [units if any(unit.coverage for unit in units) else [] for units in ranked]
        return [sorted(near, key=_best_first) or words for near, words in zip(found, by_words, strict=True)]

    def _by_words(self, chunk: StoredChunk, highlights: Sequence[Range]) -> list[ScoredUnit]:
        """Return the units of a chunk that may answer, those with most of the query's words first."""
        scored = []
        names = chunk.text[: chunk.prefix_length].rstrip()
        for unit, header, items in _candidates(chunk):
            own = chunk.text[unit.start : unit.end]
            columns = chunk.text[slice(*header)] if header else ""
            found = set[str]()
            if unit.kind is UnitKind.ROW:
                found |= self._words_in(f"{chunk.sections[unit.section].heading}, {columns}")
            for start, end in highlights:
                if unit.start <= start and end <= unit.end:
                    found |= self._words_in(chunk.text[start:end])
            covered = sum(self._weights[word] for word in found) / self._whole if self._whole else float(bool(found))
            text = f"{names} {columns}: {own}" if columns else f"{names} {own}"
            scored.append(ScoredUnit(unit, text, self._prior(unit, own), covered, header, items))
        return sorted(scored, key=_best_first)

    @cached_property
    def _answer_type(self) -> AnswerType | None:
        return answer_type(self._text, self._languages)

    def _prior(self, unit: Unit, text: str) -> float:
        is_answer = self._answer_type is not None and has_answer(self._answer_type, text, self._languages)
        return math.log1p(len(text.split())) + _TYPE_WEIGHT * is_answer + _CODE_WEIGHT * (unit.kind is UnitKind.CODE)

    def _words_in(self, text: str) -> frozenset[str]:
        """Return the words of the query that occur in a text."""
        stems = self._stems.get(text)
        if stems is None:
            parts = (part for each in self._languages for word in words(text, each) for part in (*word.parts, word.whole))
            stems = self._stems[text] = frozenset(self._weights.keys() & set(parts))
        return stems

    def _similarities(self, texts: Sequence[str]) -> Sequence[float]:
        """Return the similarities of texts to the query, or none if the texts cannot be embedded."""
        if self._embed is None or self._vector is None or not texts:
            return ()
        try:
            return [self._scale.to_bundled(float(each)) for each in self._embed(texts) @ self._vector]
        except SemanticError as error:
            log.info("the best units are found by words alone: %s", error)
            return ()


def _best_first(unit: ScoredUnit) -> tuple[float, int]:
    return -unit.score, unit.unit.start


def _candidates(chunk: StoredChunk) -> list[tuple[Unit, Range | None, tuple[Range, ...]]]:
    """Return the candidate units of a chunk, with their table's header and the list that they belong to or announce.

    Units of a few words are mostly labels and are dropped if there are longer ones.
    """
    lists = _lists(chunk)
    header: Range | None = None
    found, telling = [], []
    for unit in chunk.units:
        if unit.kind is UnitKind.HEADER:
            header = (unit.start, unit.end)
        if unit.kind in _NAMES:
            continue
        is_row = unit.kind is UnitKind.ROW
        found.append((unit, header if is_row else None, lists.get(unit, ())))
        if is_row or unit.kind is UnitKind.CODE or len(chunk.text[unit.start : unit.end].split()) >= _LEAST_WORDS:
            telling.append(found[-1])
    return telling or found


def _lists(chunk: StoredChunk) -> dict[Unit, tuple[Range, ...]]:
    """Return the ranges of list items, for each item of a list and for the sentence that announces it."""
    lists: dict[Unit, tuple[Range, ...]] = {}
    before: Unit | None = None
    for is_list, group in groupby(chunk.units, key=lambda unit: unit.section if unit.kind is UnitKind.ITEM else None):
        units = list(group)
        if is_list is not None:
            announcing = [before] if before and chunk.text[: before.end].endswith(_ANNOUNCING) else []
            lists |= dict.fromkeys((*announcing, *units), tuple((unit.start, unit.end) for unit in units))
        before = units[-1]
    return lists
