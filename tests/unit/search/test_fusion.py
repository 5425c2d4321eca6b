from __future__ import annotations

import pytest

from otterwiki_semantic.search.fusion import COSINE_WEIGHT, RANK_CONSTANT, fused_score, page_credits, reciprocal_rank_scores


def test_the_ratio_shifts_the_weight_from_words_to_meaning() -> None:
    assert fused_score(0.5, 8.0, 0.0) == 16.0
    assert fused_score(0.5, 8.0, 1.0) == COSINE_WEIGHT
    assert fused_score(0.5, 8.0, 0.5) == pytest.approx(0.5 * COSINE_WEIGHT + 8.0)


def test_without_a_similarity_words_alone_decide() -> None:
    assert fused_score(None, 8.0, 0.5) == 8.0


def test_a_page_is_credited_for_its_second_and_third_passage() -> None:
    scores = [("a", 10.0), ("a", 8.0), ("a", 4.0), ("a", 2.0), ("b", 9.0), ("c", -3.0), ("c", -5.0)]
    assert page_credits(scores) == {"a": pytest.approx(0.8 + 0.2), "b": 0.0, "c": 0.0}


def test_reciprocal_ranks_are_added_whatever_the_scores_are_worth() -> None:
    by_meaning, by_words = {1: 0.9, 2: 0.8, 3: 0.1}, {1: 0.0, 2: 70.0, 3: 900.0}
    scores = reciprocal_rank_scores(by_meaning, by_words, 0.5)
    assert RANK_CONSTANT == 60
    assert scores == {
        1: pytest.approx(1 / 61 + 1 / 63),
        2: pytest.approx(1 / 62 + 1 / 62),
        3: pytest.approx(1 / 63 + 1 / 61),
    }


def test_equal_scores_have_equal_ranks() -> None:
    scores = reciprocal_rank_scores({1: 0.5, 2: 0.5, 3: 0.4}, {1: 0.0, 2: 0.0, 3: 0.0}, 0.5)
    assert scores[1] == scores[2] == pytest.approx(2 / 61)
    assert scores[3] == pytest.approx(1 / 63 + 1 / 61)


def test_the_ratio_weighs_the_ranks() -> None:
    by_meaning, by_words = {1: 0.9, 2: 0.8}, {1: 1.0, 2: 2.0}
    mostly_meaning, mostly_words = (reciprocal_rank_scores(by_meaning, by_words, ratio) for ratio in (0.6, 0.4))
    assert mostly_meaning[1] > mostly_meaning[2]
    assert mostly_words[1] < mostly_words[2]
