"""First-stage retrieval: the candidates that words, names and vectors find, with one score for each."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate, chain

from otterwiki_semantic.content.analysis import WordMatcher
from otterwiki_semantic.core.errors import CatalogCorruptError, CatalogError
from otterwiki_semantic.core.records import Fusion, Mode, SearchOptions
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.fusion import COSINE_WEIGHT, PAIR_WEIGHT, fused_score, page_credits, reciprocal_rank_scores
from otterwiki_semantic.search.name_evidence import EXACT_POINTS, LINK_POINTS, NO_FEATURES, NO_HEADINGS, Features, NameEvidence
from otterwiki_semantic.search.query import Query, any_of, any_pair
from otterwiki_semantic.search.relevance import inverse_frequency, word_weights
from otterwiki_semantic.search.similarity_scale import Scale
from otterwiki_semantic.storage import ChunkRef, ExactIndex, Filter, FilterMask, Generation

_DEFAULT_RATIO = 0.5
_MAX_TERMS = 48
"""Words of a query that are looked up, the rarest first; a question has ten."""
_MAX_POSTINGS, _MAX_PAIR_POSTINGS, _MIN_TERMS = 10_000, 15_000, 3
"""Common words are skipped once the rarer ones stand in so many chunks: BM25 visits each of them."""
_MIN_MATCHES = 20
"""If fewer chunks have one of the rarer words, the common words are looked up as well."""
_RARE_SHARE = 0.01
_MIN_RARE, _MAX_RARE = 3, 20
_MIN_IDENTIFIER = 3
_DAY_SECONDS = 86_400
_RECENCY_POINTS, _HALF_LIFE_SECONDS = EXACT_POINTS, 180 * _DAY_SECONDS

QueryVector = Callable[[], Matrix | None]
"""Returns the vector of a query, and may wait for it; None if the model failed."""
Evidence = Mapping[int, tuple[float | None, float]]
"""What a chunk's similarity and its words count, by its id."""

log = logging.getLogger(__name__)


class Tier(IntEnum):
    """Ranking tiers: a page whose title or name is typed in full, or that is pinned to the question, comes before any score."""

    SCORE = 0
    EXACT_TITLE = 1
    PINNED_ANSWER = 2

    @property
    def label(self) -> str:
        """The tier's name for people."""
        return self.name.lower().replace("_", " ")


@dataclass(slots=True)
class Candidate:
    """A chunk that may answer a query, and what each retriever makes of it."""

    chunk: ChunkRef
    similarity: float | None = None
    """Cosine similarity to the query; None without vectors."""
    semantic_rank: int | None = None
    """1 is first; None if its vector was not among the nearest."""
    keyword_score: float | None = None
    """BM25 of words and of pairs of words; None if it was not among the best matches."""
    keyword_rank: int | None = None
    tier: Tier = Tier.SCORE
    fused: float = 0.0
    page_credit: float = 0.0
    """What other chunks of the page add to the score."""
    names: Features = NO_FEATURES
    """How well the page's title and path and the chunk's headings fit the query."""
    name_points: float = 0.0
    """What they add to the score."""
    link_points: float = 0.0
    """What links from other pages add to the score."""
    recency_points: float = 0.0
    """What the date of the page's last change adds to the score."""
    score: float = 0.0
    """What ranks within a tier: the sum of these, or after reranking that of another candidate."""
    is_named: bool = False
    """Whether the query is one of its headings in full, or a rare identifier that it has."""
    rank_before: int | None = None
    """Its rank before a reranker read it."""
    rerank_score: float | None = None
    coverage: float = 0.0
    """The share of the query's words that it has, weighted; set for results, and for facets."""
    relevance: float = 0.0
    """How far it is above the relevance threshold; set along with the coverage."""

    @property
    def is_relevant(self) -> bool:
        """Whether it is about the query; what the query names is, whatever it scores."""
        return self.relevance >= 0 or self.is_named or self.tier > Tier.SCORE

    @property
    def id(self) -> int:
        """The chunk's id in the catalog."""
        return self.chunk.id

    @property
    def path(self) -> str:
        """The path of the chunk's page."""
        return self.chunk.path


