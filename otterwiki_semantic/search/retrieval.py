"""The candidates of a search: what either side finds, what has the query for a name, and one score for each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate

from otterwiki_semantic.content.analysis import WordMatcher
from otterwiki_semantic.core.errors import CatalogCorruptError, CatalogError
from otterwiki_semantic.core.records import Mode, RetrieverScore, SearchOptions
from otterwiki_semantic.embedding import Calibration, Matrix
from otterwiki_semantic.search.fusion import PAIR_WEIGHT, fused_score, page_credits
from otterwiki_semantic.search.query import Query, any_of, any_pair
from otterwiki_semantic.search.relevance import word_weights
from otterwiki_semantic.storage import Allowed, Candidate, Generation, Scope

_MOST_TERMS = 48
"""Words of a query that are looked up, the rarest first; a question has ten."""
_MOST_PLACES, _MOST_PLACES_OF_PAIRS, _LEAST_WORDS = 10_000, 15_000, 3
"""Common words are left out from where the rarer ones stand in so many chunks, since BM25 looks at every one of them."""
_RARE_SHARE = 0.01
_LEAST_RARE, _MOST_RARE = 3, 20
_LEAST_IDENTIFIER = 3

QueryVector = Callable[[], Matrix | None]
"""Gives the vector of a query, and may wait for it; None if the model failed."""

log = logging.getLogger(__name__)


class Rule(IntEnum):
    """What places a passage: what it is named by comes before any score."""

    SCORE = 0
    RARE_IDENTIFIER = 1
    EXACT_HEADING = 2
    EXACT_TITLE = 3

    @property
    def shown(self) -> str:
        """The rule's name for people."""
        return self.name.lower().replace("_", " ")


@dataclass(slots=True)
class CandidateSet:
    """Candidates by the id of their chunk, and what is known of them. `is_whole` tells that there are no others.

    `passages` is the number of all in the index. `weights` are those of the query's words. `degraded` says which side failed
    and why, `is_damaged` that it stays so.
    """

    candidates: dict[int, Candidate] = field(default_factory=dict)
    similarity: dict[int, float] = field(default_factory=dict)
    semantic: dict[int, RetrieverScore] = field(default_factory=dict)
    keyword: dict[int, RetrieverScore] = field(default_factory=dict)
    fused: dict[int, float] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    """What ranks a chunk among those of the same rule: its fused score and its page's credit."""
    rules: dict[int, Rule] = field(default_factory=dict)
    passages: int = 0
    weights: dict[str, float] = field(default_factory=dict)
    is_whole: bool = True
    degraded: str | None = None
    is_damaged: bool = False

    def rule(self, chunk: int) -> Rule:
        """Give the rule that places a chunk."""
        return self.rules.get(chunk, Rule.SCORE)

    def ranked(self) -> list[int]:
        """Give the chunks, best first; equally good ones by path and place."""
        rules, scores = self.rules, self.scores
        keys = [
            (-rules.get(chunk, Rule.SCORE), -scores[chunk], candidate.path, candidate.ordinal, chunk)
            for chunk, candidate in self.candidates.items()
        ]
        return [key[-1] for key in sorted(keys)]


def gather(
    generation: Generation,
    query: Query,
    vector: QueryVector,
    scope: Scope,
    options: SearchOptions,
    count: int,
    calibration: Calibration,
) -> CandidateSet:
    """Give the pool of a query: up to `count` candidates of either side, and what it names.

    `vector` gives the query's, once words were looked up; without it, words alone decide. Errors: those of the catalog if no
    side can answer, and those of ChromaDB.
    """
    return _Gathering(generation, query, vector, scope, options, calibration).pool(count)


