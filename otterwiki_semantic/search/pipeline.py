"""From a query to passages: gather candidates, rank them, keep what was asked for, and say why."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from otterwiki_semantic.content.analysis.minhash import comparison_text
from otterwiki_semantic.core.records import Explanation, Facet, Facets, Hit, RetrieverScore, SearchOptions
from otterwiki_semantic.embedding import Calibration
from otterwiki_semantic.search.diversity import Repeats, diverse_order
from otterwiki_semantic.search.expansion import add_context, join_neighbours
from otterwiki_semantic.search.query import Highlighter, Query, has_phrases, scope_of
from otterwiki_semantic.search.relevance import coverage, relevance
from otterwiki_semantic.search.retrieval import CandidateSet, QueryVector, Rule, gather
from otterwiki_semantic.storage import Generation

_CANDIDATES = 100
_CANDIDATES_PER_RESULT = 5
_GROWTH = 4
_MOST_CANDIDATES = 6_400
_SEEN_PER_RESULT = 4
"""Candidates, for each result, that those different from each other are chosen from."""
_LOOK_BEYOND = 20
_JOINED_SHARE = 0.7
"""A neighbour is joined if its score is at least this share of the best one's."""
_NO_SIDE = RetrieverScore(None, None)
_MOST_READ = 30
"""Passages that a reranker is given to read."""

Shortlist = Mapping[str, str]
"""The passages to be read by a reranker, best first: their texts by the ids of their vectors, which are the texts' hashes."""
RerankScores = Mapping[str, float]
"""A reranker's scores of passages, by the ids of their vectors; empty if none has read any."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search gives: see `Answer`. `is_damaged` tells that the index has to be built again.

    `shortlist` is what a reranker is to read, if one is wanted and has not read it yet.
    """

    hits: tuple[Hit, ...]
    confident: bool
    degraded: str | None
    facets: Facets | None
    is_damaged: bool = False
    shortlist: Shortlist = field(default_factory=dict)


def search_chunks(
    generation: Generation,
    query: Query,
    vector: QueryVector,
    options: SearchOptions,
    calibration: Calibration,
    reading: RerankScores | None = None,
) -> SearchResult:
    """Give the passages for a query; `vector` gives its text's, None if the model failed. A `reading` decides their order.

    One page can crowd out the others, and repeats can leave few; then more candidates are asked for, up to 6,400. Errors: those
    of the catalog and of ChromaDB.
    """
    scope = scope_of(options.filters, query)
    count = max(_CANDIDATES, _CANDIDATES_PER_RESULT * options.n)
    while True:
        pool = gather(generation, query, vector, scope, options, count, calibration)
        selection = _Selection(generation, query, pool, options, calibration, reading or {})
        chosen = selection.chosen()
        if len(chosen) == options.n or pool.is_whole or count >= _MOST_CANDIDATES or selection.has_reached_the_end():
            return selection.found(chosen)
        count *= _GROWTH


