"""One score for each candidate, for names and questions alike, and its relevance.

Some queries are names: a passage has nearly all of their words. Others are questions, phrased in other words. A name is found
best by the sum of its evidence in words, titles and headings. (BM25 approximates a sum of log odds: Robertson and Zaragoza,
2009. The bundled model was trained so that a multiple of its cosine does, too.) For a question, that sum would
outweigh meaning, because it grows with every word, and single words mislead. Questions are scored by how much of the question
the passage and its page cover, and by the similarity of the page as a whole.

Each query is ranked by a mixture of both, weighted by the share of its words in the passage that has most of them. Reciprocal
rank fusion (Cormack, Clarke and Büttcher, 2009), available on request, uses ranks only and ignores the size of scores.

The weights and the relevance threshold were fitted on judged wikis (`tools/fit_ranking.py`, `tools/fit_relevance.py`), and
measured on other wikis; docs/quality.md has the figures.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.similarity_scale import Scale
from otterwiki_semantic.storage import Generation, HeadingWords, PageNames, PageRows, Rows

DEFAULT_RATIO = 0.5
COSINE_WEIGHT = 25.0
"""BM25 points for a cosine similarity of 1 at equal shares; 20 to 33 rank about the same."""
COVERAGE_WEIGHT = 9.0
"""Points of a question whose words are all in the passage, weighted by rarity."""
PAGE_COVERAGE_WEIGHT = 4.0
"""Points of a question whose words are all on the page."""
PAGE_SIMILARITY_WEIGHT = 8.0
"""Points of a question for a mean cosine similarity of 1 of the page's passages."""
QUESTION_COVERAGE, NAME_COVERAGE = 0.65, 0.95
"""The highest coverage by the best passage at which a query is a question, and the lowest at which it is a name."""
RANK_CONSTANT = 60
"""The constant k of reciprocal rank fusion, as in the paper."""
_SECOND_CREDIT, _THIRD_CREDIT = 0.1, 0.05
_TITLE_SHARE, _TITLE_MATCH, _PATH_RECALL, _HEADING_SHARE, _HEADING_MATCH = 5.5, 2.0, 1.2, 4.0, 4.0
"""Points of a name: for the share of its words in the query; for the harmonic mean of this and of the share of the query's
words in the name; and for the latter share alone.
"""
EXACT_POINTS = 8.0
"""Points for a heading equal to the query, and for a rare identifier as typed."""
_LINK_POINTS = 1.2
"""Points for the logarithm of 1 plus the number of pages that link to the page: often linked pages are often meant."""
_WEIGHT_ELSEWHERE = 6.0
"""The weight of a heading's word that is not in the query."""
_DAY_SECONDS = 86_400
_RECENCY_POINTS, _HALF_LIFE_SECONDS = 7.0, 180 * _DAY_SECONDS

FLOOR = 0.263
"""The relevance threshold for the bundled model; similarities of other models are converted to its scale."""
_RELEVANT_COVERAGE_WEIGHT = 0.2
"""The weight of full coverage of the question's words, as a similarity."""
_SPREAD = 0.04
"""The bonus of the nearest of N unrelated passages by chance: this times the square root of 2 ln N.

This is the largest of N draws from a normal distribution; 0.04 fits wikis of 50 and of 3,000 passages alike.
"""
_KEYWORD_FLOOR = 0.5
"""The least coverage of a relevant passage without a similarity."""
_FULL_COVERAGE = 1 - 1e-9
"""The least coverage of a passage with all of the query's words; allows for rounding."""

Floats = npt.NDArray[np.float64]
Points = TypeVar("Points", float, Floats)


class QueryWords(NamedTuple):
    """The words of a query or of one of its variants, with their inverse document frequencies."""

    names: Mapping[str, float]
    """Words that occur in the wiki, for the comparison with names."""
    weights: Mapping[str, float]
    """Words that were looked up, up to the limit of lookups, and words that do not occur in the wiki; for coverage."""


class Tier(IntEnum):
    """What precedes scores: a page that is pinned to the question, then one whose title or name is the whole query."""

    SCORE = 0
    EXACT_TITLE = 1
    PINNED_ANSWER = 2


