"""One score for each candidate, for names and for questions alike.

Some queries name something: a passage has nearly all of their words. Others ask something in words of their own. A name is
found best by the sum of what its words, titles and headings say (BM25 approximates a sum of log odds: Robertson and Zaragoza,
2009). In a question that sum would outweigh meaning, because it grows with every word, and single words mislead. What counts
there is how much of the question the passage and its page explain, and how near the page is as a whole.

Each query is ranked by a mixture of both, which depends on the share of its words in the passage with most of them.
`tools/fit_ranking.py` fits the weights; docs/quality.md has the figures.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.candidates import Candidate, QueryWords
from otterwiki_semantic.search.fusion import COSINE_WEIGHT, fused_score, page_credits, reciprocal_rank_scores
from otterwiki_semantic.search.name_evidence import EXACT_POINTS, LINK_POINTS, NO_HEADINGS, NameEvidence
from otterwiki_semantic.search.relevance import relevance
from otterwiki_semantic.search.similarity_scale import Scale
from otterwiki_semantic.storage import Generation, PageRows, Rows, WordSets

DEFAULT_RATIO = 0.5
COVERAGE_WEIGHT = 9.0
"""Points of a question for all of its words in the passage, each weighted by its rarity."""
PAGE_COVERAGE_WEIGHT = 4.0
"""Points of a question for all of its words anywhere on the page."""
PAGE_SIMILARITY_WEIGHT = 8.0
"""Points of a question for a mean cosine similarity of 1 of the page's passages."""
QUESTION_COVERAGE, NAME_COVERAGE = 0.65, 0.95
"""Coverage of the passage with most words of the query, up to which it is a question, and from which on it is a name."""
_DAY_SECONDS = 86_400
_RECENCY_POINTS, _HALF_LIFE_SECONDS = 7.0, 180 * _DAY_SECONDS

Floats = npt.NDArray[np.float64]


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
    """Set the scores of candidates, by id, the parts of the scores, and how relevant each candidate is.

    `floor` is the BM25 score assumed for chunks that words have not found; `ratio` is the weight of meaning, and `recency` that
    of dates, from 0 to 1. With `by_ranks` two rankings are fused by their ranks. Errors: those of the catalog.
    """
    if not candidates:
        return
    found = list(candidates.values())
    words = [query for query in words if query.weights]
    index = generation.catalog.reader.exact_index()
    rows = index.rows(list(candidates))
    coverage = _coverage(generation, words, rows)
    similarity, keyword = _evidence(found, scale, floor)
    for each, covered in zip(found, coverage.tolist(), strict=True):
        each.coverage = covered if words else float(each.keyword_rank is not None)
        each.relevance = relevance(each.similarity, each.coverage, len(index), scale)
    if recency:
        _add_recency(found, generation, recency)
    if by_ranks:
        _add_name_points(candidates, generation, words, 1.0)
        _score_by_ranks(found, similarity, keyword, ratio)
        return
    as_name = name_share(coverage, ratio)
    credit = {}
    if as_name and ratio < 1:
        _add_name_points(candidates, generation, words, 2 * (1 - ratio) * as_name)
        credit = page_credits(
            (each.path, fused_score(near, points, ratio)) for each, near, points in zip(found, similarity, keyword, strict=True)
        )
    as_question = 4 * ratio * (1 - ratio) * (1 - as_name)
    if as_question:
        _compare_pages(found, generation, words, rows, vector, similarity, scale)
    for each, near, points, covered in zip(found, similarity, keyword, coverage.tolist(), strict=True):
        by_page = PAGE_COVERAGE_WEIGHT * each.page_coverage + PAGE_SIMILARITY_WEIGHT * each.page_similarity
        each.fused = fused_score(near, as_name * points, ratio) + as_question * COVERAGE_WEIGHT * covered
        each.page_credit = as_name * credit.get(each.path, 0.0) + as_question * by_page
        each.score = each.fused + each.page_credit + each.name_points + each.link_points + each.recency_points


def name_share(coverage: Floats, ratio: float) -> float:
    """Return how much of a name a query is, from 0 to 1, by the coverage of its candidates.

    The less meaning is to count, the more it is taken for a name.
    """
    share = (float(coverage.max()) - QUESTION_COVERAGE) / (NAME_COVERAGE - QUESTION_COVERAGE)
    return min(1.0, max(0.0, share, 1 - 2 * ratio))


def _coverage(generation: Generation, words: Sequence[QueryWords], rows: Rows) -> Floats:
    """Return the coverage of chunks: the best of a query's variants."""
    best = np.zeros(len(rows))
    for query in words:
        best = np.maximum(best, _covered(_word_sets(generation, query, rows), query))
    return best


def _word_sets(generation: Generation, query: QueryWords, rows: Rows) -> WordSets:
    """Return which words of a query the chunks of some rows have, of those that were looked up."""
    return generation.catalog.keywords.word_sets(query.looked_up, generation.catalog.reader.exact_index(), rows)


