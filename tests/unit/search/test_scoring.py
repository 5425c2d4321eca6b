"""The score of a candidate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from otterwiki_semantic.search.scoring import COSINE_WEIGHT, FLOOR, fused_score, page_credits, reciprocal_rank_scores, relevance
from otterwiki_semantic.search.similarity_scale import Scale


def test_the_ratio_shifts_the_weight_from_words_to_meaning() -> None:
    similarity, keyword = 0.5, 8.0
    assert fused_score(similarity, keyword, 0.0) == 16.0
    assert fused_score(similarity, keyword, 1.0) == COSINE_WEIGHT
    assert fused_score(similarity, keyword, 0.5) == pytest.approx(0.5 * COSINE_WEIGHT + 8.0)


def test_a_page_is_credited_for_its_second_and_third_passage() -> None:
    pages, scores = np.array([0, 1, 0, 2, 0, 0, 2]), np.array([2.0, 9.0, 10.0, -3.0, 8.0, 4.0, -5.0])
    of_first = pytest.approx(0.8 + 0.2)
    assert page_credits(pages, scores).tolist() == [of_first, 0.0, of_first, 0.0, of_first, of_first, 0.0]


@pytest.mark.parametrize(
    ("by_meaning", "by_words", "ratio", "fused"),
    [
        ([0.9, 0.8, 0.1], [0.0, 70.0, 900.0], 0.5, [1 / 61 + 1 / 63, 1 / 62 + 1 / 62, 1 / 63 + 1 / 61]),
        ([0.5, 0.5, 0.4], [0.0, 0.0, 0.0], 0.5, [2 / 61, 2 / 61, 1 / 63 + 1 / 61]),
        ([0.9, 0.8], [1.0, 2.0], 0.6, [1.2 / 61 + 0.8 / 62, 1.2 / 62 + 0.8 / 61]),
    ],
    ids=["whatever the scores are worth", "equal scores have equal ranks", "the ratio weighs the ranks"],
)
def test_reciprocal_ranks_are_added(by_meaning: list[float], by_words: list[float], ratio: float, fused: list[float]) -> None:
    assert reciprocal_rank_scores(np.array(by_meaning), np.array(by_words), ratio).tolist() == pytest.approx(fused)


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ((0.6, 0.0, 100), (0.5, 0.0, 100)),
        ((0.5, 1.0, 100), (0.5, 0.5, 100)),
        ((0.5, 0.0, 100), (0.5, 0.0, 10_000)),
        ((math.nan, 0.5, 4), (math.nan, 0.4, 4)),
    ],
    ids=["nearer", "more of the words", "among fewer passages", "without a vector: more of the words"],
)
def test_a_passage_is_more_relevant(more: tuple[float, float, int], less: tuple[float, float, int]) -> None:
    assert of(*more) > of(*less)


def test_the_threshold() -> None:
    assert of(0.5, 0.0, 1) == pytest.approx(0.5 - FLOOR)
    assert of(math.nan, 0.5, 4) == pytest.approx(0.0), "without a vector half of the words have to be there"
    assert of(-0.2, 1.0, 4) == 0.0, "all of the words are enough"


def of(similarity: float, coverage: float, passages: int) -> float:
    return float(relevance(np.array([similarity]), np.array([coverage]), passages, Scale())[0])