@dataclass(slots=True)
class Candidate:
    """A chunk that may answer a query: the fields of its `ChunkRef`, then its scores and ranks."""

    id: int
    vector: str
    path: str
    ordinal: int
    similarity: float | None = None
    """Cosine similarity to the query; None without vectors."""
    semantic_rank: int | None = None
    """From 1; None if its vector was not among the nearest."""
    keyword_score: float | None = None
    """BM25 of words and pairs of words; None if it was not among the best matches."""
    keyword_rank: int | None = None
    tier: Tier = Tier.SCORE
    fused: float = 0.0
    """Points from meaning and words."""
    page_credit: float = 0.0
    """Points from the rest of the page."""
    name_points: float = 0.0
    """Points from the page's title and path and the chunk's headings."""
    link_points: float = 0.0
    """Points from links on other pages."""
    recency_points: float = 0.0
    """Points from the date of the page's last change."""
    score: float = 0.0
    """The rank score within a tier: the sum of these points, or, after reranking, another candidate's score."""
    is_named: bool = False
    """Whether the query is one of the chunk's headings in full, or a rare identifier in it."""
    rank_before: int | None = None
    """The rank before reranking."""
    rerank_score: float | None = None
    coverage: float = 0.0
    """The share of the query's words in the chunk, weighted by rarity."""
    page_coverage: float = 0.0
    """The share of the query's words anywhere on the page; 0 for a pure name query."""
    page_similarity: float = 0.0
    """The mean similarity of the page's passages, on the bundled model's scale; 0 for a pure name query."""
    relevance: float = 0.0
    """The distance above the relevance threshold."""

    @property
    def is_relevant(self) -> bool:
        """Whether the chunk is about the query. Exact name matches always are."""
        return self.relevance >= 0 or self.is_named or self.tier > Tier.SCORE


def score_candidates(
    candidates: Mapping[int, Candidate],
    generation: Generation,
    words: Sequence[QueryWords],
    floor: float,
    vector: Matrix | None,
    scale: Scale,
    ratio: float,
    recency: float,
    *,
    by_ranks: bool,
) -> None:
    """Set the scores of candidates (by id), the parts of the scores, and each candidate's relevance.

    `floor` is the BM25 score assumed for chunks without a keyword match. `ratio` is the weight of meaning and `recency` the
    weight of dates, from 0 to 1. With `by_ranks`, two rankings are fused by rank. Raises errors of the catalog.
    """
    if not candidates:
        return
    found, words = list(candidates.values()), [query for query in words if query.weights]
    index = generation.catalog.reader.exact_index()
    rows = index.find(list(candidates))
    coverage = _coverage(generation, words, rows)
    pages = index.pages_of(rows)
    cosines = np.array([each.similarity for each in found], dtype=np.float64)  # NaN where there is none
    similarity, keyword = _evidence(found, scale.shift + scale.stretch * cosines, floor)
    as_name = 1.0 if by_ranks else name_share(coverage, ratio)
    name_weight = 1.0 if by_ranks else 2 * (1 - ratio) * as_name
    names, links = _name_points(found, rows, generation, words) if name_weight else (np.zeros(len(found)),) * 2
    names, links = name_weight * names, name_weight * links
    dates = _recency(found, generation, recency) if recency else np.zeros(len(found))
    page_coverage = page_similarity = np.zeros(len(found))
    if by_ranks:
        by_words = keyword + page_credits(pages.of_chunk, keyword) + names + links + dates
        fused = reciprocal_rank_scores(COSINE_WEIGHT * similarity + dates, by_words, ratio)
        names = links = dates = credit = np.zeros(len(found))  # already part of the ranks
    else:
        credit = as_name * page_credits(pages.of_chunk, fused_score(similarity, keyword, ratio))
        fused = fused_score(similarity, as_name * keyword, ratio)
        as_question = 4 * ratio * (1 - ratio) * (1 - as_name)
        if as_question:
            page_coverage = _coverage(generation, words, pages.rows, pages.starts)[pages.of_chunk]
            page_similarity = _page_similarities(generation, pages, vector, similarity, scale)[pages.of_chunk]
            fused = fused + as_question * COVERAGE_WEIGHT * coverage
            by_page = PAGE_COVERAGE_WEIGHT * page_coverage + PAGE_SIMILARITY_WEIGHT * page_similarity
            credit = credit + as_question * by_page
    score = fused + credit + names + links + dates
    shown_coverage = coverage if words else np.array([float(each.keyword_rank is not None) for each in found])
    above_floor = relevance(cosines, shown_coverage, len(index), scale)
    columns = shown_coverage, above_floor, page_coverage, page_similarity, fused, credit, names, links, dates, score
    for each, values in zip(found, np.column_stack(columns).tolist(), strict=True):
        each.coverage, each.relevance, each.page_coverage, each.page_similarity, *points = values
        each.fused, each.page_credit, each.name_points, each.link_points, each.recency_points, each.score = points


