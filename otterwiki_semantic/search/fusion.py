"""One ranking of two: meaning and words, added up as evidence, or by their ranks if that is asked for.

BM25 approximates a sum of log odds (Robertson and Zaragoza, 2009), and the bundled model was trained so that a multiple of its
cosine is one as well, up to a constant for each query. So the two are added without stretching either to a common range: a
query of many rare words weighs its words, a query of few its meaning. See docs/quality.md for what was tried.

Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009) knows only the ranks, whatever the scores are worth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

COSINE_WEIGHT = 25.0
"""BM25 points that a cosine similarity of 1 is worth at equal shares; 20 to 33 rank about the same."""
PAIR_WEIGHT = 0.5
"""The weight of BM25 of pairs of neighbouring words next to that of the words (after Metzler and Croft, 2005)."""
RANK_CONSTANT = 60
"""The constant k of reciprocal rank fusion, as in the paper."""
_SECOND_CREDIT, _THIRD_CREDIT = 0.1, 0.05


def fused_score(similarity: float | None, keyword: float, semantic_ratio: float) -> float:
    """Return the score of a chunk; an unknown similarity counts nothing."""
    return 2 * (semantic_ratio * COSINE_WEIGHT * (similarity or 0.0) + (1 - semantic_ratio) * keyword)


def reciprocal_rank_scores(
    by_meaning: Mapping[int, float], by_words: Mapping[int, float], semantic_ratio: float
) -> dict[int, float]:
    """Return the fused score of each chunk, from its rank by either score; equal scores have equal ranks."""
    meaning, words = _ranks(by_meaning), _ranks(by_words)
    return {
        chunk: 2 * (semantic_ratio / (RANK_CONSTANT + meaning[chunk]) + (1 - semantic_ratio) / (RANK_CONSTANT + words[chunk]))
        for chunk in by_meaning
    }


def _ranks(scores: Mapping[int, float]) -> dict[int, int]:
    first: dict[float, int] = {}
    for rank, score in enumerate(sorted(scores.values(), reverse=True), 1):
        first.setdefault(score, rank)
    return {chunk: first[score] for chunk, score in scores.items()}


def page_credits(scores: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return what a page's second and third chunk add to the score of all its chunks: a tenth and a twentieth of theirs."""
    by_page: defaultdict[str, list[float]] = defaultdict(list)
    for path, score in scores:
        by_page[path].append(max(score, 0.0))
    credits_of = {}
    for path, values in by_page.items():
        _first, second, third, *_ = (*sorted(values, reverse=True), 0.0, 0.0)
        credits_of[path] = _SECOND_CREDIT * second + _THIRD_CREDIT * third
    return credits_of