@dataclass(slots=True)
class CandidateSet:
    """The candidates of a query."""

    candidates: list[Candidate]
    """Best first; equally good ones by path and position."""
    is_complete: bool
    """Whether there are no others."""
    index_size: int
    """The number of chunks in the index."""
    word_weights: tuple[dict[str, float], ...]
    """The weight of each word of the query, and of each of its variants."""
    is_rank_fused: bool = False
    """Whether scores are reciprocal ranks, which are all close to each other."""
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
    """Return up to `limit` candidates of each retriever, and those that the query names.

    The vector is asked for once the words were looked up; without one, words alone decide. Errors: those of the catalog if no
    retriever can answer, and those of ChromaDB.
    """
    words = _KeywordRetriever(generation, query, where)
    ratio = _semantic_ratio(options)
    found = words.retrieve(limit, matches=ratio < 1)
    embedded = vector()
    if embedded is None:
        if ratio == 1:
            found = words.retrieve(limit, matches=True)
        ratio = 0.0
    degraded, is_corrupt = None, False
    if isinstance(found, CatalogError):
        if embedded is None:
            raise found
        log.warning("%s; answering by meaning alone", found)
        degraded = f"the keyword index failed, the answer is by meaning alone: {found}"
        is_corrupt = isinstance(found, CatalogCorruptError)
        words = _KeywordRetriever(generation, query, Filter(where.pages))
        found, ratio = KeywordMatches(), 1.0
    candidates = {chunk.id: Candidate(chunk) for chunk in found.chunks}
    _note_matches(candidates, found)
    is_complete = found.is_complete
    if embedded is not None:
        if degraded or options.mode is not Mode.KEYWORD:
            nearest = generation.nearest(embedded, limit, words.mask())
            _note_nearest(candidates, nearest.found)
            is_complete &= nearest.is_whole
            degraded = degraded or nearest.degraded
        _compare(candidates, words.index, embedded)
    is_rank_fused = options.fusion is Fusion.RRF and 0 < ratio < 1
    _add_name_evidence(candidates, generation, found.name_weights, _DEFAULT_RATIO if is_rank_fused else ratio)
    if options.recency:
        _add_recency(candidates.values(), generation, options.recency)
    score = _score_by_ranks if is_rank_fused else _score
    score(candidates.values(), _evidence(candidates.values(), scale, found.floor), ratio)
    _place_first(candidates.values(), found.titled, Tier.EXACT_TITLE)
    _place_first(candidates.values(), frozenset(query.pinned), Tier.PINNED_ANSWER)
    return CandidateSet(
        candidates=sorted(candidates.values(), key=_rank_key),
        is_complete=is_complete,
        index_size=len(words.index),
        word_weights=found.word_weights,
        is_rank_fused=is_rank_fused,
        degraded=degraded,
        is_keyword_index_corrupt=is_corrupt,
    )


def _semantic_ratio(options: SearchOptions) -> float:
    if options.mode is Mode.HYBRID:
        return _DEFAULT_RATIO if options.semantic_ratio is None else options.semantic_ratio
    return 1.0 if options.mode is Mode.SEMANTIC else 0.0


def _rank_key(candidate: Candidate) -> tuple[int, float, str, int, int]:
    chunk = candidate.chunk
    return -candidate.tier, -candidate.score, chunk.path, chunk.ordinal, chunk.id


@dataclass(frozen=True, slots=True)
class KeywordMatches:
    """What the keyword index finds, and what the query names."""

    scores: dict[int, float] = field(default_factory=dict)
    """BM25 of words, and of pairs of words, by chunk id, best first."""
    floor: float = 0.0
    """The score assumed for a candidate that is not among them: half of the lowest one."""
    chunks: tuple[ChunkRef, ...] = ()
    """The matches, then the chunks with the query's name."""
    titled: frozenset[str] = frozenset()
    """The paths of pages with the query's name."""
    named: frozenset[int] = frozenset()
    """The ids of chunks with a heading that is the query, or with the rare identifier that it is."""
    name_weights: tuple[dict[str, float], ...] = ()
    """The weights of the words that names are compared with, of the query and each of its variants."""
    is_complete: bool = True
    word_weights: tuple[dict[str, float], ...] = ()


