"""The unit of each passage that answers best: a sentence, an item of a list, a row of a table, or a line of code.

A unit counts by the words of the query that it has, weighted by rarity, and, where units are embedded, by its similarity. The
heading of its section belongs to it, and to a row the header of its table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from otterwiki_semantic.content.analysis import words
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import StoredChunk, Unit, UnitKind
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.candidates import QueryWords
from otterwiki_semantic.search.query import Query

MAX_EMBEDDED = 40
"""Units that are embedded for one answer; each takes about a millisecond."""
_COVERAGE_WEIGHT = 0.5
"""The similarity that all words of the query are worth; 0.1 to 0.8 choose about as well."""
_NAMES = frozenset({UnitKind.HEADING, UnitKind.HEADER})
"""Kinds of units that only say what others are."""
_LEAST_WORDS = 3
"""Shorter sentences and items are mostly labels."""

Embed = Callable[[Sequence[str]], Matrix]
Range = tuple[int, int]

log = logging.getLogger(__name__)


class UnitChooser:
    """Chooses the unit of each passage that answers one query best.

    `vector` is that of the query; without it, or without `embed`, words alone decide, as they do once 40 units are embedded.
    """

    def __init__(self, query: Query, query_words: Sequence[QueryWords], vector: Matrix | None, embed: Embed | None) -> None:
        self._languages = query.languages
        self._weights: dict[str, float] = {}
        for each in query_words:
            for word, weight in each.names.items():
                self._weights[word] = max(weight, self._weights.get(word, 0.0))
        self._whole = max((sum(each.names.values()) for each in query_words), default=0.0)
        self._vector = vector
        self._embed = embed
        self._left = MAX_EMBEDDED
        self._stems: dict[str, frozenset[str]] = {}

    def choose(self, chunks: Sequence[StoredChunk], highlights: Sequence[Sequence[Range]]) -> list[Unit | None]:
        """Return the best unit of each chunk; None where no word matches and nothing is embedded.

        `highlights` are the ranges of each chunk's text that match the query's words.
        """
        units = [_candidates(chunk) for chunk in chunks]
        coverage = [
            np.array([self._coverage(unit, chunk.text, ranges) for unit in of_chunk])
            for chunk, of_chunk, ranges in zip(chunks, units, highlights, strict=True)
        ]
        similarities = self._similarities(chunks, units)
        best: list[Unit | None] = []
        for rank, (of_chunk, shares) in enumerate(zip(units, coverage, strict=True)):
            is_known = len(of_chunk) > 0 and (rank in similarities or bool(shares.any()))
            scores = similarities[rank] + _COVERAGE_WEIGHT * shares if rank in similarities else shares
            best.append(of_chunk[int(np.argmax(scores))].unit if is_known else None)
        return best

    def _coverage(self, candidate: _Candidate, text: str, ranges: Sequence[Range]) -> float:
        """Return the share of the query's words that a unit has, weighted."""
        found = set(self._words_in(candidate.context))
        for start, end in ranges:
            if candidate.unit.start <= start and end <= candidate.unit.end:
                found |= self._words_in(text[start:end])
        return sum(self._weights[word] for word in found) / self._whole if self._whole else float(bool(found))

    def _words_in(self, text: str) -> frozenset[str]:
        """Return the words of the query that a text has."""
        stems = self._stems.get(text)
        if stems is None:
            parts = (part for each in self._languages for word in words(text, each) for part in (*word.parts, word.whole))
            stems = self._stems[text] = frozenset(self._weights.keys() & set(parts))
        return stems

    def _similarities(self, chunks: Sequence[StoredChunk], units: Sequence[Sequence[_Candidate]]) -> Mapping[int, Matrix]:
        """Return the similarities of the units of chunks, by rank, of as many chunks as their number allows."""
        if self._embed is None or self._vector is None:
            return {}
        texts: dict[int, list[str]] = {}
        for rank, (chunk, of_chunk) in enumerate(zip(chunks, units, strict=True)):
            if of_chunk and len(of_chunk) <= self._left:
                texts[rank] = [each.text_in(chunk) for each in of_chunk]
                self._left -= len(of_chunk)
        try:
            vectors = self._embed([text for of_chunk in texts.values() for text in of_chunk]) if texts else None
        except SemanticError as error:
            log.info("the best units are found by words alone: %s", error)
            return {}
        if vectors is None:
            return {}
        ends = np.cumsum([len(of_chunk) for of_chunk in texts.values()])
        return dict(zip(texts, np.split(vectors @ self._vector, ends[:-1]), strict=True))


class _Candidate(NamedTuple):
    """A unit that may answer."""

    unit: Unit
    context: str
    """The heading of its section, and the header of its table."""

    def text_in(self, chunk: StoredChunk) -> str:
        """Return what is embedded of the unit."""
        own = chunk.text[self.unit.start : self.unit.end]
        return f"{self.context}: {own}" if self.context else own


def _candidates(chunk: StoredChunk) -> Sequence[_Candidate]:
    """Return the units of a chunk that can answer: no headings and labels, unless there is nothing else."""
    sections, header = chunk.sections, ""
    found, telling = [], []
    for unit in chunk.units:
        own = chunk.text[unit.start : unit.end]
        if unit.kind is UnitKind.HEADER:
            header = own
        if unit.kind in _NAMES:
            continue
        context = f"{sections[unit.section].heading}, {header}" if unit.kind is UnitKind.ROW else ""
        found.append(_Candidate(unit, context))
        if unit.kind in {UnitKind.ROW, UnitKind.CODE} or len(own.split()) >= _LEAST_WORDS:
            telling.append(found[-1])
    return telling or found