class _Gathering:
    def __init__(
        self,
        generation: Generation,
        query: Query,
        vector: QueryVector,
        scope: Scope,
        options: SearchOptions,
        calibration: Calibration,
    ) -> None:
        self._generation = generation
        self._calibration = calibration
        self._lookup = generation.catalog.lookup
        self._query = query
        self._embedded = vector
        self._vector: Matrix | None = None
        self._scope = scope
        self._mode = options.mode
        shares = {Mode.SEMANTIC: 1.0, Mode.KEYWORD: 0.0}
        self._ratio = shares.get(self._mode, options.semantic_ratio)
        self._least = options.n
        self._frequencies: dict[str, int] = {}
        self._known: list[str] = []
        self._words: list[str] = []
        self._titled: set[str] = set()
        self._floor = 0.0
        """What a candidate's keyword score is taken for that was not listed: half of the least one listed."""
        self._flat = self._lookup.flat()
        self._allowed: Allowed | None = None
        self._pool = CandidateSet(passages=self._flat.size)

    def pool(self, count: int) -> CandidateSet:
        failure = self._add_by_words(count)
        self._vector = self._embedded()
        if self._vector is None and self._mode is not Mode.KEYWORD:
            had_words = self._ratio < 1
            self._mode, self._ratio = Mode.KEYWORD, 0.0
            failure = failure if had_words else self._add_by_words(count)
        if failure is not None:
            self._do_without_words(failure)
        if self._mode is not Mode.KEYWORD:
            self._add_nearest(count)
        self._compare_all()
        self._score_all()
        return self._pool

    def _add_by_words(self, count: int) -> CatalogError | None:
        """Add what words find; gives what they failed of."""
        try:
            self._allowed = self._lookup.allowed(self._flat, self._scope)
            self._weigh_words()
            if self._ratio < 1:
                self._add_matching(count)
                self._add_named()
        except CatalogError as error:
            return error
        return None

    def _weigh_words(self) -> None:
        query = self._query
        frequencies = self._lookup.frequencies([*query.parts, *query.wholes])
        self._pool.weights = word_weights(query.parts, frequencies, self._pool.passages)
        known = [word for word in (*query.sought, *query.wholes) if frequencies[word]]
        self._frequencies = frequencies
        self._known = sorted(known, key=lambda word: frequencies[word])[:_MOST_TERMS]
        affordable = _affordable([frequencies[word] for word in self._known], _MOST_PLACES)
        self._words = self._known[: max(_LEAST_WORDS, affordable)]

    def _do_without_words(self, error: CatalogError) -> None:
        if self._vector is None:
            raise error
        log.warning("%s; answering by meaning alone", error)
        self._pool = CandidateSet(
            passages=self._pool.passages,
            degraded=f"the keyword index failed, the answer is by meaning alone: {error}",
            is_damaged=isinstance(error, CatalogCorruptError),
        )
        self._mode, self._ratio = Mode.SEMANTIC, 1.0
        self._scope = Scope(self._scope.pages)
        self._allowed = self._lookup.allowed(self._flat, self._scope)

    # By meaning

    def _add_nearest(self, count: int) -> None:
        assert self._vector is not None
        nearest = self._generation.nearest(self._vector, count, self._allowed)
        found = sorted(nearest.found, key=lambda item: (-item[1], item[0].path, item[0].ordinal))
        self._pool.is_whole &= nearest.is_whole
        self._add(candidate for candidate, _ in found)
        for rank, (candidate, similarity) in enumerate(found, 1):
            self._pool.similarity[candidate.id] = similarity
            self._pool.semantic[candidate.id] = RetrieverScore(rank, similarity)

    # By words

    def _add_matching(self, count: int) -> None:
        matches = self._scores(any_of(self._words, self._query.prefixes), count)
        if len(matches) < self._least and self._words != self._known:
            self._words = self._known  # too few have one of the rarer words; all of them, whatever it takes
            matches = self._scores(any_of(self._words, self._query.prefixes), count)
        neighbours = self._scores(any_pair(self._pairs()), count)
        self._pool.is_whole &= len(matches) < count
        floors = [min(scores.values()) / 2 if len(scores) == count else 0.0 for scores in (matches, neighbours)]
        self._floor = floors[0] + PAIR_WEIGHT * floors[1]
        total = {
            chunk: matches.get(chunk, floors[0]) + PAIR_WEIGHT * neighbours.get(chunk, floors[1])
            for chunk in matches.keys() | neighbours.keys()
        }
        ranked = sorted(total, key=lambda chunk: (-total[chunk], chunk))
        for rank, chunk in enumerate(ranked, 1):
            self._pool.keyword[chunk] = RetrieverScore(rank, total[chunk])
        self._add(self._flat.candidates(ranked))

    def _pairs(self) -> list[tuple[str, str]]:
        """Give the pairs with a word that is looked for, the rarer ones first, as far as they can be afforded."""
        kept, places = set(self._words), self._frequencies
        pairs = [pair for pair in self._query.pairs if not kept.isdisjoint(pair) and places[pair[0]] and places[pair[1]]]
        pairs.sort(key=lambda pair: places[pair[0]] + places[pair[1]])
        affordable = _affordable([places[first] + places[second] for first, second in pairs], _MOST_PLACES_OF_PAIRS)
        return pairs[: min(_MOST_TERMS, affordable)]

    def _scores(self, expression: str, count: int) -> dict[int, float]:
        return self._lookup.keyword_scores(expression, count, self._allowed) if expression else {}

    # By name

    def _add_named(self) -> None:
        if not self._query.name:
            return
        pages, sections = self._lookup.named(self._query.name, self._scope)
        self._add((*pages, *sections))
        self._place(sections, Rule.EXACT_HEADING)
        self._titled = {candidate.path for candidate in pages}
        holders = self._holders()
        self._add(holders)
        self._place(holders, Rule.RARE_IDENTIFIER)

    def _holders(self) -> list[Candidate]:
        """Give the chunks with the identifier that the query is; none if it is none, or stands in many."""
        identifier = self._query.identifier
        if len(identifier) < _LEAST_IDENTIFIER:
            return []
        most = min(_MOST_RARE, max(_LEAST_RARE, int(_RARE_SHARE * self._pool.passages)))
        ids = self._lookup.holders(any_of([identifier]), most + 1)
        if len(ids) > most:
            return []
        found = self._flat.candidates(ids, self._allowed.mask if self._allowed else None)
        if self._query.wholes or any(character.isdigit() for character in identifier):
            return found
        # A plain word is an identifier only where it is written as one, such as TargetWords.
        shown = self._lookup.hits([candidate.id for candidate in found])
        in_parts = WordMatcher(lambda parts, whole: len(parts) > 1 and whole == identifier)
        written = {chunk for chunk, hit in shown.items() if any(in_parts.spans(hit.snippet))}
        return [candidate for candidate in found if candidate.id in written]

    def _place(self, candidates: Iterable[Candidate], rule: Rule) -> None:
        for candidate in candidates:
            self._pool.rules[candidate.id] = max(rule, self._pool.rule(candidate.id))

    # Together

    def _add(self, candidates: Iterable[Candidate]) -> None:
        self._pool.candidates.update((candidate.id, candidate) for candidate in candidates)

    def _compare_all(self) -> None:
        """Compare those with the query that only words or a name have found."""
        if self._vector is None:
            return
        new = [chunk for chunk in self._pool.candidates if chunk not in self._pool.similarity]
        self._pool.similarity.update(self._flat.cosines(self._vector, new))

    def _score_all(self) -> None:
        pool = self._pool
        # A passage that has no vector (the model failed on it) is taken for as near as the nearest, or nobody would see it.
        unknown = max(pool.similarity.values(), default=None)
        for chunk in pool.candidates:
            side = pool.keyword.get(chunk)
            keyword = self._floor if side is None or side.score is None else side.score
            similarity = pool.similarity.get(chunk, unknown)
            on_scale = None if similarity is None else self._calibration.on_scale(similarity)
            pool.fused[chunk] = fused_score(on_scale, keyword, self._ratio)
        if self._ratio < 1:
            paths = {chunk: candidate.path for chunk, candidate in pool.candidates.items()}
            credit_of = page_credits(pool.fused, paths)
            pool.scores = {chunk: fused + credit_of[paths[chunk]] for chunk, fused in pool.fused.items()}
        else:
            pool.scores = pool.fused
        self._place_titled()

    def _place_titled(self) -> None:
        """Of a page that is named, its best passage comes first."""
        titled = [chunk for chunk, candidate in self._pool.candidates.items() if candidate.path in self._titled]
        titled.sort(key=lambda chunk: self._pool.fused[chunk])
        best = {self._pool.candidates[chunk].path: chunk for chunk in titled}
        self._pool.rules.update(dict.fromkeys(best.values(), Rule.EXACT_TITLE))


def _affordable(costs: Sequence[int], budget: int) -> int:
    """Give how many of the costs, from the first on, a budget covers."""
    return sum(sofar <= budget for sofar in accumulate(costs))
