"""First-stage retrieval: candidates by words, names and vectors, with one score each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain

from otterwiki_semantic.content.analysis import WordMatcher, stem
from otterwiki_semantic.core.errors import CatalogCorruptError, CatalogError
from otterwiki_semantic.core.records import Fusion, Mode, SearchOptions
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.query import Query, any_of, any_pair
from otterwiki_semantic.search.scoring import DEFAULT_RATIO, Candidate, QueryWords, Tier, inverse_frequency, score_candidates
from otterwiki_semantic.search.similarity_scale import Scale
from otterwiki_semantic.storage import ChunkRef, ExactIndex, Filter, FilterMask, Generation

_MAX_TERMS = 48
"""Words of a query that are looked up, rarest first; a question has ten."""
_MAX_POSTINGS, _MAX_PAIR_POSTINGS, _MIN_TERMS = 10_000, 15_000, 3
"""Common words are skipped once the rarer ones occur in this many chunks, because BM25 visits each of them."""
_MIN_MATCHES = 20
"""If fewer chunks have one of the rarer words, common words are looked up as well."""
_RARE_SHARE = 0.01
_MIN_RARE, _MAX_RARE = 3, 20
_MIN_IDENTIFIER = 3
_PAIR_WEIGHT = 0.5
"""The weight of BM25 of adjacent word pairs, relative to single words (after Metzler and Croft, 2005)."""

QueryVector = Callable[[], Matrix | None]
"""Returns the vector of a query, possibly after waiting for it; None if the model failed."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CandidateSet:
    """The candidates of a query."""

    candidates: list[Candidate]
    """Best first; ties by path and position."""
    is_complete: bool
    """Whether these are all candidates."""
    words: tuple[QueryWords, ...] = ()
    """The words of the query and of each variant."""
    is_rank_fused: bool = False
    """Whether scores are reciprocal ranks, which differ little."""
    degraded: str | None = None
    """Which retriever failed, and why."""
    is_keyword_index_corrupt: bool = False


def retrieve(
    generation: Generation,
    query: Query,
    vector: QueryVector,
    where: Filter,
    options: SearchOptions,
    limit: int,
    scale: Scale,
) -> CandidateSet:
    """Return up to `limit` candidates of each retriever, and exact name matches.

    The vector is requested after the keyword lookup; without one, words alone decide. Raises errors of the catalog if no
    retriever can answer, and errors of ChromaDB.
    """
    words = _KeywordRetriever(generation, query, where)
    ratio = _semantic_ratio(options)
    found, failure = _KeywordMatches(), None
    try:
        found = words.retrieve(limit, matches=ratio < 1)
    except CatalogError as error:
        failure = error
    embedded = vector()
    if embedded is None:
        if failure is not None:
            raise failure
        if ratio == 1:
            found = words.retrieve(limit, matches=True)
        ratio = 0.0
    degraded = None
    if failure is not None:
        log.warning("%s; answering by meaning alone", failure)
        degraded = f"the keyword index failed, the answer is by meaning alone: {failure}"
        words, ratio = _KeywordRetriever(generation, query, Filter(where.pages)), 1.0
    candidates = {chunk.id: Candidate(*chunk, is_named=chunk.id in found.named) for chunk in found.chunks}
    for rank, (chunk, score) in enumerate(found.scores.items(), 1):
        if chunk in candidates:
            candidates[chunk].keyword_rank, candidates[chunk].keyword_score = rank, score
    is_complete = found.is_complete
    if embedded is not None:
        if degraded or options.mode is not Mode.KEYWORD:
            nearest = generation.nearest(embedded, limit, words.mask())
            _note_nearest(candidates, nearest.found)
            is_complete &= nearest.is_whole
            degraded = degraded or nearest.degraded
        _compare(candidates, words.index, embedded)
    is_rank_fused = options.fusion is Fusion.RRF and 0 < ratio < 1
    score_candidates(
        candidates, generation, found.words, found.floor, embedded, scale, ratio, options.recency, by_ranks=is_rank_fused
    )
    _place_first(candidates.values(), found.titled, Tier.EXACT_TITLE)
    _place_first(candidates.values(), query.pinned, Tier.PINNED_ANSWER)
    return CandidateSet(
        candidates=sorted(candidates.values(), key=_rank_key),
        is_complete=is_complete,
        words=found.words,
        is_rank_fused=is_rank_fused,
        degraded=degraded,
        is_keyword_index_corrupt=isinstance(failure, CatalogCorruptError),
    )


def _semantic_ratio(options: SearchOptions) -> float:
    if options.mode is Mode.HYBRID:
        return DEFAULT_RATIO if options.semantic_ratio is None else options.semantic_ratio
    return 1.0 if options.mode is Mode.SEMANTIC else 0.0