def relevance(cosines: Floats, coverage: Floats, passages: int, scale: Scale) -> Floats:
    """Return the distance of passages above the relevance threshold; 0 or more is relevant.

    `cosines` are NaN for passages without a vector, `coverage` is each passage's share of the question's words, and
    `passages` is the number of passages in the index: the more there are, the nearer the nearest one is to any question. A
    passage with all of the words is relevant whatever its similarity, because the model may not know a word.
    """
    chance = _SPREAD * math.sqrt(2 * math.log(max(passages, 1)))
    above = scale.shift + scale.stretch * cosines + _RELEVANT_COVERAGE_WEIGHT * coverage - chance - FLOOR
    above = np.where(np.isnan(cosines), coverage - _KEYWORD_FLOOR, above)
    return np.where(coverage >= _FULL_COVERAGE, np.maximum(above, 0.0), above)


def inverse_frequency(count: int, total: int) -> float:
    """Return the weight of a word that occurs in `count` of `total` texts (Robertson and Spärck Jones, 1976), never below 0."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def name_share(coverage: Floats, ratio: float) -> float:
    """Return how much a query is a name, from 0 to 1, by the coverage of its candidates.

    The lower the weight of meaning, the more it counts as a name.
    """
    share = (float(coverage.max()) - QUESTION_COVERAGE) / (NAME_COVERAGE - QUESTION_COVERAGE)
    return min(1.0, max(0.0, share, 1 - 2 * ratio))


def fused_score(similarity: Points, keyword: Points, ratio: float) -> Points:
    """Return the sum of evidence from meaning and words; `ratio` is the share of meaning."""
    return 2 * (ratio * COSINE_WEIGHT * similarity + (1 - ratio) * keyword)


def reciprocal_rank_scores(by_meaning: Floats, by_words: Floats, ratio: float) -> Floats:
    """Return the fused score of each chunk from its two ranks; equal scores have equal ranks."""
    meaning, words = (1 + np.searchsorted(np.sort(-scores), -scores) for scores in (by_meaning, by_words))
    fused: Floats = 2 * (ratio / (RANK_CONSTANT + meaning) + (1 - ratio) / (RANK_CONSTANT + words))
    return fused


def page_credits(pages: npt.NDArray[np.intp], scores: Floats) -> Floats:
    """Return each chunk's bonus from its page: a tenth of its second chunk's score plus a twentieth of its third's.

    `pages` are the numbers of the chunks' pages, from 0 without gaps.
    """
    order = np.lexsort((-scores, pages))
    counts = np.bincount(pages)
    starts = np.cumsum(counts) - counts
    rank = np.arange(len(order)) - np.repeat(starts, counts)
    weights = np.array([0.0, _SECOND_CREDIT, _THIRD_CREDIT, 0.0])[np.minimum(rank, 3)]
    by_page: Floats = np.add.reduceat(weights * np.maximum(scores[order], 0.0), starts)
    return by_page[pages]


def _evidence(found: Sequence[Candidate], near: Floats, floor: float) -> tuple[Floats, Floats]:
    """Return each candidate's similarity, on the bundled model's scale, and BM25 score, with missing values filled in.

    Without a similarity, a chunk that lacks a vector (NaN) would not be found. It gets the similarity of the nearest chunk,
    reduced the worse its words match, because otherwise a single matching word would rank it first.
    """
    scores = np.array([each.keyword_score for each in found], dtype=np.float64)  # NaN where there is none
    keyword = np.where(np.isnan(scores), floor, scores)
    if np.isnan(near).all():
        return np.zeros(len(found)), keyword
    best, nearest = float(np.fmax.reduce(scores, initial=0.0)), float(np.nanmax(near))
    return np.where(np.isnan(near), nearest * keyword / best if best else nearest, near), keyword


def _coverage(
    generation: Generation, words: Sequence[QueryWords], rows: Rows, starts: npt.NDArray[np.intp] | None = None
) -> Floats:
    """Return the weighted share of a query's words in chunks, or in each group of chunks; the best over its variants."""
    best = np.zeros(len(rows if starts is None else starts))
    for query in words:
        looked_up = [word for word in query.weights if word in query.names]
        sets = generation.catalog.keywords.word_sets(looked_up, generation.catalog.reader.exact_index(), rows)
        if starts is not None:
            sets = np.bitwise_or.reduceat(sets, starts)
        bits = np.arange(len(looked_up), dtype=np.uint64)
        has_word = (sets[:, np.newaxis] >> bits & np.uint64(1)).astype(np.float64)
        shares = has_word @ np.array([query.weights[word] for word in looked_up]) / sum(query.weights.values())
        best = np.maximum(best, shares)
    return best