class _KeywordRetriever:
    """Looks a query up in the keyword index of one state of the catalog."""

    def __init__(self, generation: Generation, query: Query, where: Filter) -> None:
        self._reader = generation.catalog.reader
        self._keywords = generation.catalog.keywords
        self._query = query
        self._where = where
        self.index: ExactIndex = self._reader.exact_index()

    def mask(self) -> FilterMask | None:
        """Return the chunks that pass the filter; None if all do."""
        return self._reader.mask(self.index, self._where)

    def retrieve(self, limit: int, *, matches: bool) -> KeywordMatches | CatalogError:
        """Return the matches, or only the words' weights without `matches`; the error if the keyword index cannot be read."""
        try:
            mask = self.mask()
            found = [self._retrieve(query, limit, mask, matches=matches) for query in self._query.all]
            pinned = self._reader.first_chunks(self._query.pinned, self._where) if self._query.pinned else ()
        except CatalogError as error:
            return error
        return _merged(found, pinned)

    def _retrieve(self, query: Query, limit: int, mask: FilterMask | None, *, matches: bool) -> KeywordMatches:
        frequencies = self._keywords.frequencies([*query.parts, *query.wholes])
        parts = [part for part in query.parts if frequencies[part] or part != query.unfinished]
        weights = word_weights(parts, frequencies, len(self.index))
        return self._matches(query, limit, mask, frequencies, weights) if matches else KeywordMatches(word_weights=(weights,))

    def _matches(
        self, query: Query, limit: int, mask: FilterMask | None, frequencies: dict[str, int], weights: dict[str, float]
    ) -> KeywordMatches:
        terms = _rarest_first([*query.sought, *query.wholes], frequencies)
        chosen = terms[: max(_MIN_TERMS, _affordable([frequencies[term] for term in terms], _MAX_POSTINGS))]
        by_word = self._word_scores(chosen, query, limit, mask)
        if len(by_word) < _MIN_MATCHES and chosen != terms:
            chosen = terms  # too few have one of the rarer words: look all of them up, whatever it costs
            by_word = self._word_scores(chosen, query, limit, mask)
        by_pair = self._scores(any_pair(_pairs(query, chosen, frequencies)), limit, mask)
        word_floor, pair_floor = (min(found.values()) / 2 if len(found) == limit else 0.0 for found in (by_word, by_pair))
        total = {
            chunk: by_word.get(chunk, word_floor) + PAIR_WEIGHT * by_pair.get(chunk, pair_floor)
            for chunk in by_word.keys() | by_pair.keys()
        }
        ranked = _best_first(total)
        pages, sections = self._keywords.named(query.name, self._where)
        identified = self._identified(query, mask)
        return KeywordMatches(
            scores=ranked,
            floor=word_floor + PAIR_WEIGHT * pair_floor,
            chunks=(*self.index.candidates(list(ranked)), *pages, *sections, *identified),
            titled=frozenset(chunk.path for chunk in pages),
            named=frozenset(chunk.id for chunk in (*sections, *identified)),
            name_weights=(
                {word: inverse_frequency(frequencies[word], len(self.index)) for word in query.sought if frequencies[word]},
            ),
            is_complete=len(by_word) < limit,
            word_weights=(weights,),
        )

    def _word_scores(self, words: Sequence[str], query: Query, limit: int, mask: FilterMask | None) -> dict[int, float]:
        expression = any_of(words, query.prefixes)
        if query.prefixes:
            return self._scores(expression, limit, mask)
        return self._keywords.word_scores(words, expression, self.index, limit, mask)

    def _scores(self, expression: str, limit: int, mask: FilterMask | None) -> dict[int, float]:
        return self._keywords.scores(expression, limit, mask) if expression else {}

    def _identified(self, query: Query, mask: FilterMask | None) -> list[ChunkRef]:
        """Return the chunks with the identifier that the query is, if it is one and is rare."""
        identifier = query.identifier
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
    """Return the pairs with a term that is looked up, the rarer ones first, as far as they are affordable."""
    kept = set(terms)
    costs = {
        pair: frequencies[pair[0]] + frequencies[pair[1]]
        for pair in query.pairs
        if not kept.isdisjoint(pair) and frequencies[pair[0]] and frequencies[pair[1]]
    }
    pairs = sorted(costs, key=lambda pair: costs[pair])
    return pairs[: min(_MAX_TERMS, _affordable([costs[pair] for pair in pairs], _MAX_PAIR_POSTINGS))]