def _rank_key(candidate: Candidate) -> tuple[int, float, str, int, int]:
    return -candidate.tier, -candidate.score, candidate.path, candidate.ordinal, candidate.id


@dataclass(frozen=True, slots=True)
class _KeywordMatches:
    scores: dict[int, float] = field(default_factory=dict)
    """BM25 of words and word pairs, by chunk id, best first."""
    floor: float = 0.0
    """The score assumed for other candidates: half of the lowest score."""
    chunks: tuple[ChunkRef, ...] = ()
    """The matches, then the chunks with the query's name."""
    titled: frozenset[str] = frozenset()
    """The paths of pages with the query's name."""
    named: frozenset[int] = frozenset()
    """The ids of chunks with a heading equal to the query, or with the rare identifier that it is."""
    words: tuple[QueryWords, ...] = ()
    is_complete: bool = True


class _KeywordRetriever:
    """Look up a query in the keyword index, in one snapshot of the catalog."""

    def __init__(self, generation: Generation, query: Query, where: Filter) -> None:
        self._reader = generation.catalog.reader
        self._keywords = generation.catalog.keywords
        self._query = query
        self._where = where
        self.index: ExactIndex = self._reader.exact_index()

    def mask(self) -> FilterMask | None:
        """Return the chunks that pass the filter; None if all do."""
        return self._reader.mask(self.index, self._where)

    def retrieve(self, limit: int, *, matches: bool) -> _KeywordMatches:
        """Return the matches, or without `matches` only the words' weights. Raises errors of the catalog."""
        mask = self.mask()
        found = []
        for query in self._query.all:
            frequencies = self._keywords.frequencies([*query.parts, *query.wholes])
            if matches:
                found.append(self._matches(query, limit, mask, frequencies))
            else:
                rarest = _rarest_first(query.sought, frequencies)
                found.append(_KeywordMatches(words=(self._words(query, rarest, frequencies),)))
        merged = found[0] if len(found) == 1 else _merged(found)
        if not self._query.pinned:
            return merged
        pinned = self._reader.first_chunks(self._query.pinned, self._where)
        return replace(merged, chunks=(*merged.chunks, *pinned))

    def _words(self, query: Query, looked_up: Sequence[str], frequencies: Mapping[str, int]) -> QueryWords:
        weights = {word: inverse_frequency(frequencies[word], len(self.index)) for word in query.sought}
        names = {word: weight for word, weight in weights.items() if frequencies[word]}
        is_sought = {*looked_up, *(word for word in weights if not frequencies[word] and word != query.unfinished)}
        return QueryWords(names, {word: weight for word, weight in weights.items() if word in is_sought})

    def _matches(self, query: Query, limit: int, mask: FilterMask | None, frequencies: dict[str, int]) -> _KeywordMatches:
        terms = _rarest_first([*query.sought, *query.wholes], frequencies)
        chosen = terms[: max(_MIN_TERMS, _affordable([frequencies[term] for term in terms], _MAX_POSTINGS))]
        by_word = self._word_scores(chosen, query, limit, mask)
        if len(by_word) < _MIN_MATCHES and chosen != terms:
            chosen = terms  # too few have one of the rarer words: look up all, whatever the cost
            by_word = self._word_scores(chosen, query, limit, mask)
        by_pair = self._scores(any_pair(_pairs(query, chosen, frequencies)), limit, mask)
        word_floor, pair_floor = (min(found.values()) / 2 if len(found) == limit else 0.0 for found in (by_word, by_pair))
        total = {
            chunk: by_word.get(chunk, word_floor) + _PAIR_WEIGHT * by_pair.get(chunk, pair_floor)
            for chunk in by_word.keys() | by_pair.keys()
        }
        ranked = _best_first(total)
        pages, sections = self._keywords.named(query.name, mask)
        identified = self._identified(query, mask)
        return _KeywordMatches(
            scores=ranked,
            floor=word_floor + _PAIR_WEIGHT * pair_floor,
            chunks=(*self.index.candidates(list(ranked)), *pages, *sections, *identified),
            titled=frozenset(chunk.path for chunk in pages),
            named=frozenset(chunk.id for chunk in (*sections, *identified)),
            words=(self._words(query, chosen, frequencies),),
            is_complete=len(by_word) < limit,
        )

    def _word_scores(self, words: Sequence[str], query: Query, limit: int, mask: FilterMask | None) -> dict[int, float]:
        expression = any_of(words, query.prefixes)
        if query.prefixes:
            return self._scores(expression, limit, mask)
        return self._keywords.word_scores(words, expression, self.index, limit, mask)

    def _scores(self, expression: str, limit: int, mask: FilterMask | None) -> dict[int, float]:
        return self._keywords.scores(expression, limit, mask) if expression else {}

    def _identified(self, query: Query, mask: FilterMask | None) -> list[ChunkRef]:
        """Return the chunks with the query as an identifier, if it is a rare one."""
        identifier = stem(query.name, query.language)
        if len(identifier) < _MIN_IDENTIFIER or " " in query.text:
            return []
        limit = min(_MAX_RARE, max(_MIN_RARE, int(_RARE_SHARE * len(self.index))))
        ids = self._keywords.matches(any_of([identifier]), limit + 1)
        if len(ids) > limit:
            return []
        found = self.index.candidates(ids, mask.mask if mask else None)
        if query.wholes or any(character.isdigit() for character in identifier):
            return found
        # A plain word is an identifier only where it is written as one, such as TargetWords.
        texts = self._reader.chunks([chunk.id for chunk in found])
        in_parts = WordMatcher(lambda parts, whole: len(parts) > 1 and whole == identifier, languages=query.languages)
        written = {chunk for chunk, stored in texts.items() if any(in_parts.spans(stored.text))}
        return [chunk for chunk in found if chunk.id in written]