def _covered(sets: WordSets, query: QueryWords) -> Floats:
    """Return the share of a query's words that sets of them have, weighted."""
    bits = np.arange(len(query.looked_up), dtype=np.uint64)
    has_word = (sets[:, np.newaxis] >> bits & np.uint64(1)).astype(np.float64)
    shares: Floats = has_word @ np.array([query.weights[word] for word in query.looked_up]) / sum(query.weights.values())
    return shares


def _evidence(candidates: Collection[Candidate], scale: Scale, floor: float) -> tuple[list[float], list[float]]:
    """Return the similarity of each candidate, on the bundled model's scale, and its BM25 score, as they count.

    A chunk without a vector counts as near as the nearest, or nobody would find it, but less so the worse its words match: else
    it would come before others for a single word.
    """
    nearest = max((scale.to_bundled(each.similarity) for each in candidates if each.similarity is not None), default=None)
    best = max((each.keyword_score for each in candidates if each.keyword_score is not None), default=0.0)
    keyword = [floor if each.keyword_score is None else each.keyword_score for each in candidates]
    if nearest is None:
        return [0.0] * len(keyword), keyword
    assumed = [nearest * points / best if best else nearest for points in keyword]
    similarity = [
        without if each.similarity is None else scale.to_bundled(each.similarity)
        for each, without in zip(candidates, assumed, strict=True)
    ]
    return similarity, keyword


def _compare_pages(
    candidates: Sequence[Candidate],
    generation: Generation,
    words: Sequence[QueryWords],
    rows: Rows,
    vector: Matrix | None,
    similarity: Sequence[float],
    scale: Scale,
) -> None:
    """Set how much of a question the page of each candidate explains, and how near it is as a whole."""
    index = generation.catalog.reader.exact_index()
    pages = index.pages_of(rows)
    covered = np.zeros(len(pages.counts))
    for query in words:
        sets = np.bitwise_or.reduceat(_word_sets(generation, query, pages.rows), pages.starts)
        covered = np.maximum(covered, _covered(sets, query))
    near = _page_similarities(generation, pages, vector, similarity, scale)
    for candidate, page in zip(candidates, pages.of_chunk.tolist(), strict=True):
        candidate.page_coverage, candidate.page_similarity = float(covered[page]), float(near[page])


def _page_similarities(
    generation: Generation, pages: PageRows, vector: Matrix | None, similarity: Sequence[float], scale: Scale
) -> Floats:
    """Return the mean similarity of each page; of its candidates where other vectors are missing or on the disk."""
    counts = np.bincount(pages.of_chunk, minlength=len(pages.counts))
    of_candidates: Floats = np.bincount(pages.of_chunk, similarity, len(pages.counts)) / counts
    means = None if vector is None else generation.catalog.reader.exact_index().page_similarities(vector, pages)
    if means is None:
        return of_candidates
    return np.where(np.isnan(means), of_candidates, scale.shift + scale.stretch * means)


def _add_name_points(
    candidates: Mapping[int, Candidate], generation: Generation, words: Sequence[QueryWords], share: float
) -> None:
    """Compare the query's words with names, which are words like others: by meaning alone they count nothing."""
    reader = generation.catalog.reader
    names = reader.page_names()
    evidence = [NameEvidence(query.names, names) for query in words if query.names]
    headings = reader.heading_words(list(candidates))
    for chunk, each in candidates.items():
        points = max((variant.points(each.path, headings.get(chunk, NO_HEADINGS)) for variant in evidence), default=0.0)
        each.name_points = share * (points + EXACT_POINTS * each.is_named)
        each.link_points = share * LINK_POINTS * math.log1p(names.incoming_links(each.path))


def _add_recency(candidates: Collection[Candidate], generation: Generation, weight: float) -> None:
    """Add points that halve with every half-life from the page's last change to the beginning of this day (UTC)."""
    dates = generation.catalog.updated(sorted({each.path for each in candidates}))
    now = time.time() // _DAY_SECONDS * _DAY_SECONDS
    for each in candidates:
        age = max(0.0, now - dates[each.path]) if each.path in dates else math.inf
        each.recency_points = weight * _RECENCY_POINTS * 0.5 ** (age / _HALF_LIFE_SECONDS)


def _score_by_ranks(
    candidates: Collection[Candidate], similarity: Sequence[float], keyword: Sequence[float], ratio: float
) -> None:
    """Fuse the rankings that meaning alone and words alone would give; the points are in the ranks, and add nothing more."""
    credit = page_credits((each.path, points) for each, points in zip(candidates, keyword, strict=True))
    by_meaning, by_words = {}, {}
    for each, near, points in zip(candidates, similarity, keyword, strict=True):
        by_meaning[each.id] = COSINE_WEIGHT * near + each.recency_points
        by_words[each.id] = points + credit[each.path] + each.name_points + each.link_points + each.recency_points
    scores = reciprocal_rank_scores(by_meaning, by_words, ratio)
    for each in candidates:
        each.fused = each.score = scores[each.id]
        each.name_points = each.link_points = each.recency_points = 0.0