def _merged(found: Sequence[KeywordMatches], pinned: Iterable[ChunkRef]) -> KeywordMatches:
    """Return the matches of a query and its variants as one, each chunk with its best score, and the pinned chunks."""
    best: dict[int, float] = {}
    for each in found:
        best |= {chunk: max(score, best.get(chunk, 0.0)) for chunk, score in each.scores.items()}
    return KeywordMatches(
        scores=best if len(found) == 1 else _best_first(best),
        floor=max(each.floor for each in found),
        chunks=tuple(dict.fromkeys((*chain.from_iterable(each.chunks for each in found), *pinned))),
        titled=frozenset().union(*(each.titled for each in found)),
        named=frozenset().union(*(each.named for each in found)),
        name_weights=tuple(chain.from_iterable(each.name_weights for each in found)),
        is_complete=all(each.is_complete for each in found),
        word_weights=tuple(chain.from_iterable(each.word_weights for each in found)),
    )


def _best_first(scores: dict[int, float]) -> dict[int, float]:
    return {chunk: scores[chunk] for chunk in sorted(scores, key=lambda chunk: (-scores[chunk], chunk))}


def _rarest_first(terms: Iterable[str], frequencies: dict[str, int]) -> list[str]:
    return sorted((term for term in terms if frequencies[term]), key=lambda term: frequencies[term])[:_MAX_TERMS]


def _affordable(costs: Sequence[int], budget: int) -> int:
    """Return how many of the costs, from the first on, a budget covers."""
    return sum(total <= budget for total in accumulate(costs))


def _note_matches(candidates: dict[int, Candidate], found: KeywordMatches) -> None:
    for rank, (chunk, score) in enumerate(found.scores.items(), 1):
        if chunk in candidates:
            candidates[chunk].keyword_rank, candidates[chunk].keyword_score = rank, score
    for chunk in found.named:
        candidates[chunk].is_named = True


def _note_nearest(candidates: dict[int, Candidate], nearest: Iterable[tuple[ChunkRef, float]]) -> None:
    found = sorted(nearest, key=lambda item: (-item[1], item[0].path, item[0].ordinal))
    for rank, (chunk, similarity) in enumerate(found, 1):
        candidate = candidates.setdefault(chunk.id, Candidate(chunk))
        candidate.semantic_rank, candidate.similarity = rank, similarity


def _compare(candidates: dict[int, Candidate], index: ExactIndex, vector: Matrix) -> None:
    """Compare the candidates with the query that only words or a name have found.

    Equal texts get one similarity: rounding depends on a vector's place, and would rank them differently from index to index.
    """
    missing = [chunk for chunk, candidate in candidates.items() if candidate.similarity is None]
    for chunk, similarity in index.similarities(vector, missing).items():
        candidates[chunk].similarity = similarity
    of_vectors: dict[str, float] = {}
    for each in candidates.values():
        if each.similarity is not None:
            each.similarity = of_vectors.setdefault(each.chunk.vector, each.similarity)