def _pairs(query: Query, terms: Sequence[str], frequencies: dict[str, int]) -> list[tuple[str, str]]:
    """Return the pairs with a term that is looked up, rarest first, within the budget."""
    kept = set(terms)
    costs = {
        pair: frequencies[pair[0]] + frequencies[pair[1]]
        for pair in query.pairs
        if not kept.isdisjoint(pair) and frequencies[pair[0]] and frequencies[pair[1]]
    }
    pairs = sorted(costs, key=lambda pair: costs[pair])
    return pairs[: min(_MAX_TERMS, _affordable([costs[pair] for pair in pairs], _MAX_PAIR_POSTINGS))]


def _merged(found: Sequence[_KeywordMatches]) -> _KeywordMatches:
    """Return the merged matches of a query and its variants, each chunk with its best score."""
    best: dict[int, float] = {}
    for each in found:
        best |= {chunk: max(score, best.get(chunk, 0.0)) for chunk, score in each.scores.items()}
    return _KeywordMatches(
        scores=_best_first(best),
        floor=max(each.floor for each in found),
        chunks=tuple(chain.from_iterable(each.chunks for each in found)),
        titled=frozenset().union(*(each.titled for each in found)),
        named=frozenset().union(*(each.named for each in found)),
        words=tuple(chain.from_iterable(each.words for each in found)),
        is_complete=all(each.is_complete for each in found),
    )


def _best_first(scores: dict[int, float]) -> dict[int, float]:
    return {chunk: scores[chunk] for chunk in sorted(sorted(scores), key=scores.__getitem__, reverse=True)}


def _rarest_first(terms: Iterable[str], frequencies: dict[str, int]) -> list[str]:
    return sorted((term for term in terms if frequencies[term]), key=lambda term: frequencies[term])[:_MAX_TERMS]


def _affordable(costs: Sequence[int], budget: int) -> int:
    """Return how many of the costs, from the first, a budget covers."""
    return sum(total <= budget for total in accumulate(costs))


def _note_nearest(candidates: dict[int, Candidate], nearest: Iterable[tuple[ChunkRef, float]]) -> None:
    found = sorted(nearest, key=lambda item: (-item[1], item[0].path, item[0].ordinal))
    for rank, (chunk, similarity) in enumerate(found, 1):
        candidate = candidates.get(chunk.id)
        if candidate is None:
            candidate = candidates[chunk.id] = Candidate(*chunk)
        candidate.semantic_rank, candidate.similarity = rank, similarity


def _compare(candidates: dict[int, Candidate], index: ExactIndex, vector: Matrix) -> None:
    """Set the similarity of candidates that were found only by words or a name.

    Equal texts get one similarity: rounding depends on a vector's position, so that ranks would differ from index to index.
    """
    missing = [chunk for chunk, candidate in candidates.items() if candidate.similarity is None]
    for chunk, similarity in index.similarities(vector, missing).items():
        candidates[chunk].similarity = similarity
    of_vectors: dict[str, float] = {}
    for each in candidates.values():
        if each.similarity is not None:
            each.similarity = of_vectors.setdefault(each.vector, each.similarity)


def _place_first(candidates: Iterable[Candidate], paths: Collection[str], tier: Tier) -> None:
    """Put the best chunk of each of these pages in a tier."""
    best: dict[str, Candidate] = {}
    for each in candidates if paths else ():
        if each.path in paths and (each.path not in best or each.fused >= best[each.path].fused):
            best[each.path] = each
    for each in best.values():
        each.tier = tier