class _Selection:
    """One pool on its way to results."""

    def __init__(
        self,
        generation: Generation,
        query: Query,
        pool: CandidateSet,
        options: SearchOptions,
        calibration: Calibration,
        reading: RerankScores,
    ) -> None:
        self._lookup = generation.catalog.lookup
        self._flat = self._lookup.flat()
        self._query = query
        self._highlighter = Highlighter(query)
        self._pool = pool
        self._options = options
        self._calibration = calibration
        self._repeated_on: dict[int, set[str]] = {}
        self._ranked = self._allowed(pool.ranked())
        self._scores = pool.scores
        self._reading = reading
        self._places_before: dict[int, int] = {}
        if reading:
            self._follow(reading)

    # Which

    def chosen(self) -> list[int]:
        """Give the chunks to show, in order."""
        options = self._options
        distinct, paths = self._distinct(), self._paths()
        if not options.diversity:
            found = list(_limited(distinct, paths, options.n, options.max_chunks_per_page))
            deque(islice(distinct, _LOOK_BEYOND), maxlen=0)  # goes on a little, so that repeats further down are noted
            return found
        share = _SEEN_PER_RESULT * options.max_chunks_per_page
        seen = list(_limited(distinct, paths, _SEEN_PER_RESULT * options.n, share))
        matrix, embedded = self._flat.vectors(seen)
        return diverse_order(
            embedded,
            {chunk: self._scores[chunk] for chunk in embedded},
            matrix,
            paths,
            options.diversity,
            options.n,
            options.max_chunks_per_page,
        )

    def has_reached_the_end(self) -> bool:
        """Whether further candidates by meaning would all be less similar than is asked for."""
        least = self._options.min_similarity
        nearest = [side.score for side in self._pool.semantic.values() if side.score is not None]
        return least is not None and bool(nearest) and min(nearest) < least

    def _allowed(self, ranked: list[int]) -> list[int]:
        least = self._options.min_similarity
        if least is not None:
            ranked = [chunk for chunk in ranked if self._pool.similarity.get(chunk, -1.0) >= least]
        phrases, without = self._query.phrases, self._query.without if self._pool.degraded else ()
        if phrases or without:
            hits = self._lookup.hits(ranked)
            ranked = [
                chunk
                for chunk in ranked
                if chunk in hits
                and has_phrases(hits[chunk].snippet, phrases)
                and not any(has_phrases(hits[chunk].snippet, [phrase]) for phrase in without)
            ]
        return ranked

    def _follow(self, reading: RerankScores) -> None:
        """Put what was read in the order of its reading, right behind what the query names.

        Each passage gets the score that goes with its new place: those of a reranker are of another kind.
        """
        pool = self._pool
        named = [chunk for chunk in self._ranked if pool.rule(chunk) > Rule.SCORE]
        scored = self._ranked[len(named) :]
        read = [chunk for chunk in scored if pool.candidates[chunk].vector in reading]
        order = sorted(read, key=lambda chunk: -reading[pool.candidates[chunk].vector])
        self._places_before = {chunk: self._ranked.index(chunk) + 1 for chunk in read}
        self._scores = pool.scores | dict(zip(order, [pool.scores[chunk] for chunk in read], strict=True))
        self._ranked = [*named, *order, *(chunk for chunk in scored if chunk not in self._places_before)]

    def _shortlist(self) -> Shortlist:
        """Give the best passages to be read by a reranker. What the query names needs none: it comes first in any case."""
        unnamed = (chunk for chunk in self._distinct() if self._pool.rule(chunk) is Rule.SCORE)
        chunks = list(islice(unnamed, _MOST_READ))
        hits = self._lookup.hits(chunks)
        return {self._pool.candidates[chunk].vector: hits[chunk].snippet for chunk in chunks if chunk in hits}

    def _distinct(self) -> Iterator[int]:
        """Give each passage once, best first: of those that nearly repeat another page's, the first; the other pages are noted.

        Who asks for one passage a page asks for a ranking of pages: a page then keeps its place, with its next best passage.
        """
        repeats = Repeats(self._ranked, self._flat.sketches(self._ranked), self._comparison_texts)
        used: set[int] = set()
        for place, chunk in enumerate(self._ranked):
            if chunk in used:
                continue
            original = repeats.original(chunk)
            if original is None or self._pool.rule(chunk) > Rule.SCORE:
                self._note_copies(chunk, repeats)
                repeats.keep(chunk)
                yield chunk
                continue
            self._note(original, chunk)
            path = self._pool.candidates[chunk].path
            if self._options.max_chunks_per_page == 1 and path != self._pool.candidates[original].path:
                later = (other for other in self._ranked[place + 1 :] if self._pool.candidates[other].path == path)
                stand_in = next((other for other in later if repeats.original(other) is None), None)
                if stand_in is not None:
                    used.add(stand_in)
                    repeats.keep(stand_in)
                    yield stand_in

    def _comparison_texts(self, chunks: Sequence[int]) -> dict[int, str]:
        return {chunk: comparison_text(*texts) for chunk, texts in self._lookup.stored_words(chunks).items()}

    def _note_copies(self, chunk: int, repeats: Repeats) -> None:
        for copy in repeats.copies(chunk):
            self._note(chunk, copy)

    def _note(self, original: int, copy: int) -> None:
        pages = [self._pool.candidates[chunk].path for chunk in (original, copy)]
        if pages[0] != pages[1]:
            self._repeated_on.setdefault(original, set()).add(pages[1])

    def _paths(self) -> Mapping[int, str]:
        return {chunk: candidate.path for chunk, candidate in self._pool.candidates.items()}

    # How they are shown

    def found(self, chosen: Sequence[int]) -> SearchResult:
        """Give the answer with these chunks."""
        near = self._neighbours(chosen)
        shown = self._lookup.hits([*chosen, *near])
        chosen = [chunk for chunk in chosen if chunk in shown]
        relevances = self._relevances(chosen)
        hits = [self._hit(shown[chunk], chunk, relevances[chunk]) for chunk in chosen]
        hits = join_neighbours(hits, [shown[chunk] for chunk in near if chunk in shown])
        if self._options.context:
            hits = [add_context(hit, self._options.context, self._lookup.page_hits) for hit in hits]
        if self._options.explain:
            hits = [
                replace(hit, explain=self._explanation(chunk, *relevances[chunk], place))
                for place, (hit, chunk) in enumerate(zip(hits, chosen, strict=True))
            ]
        facets = self._facets(chosen) if self._options.facets else None
        shortlist = self._shortlist() if self._options.rerank and not self._reading else {}
        confident = any(hit.relevant for hit in hits)
        return SearchResult(tuple(hits), confident, self._pool.degraded, facets, self._pool.is_damaged, shortlist)

    def _neighbours(self, chosen: Sequence[int]) -> list[int]:
        """Give the candidates that may be joined to results: nearly as good as the best, and close to one in its page."""
        places: dict[str, list[int]] = {}
        for chunk in chosen:
            places.setdefault(self._pool.candidates[chunk].path, []).append(self._pool.candidates[chunk].ordinal)
        scores = self._scores
        least = _JOINED_SHARE * max((scores[chunk] for chunk in self._ranked), default=0.0)
        near = [chunk for chunk in self._ranked if scores[chunk] >= least > 0 and self._is_close(chunk, places)]
        return sorted(near, key=lambda chunk: -scores[chunk])

    def _is_close(self, chunk: int, places: Mapping[str, Iterable[int]]) -> bool:
        candidate = self._pool.candidates[chunk]
        return any(1 <= abs(place - candidate.ordinal) <= 2 for place in places.get(candidate.path, ()))

    def _hit(self, hit: Hit, chunk: int, facts: tuple[float, float]) -> Hit:
        similarity = self._pool.similarity.get(chunk)
        return replace(
            hit,
            distance=None if similarity is None else max(0.0, 1 - similarity),
            score=self._scores[chunk],
            relevant=self._is_relevant(chunk, facts[1]),
            highlights=self._highlighter.ranges(hit.snippet),
            also_on=tuple(sorted(self._repeated_on.get(chunk, ()))),
        )

    def _relevances(self, chunks: Sequence[int]) -> dict[int, tuple[float, float]]:
        """Give the coverage of each chunk, and how far it is above the floor."""
        texts = self._lookup.stored_words(chunks)
        weights = self._pool.weights
        facts: dict[int, tuple[float, float]] = {}
        for chunk in chunks:
            present = set(" ".join(texts.get(chunk, ())).split())
            covered = coverage(weights, present) if weights else float(chunk in self._pool.keyword)
            facts[chunk] = covered, relevance(self._pool.similarity.get(chunk), covered, self._pool.passages, self._calibration)
        return facts

    def _is_relevant(self, chunk: int, above: float) -> bool:
        """What the query names is relevant, whatever it scores."""
        return above >= 0 or self._pool.rule(chunk) > Rule.SCORE

    def _explanation(self, chunk: int, covered: float, above: float, place: int) -> Explanation:
        pool = self._pool
        rule = pool.rule(chunk)
        by_diversity = self._options.diversity > 0 and place > 0 and rule is Rule.SCORE
        similarity = pool.similarity.get(chunk)
        before = self._places_before.get(chunk)
        placed = rule.shown if before is None else "reranker"
        return Explanation(
            semantic=pool.semantic.get(chunk, RetrieverScore(None, similarity)),
            keyword=pool.keyword.get(chunk, _NO_SIDE),
            fused=pool.fused[chunk],
            page_credit=pool.scores[chunk] - pool.fused[chunk],
            rule="diversity" if by_diversity else placed,
            coverage=covered,
            relevance=above,
            rerank=_NO_SIDE if before is None else RetrieverScore(before, self._reading[pool.candidates[chunk].vector]),
        )

    # What else there is

    def _facets(self, chosen: Sequence[int]) -> Facets:
        """Count the pages of the results, and of every other candidate that is relevant."""
        relevances = self._relevances(self._ranked)
        found = {*chosen, *(chunk for chunk, (_, above) in relevances.items() if self._is_relevant(chunk, above))}
        labels = self._lookup.page_labels(sorted({self._pool.candidates[chunk].path for chunk in found}))
        return Facets(
            category=_counted(category for category, _ in labels.values() if category),
            tag=_counted(tag for _, tags in labels.values() for tag in tags),
            path=_counted(path.split("/")[0] + "/" for path in labels if "/" in path),
        )


def _limited(ranked: Iterable[int], paths: Mapping[int, str], n: int, most_of_a_page: int) -> Iterator[int]:
    """Give the first `n` chunks, at most so many of one page; looks no further when every page has given its share."""
    taken: Counter[str] = Counter()
    left = min(n, most_of_a_page * len(set(paths.values())))
    for chunk in ranked if left else ():
        if taken[paths[chunk]] < most_of_a_page:
            taken[paths[chunk]] += 1
            left -= 1
            yield chunk
        if not left:
            return


def _counted(values: Iterable[str]) -> tuple[Facet, ...]:
    counts = Counter(values)
    return tuple(Facet(value, count) for value, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