def _page_similarities(
    generation: Generation, pages: PageRows, vector: Matrix | None, similarity: Floats, scale: Scale
) -> Floats:
    """Return the mean similarity of each page; over its candidates only, if other vectors are missing or on disk."""
    counts = np.bincount(pages.of_chunk, minlength=len(pages.counts))
    of_candidates: Floats = np.bincount(pages.of_chunk, similarity, len(pages.counts)) / counts
    means = None if vector is None else generation.catalog.reader.exact_index().page_similarities(vector, pages)
    if means is None:
        return of_candidates
    return np.where(np.isnan(means), of_candidates, scale.shift + scale.stretch * means)


def _recency(found: Sequence[Candidate], generation: Generation, weight: float) -> Floats:
    """Return points that halve with every half-life between the page's last change and the start of today (UTC)."""
    dates = generation.catalog.pages.updated(sorted({each.path for each in found}))
    now = time.time() // _DAY_SECONDS * _DAY_SECONDS
    ages = np.array([max(0.0, now - dates[each.path]) if each.path in dates else np.inf for each in found])
    return weight * _RECENCY_POINTS * 0.5 ** (ages / _HALF_LIFE_SECONDS)


def _name_points(
    found: Sequence[Candidate], rows: Rows, generation: Generation, words: Sequence[QueryWords]
) -> tuple[Floats, Floats]:
    """Return each candidate's points for names with the query's words, and for links."""
    reader, keywords = generation.catalog.reader, generation.catalog.keywords
    names, paths = reader.page_names(), [each.path for each in found]
    has_words = np.zeros(len(found), dtype=bool)
    for query in words:
        if query.names.keys() <= query.weights.keys():  # otherwise, common words were not looked up
            has_words |= keywords.word_sets(list(query.names), reader.exact_index(), rows, in_names=True) > 0
        else:
            has_words[:] = True
    headings = reader.heading_words([each.id for each, has_word in zip(found, has_words.tolist(), strict=True) if has_word])
    best = np.zeros(len(found))
    for query in words:
        evidence = _NameEvidence(query.names)
        of_pages = {path: evidence.of_page(path, names) for path in set(paths)}
        of_chunks = {chunk: evidence.of_headings(each) for chunk, each in headings.items()}
        best = np.maximum(best, [of_pages[each.path] + of_chunks.get(each.id, 0.0) for each in found])
    named = np.array([each.is_named for each in found])
    links = {path: _LINK_POINTS * math.log1p(names.incoming_links(path)) for path in set(paths)}
    return best + EXACT_POINTS * named, np.array([links[path] for path in paths])


class _NameEvidence:
    """Compare one query with the names of pages and sections.

    Points depend on the share of the query's words in a name (recall) and the share of the name's words in the query, both
    weighted by rarity.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self.words = frozenset(weights)
        self._whole = sum(weights.values())

    def of_page(self, path: str, names: PageNames) -> float:
        """Return the points of a page for its title and path."""
        if not names.has_any(path, self.words):
            return 0.0
        recall, share = self._recall(names.title_words(path)), names.share(path, self.words)
        by_title = _TITLE_SHARE * share + _TITLE_MATCH * _harmonic(recall, share)
        return by_title + _PATH_RECALL * self._recall(names.path_words(path))

    def of_headings(self, headings: HeadingWords) -> float:
        """Return the points of a chunk for its headings."""
        in_chunk, others = headings
        share = max(map(self._share, in_chunk), default=0.0)
        recall = self._recall(others)
        return _HEADING_SHARE * share + _HEADING_MATCH * _harmonic(recall, share)

    def _recall(self, words: Iterable[str]) -> float:
        return self._weight_of(words) / self._whole if self._whole else 0.0

    def _share(self, words: Iterable[str]) -> float:
        weight = self._weight_of(words)
        return weight / (weight + _WEIGHT_ELSEWHERE * sum(word not in self._weights for word in words)) if weight else 0.0

    def _weight_of(self, words: Iterable[str]) -> float:
        return sum([self._weights[word] for word in words if word in self._weights])


def _harmonic(recall: float, precision: float) -> float:
    total = recall + precision
    return 2 * recall * precision / total if total else 0.0