def _evidence(candidates: Collection[Candidate], scale: Scale, floor: float) -> Evidence:
    nearest = max((scale.to_bundled(each.similarity) for each in candidates if each.similarity is not None), default=None)
    best = max((each.keyword_score for each in candidates if each.keyword_score is not None), default=0.0)
    evidence = {}
    for each in candidates:
        keyword = floor if each.keyword_score is None else each.keyword_score
        similarity = nearest if each.similarity is None else scale.to_bundled(each.similarity)
        # A chunk without a vector counts as near as the nearest, or nobody would find it, but the less the worse its words
        # match: else it would come before others for a single word.
        if each.similarity is None and similarity is not None and best:
            similarity *= keyword / best
        evidence[each.id] = similarity, keyword
    return evidence


def _score(candidates: Collection[Candidate], evidence: Evidence, ratio: float) -> None:
    for each in candidates:
        each.fused = fused_score(*evidence[each.id], ratio)
    if ratio < 1:
        _add_page_credit(candidates, {each.id: each.fused for each in candidates})
    for each in candidates:
        each.score = each.fused + each.page_credit + each.name_points + each.link_points + each.recency_points


def _score_by_ranks(candidates: Collection[Candidate], evidence: Evidence, ratio: float) -> None:
    """Fuse the rankings that meaning alone and words alone would give; the points are in the ranks, and add nothing more."""
    _add_page_credit(candidates, {chunk: keyword for chunk, (_, keyword) in evidence.items()})
    by_meaning, by_words = {}, {}
    for each in candidates:
        similarity, keyword = evidence[each.id]
        by_meaning[each.id] = COSINE_WEIGHT * (similarity or 0.0) + each.recency_points
        by_words[each.id] = keyword + each.page_credit + each.name_points + each.link_points + each.recency_points
    scores = reciprocal_rank_scores(by_meaning, by_words, ratio)
    for each in candidates:
        each.fused = each.score = scores[each.id]
        each.page_credit = each.name_points = each.link_points = each.recency_points = 0.0


def _add_page_credit(candidates: Collection[Candidate], scores: Mapping[int, float]) -> None:
    credits_of = page_credits((each.path, scores[each.id]) for each in candidates)
    for each in candidates:
        each.page_credit = credits_of[each.path]


def _add_name_evidence(
    candidates: dict[int, Candidate], generation: Generation, weights: Iterable[dict[str, float]], ratio: float
) -> None:
    """Compare the query's words with names, which are words like others: by meaning alone they count nothing."""
    if ratio == 1:
        return
    reader = generation.catalog.reader
    names = reader.page_names()
    evidence = [NameEvidence(each, names) for each in weights if each]
    headings, share = reader.heading_words(list(candidates)), 2 * (1 - ratio)
    for chunk, each in candidates.items():
        features = [variant.features(each.path, headings.get(chunk, NO_HEADINGS)) for variant in evidence]
        if features:
            each.names = features[0] if len(features) == 1 else max(features, key=lambda names: names.points)
        each.name_points = share * (each.names.points + EXACT_POINTS * each.is_named)
        each.link_points = share * LINK_POINTS * math.log1p(names.incoming_links(each.path))


def _add_recency(candidates: Collection[Candidate], generation: Generation, weight: float) -> None:
    """Add points that halve with every half-life from the page's last change to the beginning of this day (UTC)."""
    dates, now = (
        generation.catalog.updated(sorted({each.path for each in candidates})),
        time.time() // _DAY_SECONDS * _DAY_SECONDS,
    )
    for each in candidates:
        age = max(0.0, now - dates[each.path]) if each.path in dates else math.inf
        each.recency_points = weight * _RECENCY_POINTS * 0.5 ** (age / _HALF_LIFE_SECONDS)


def _place_first(candidates: Iterable[Candidate], paths: Container[str], tier: Tier) -> None:
    """Put the best chunk of each of these pages in a tier."""
    best: dict[str, Candidate] = {}
    for each in candidates:
        if each.path in paths and (each.path not in best or each.fused >= best[each.path].fused):
            best[each.path] = each
    for each in best.values():
        each.tier = tier
