from __future__ import annotations

import pytest

from otterwiki_semantic.search.fusion import COSINE_WEIGHT, fused_score, page_credits


def test_the_ratio_shifts_the_weight_from_words_to_meaning() -> None:
    assert fused_score(0.5, 8.0, 0.0) == 16.0
    assert fused_score(0.5, 8.0, 1.0) == COSINE_WEIGHT
    assert fused_score(0.5, 8.0, 0.5) == pytest.approx(0.5 * COSINE_WEIGHT + 8.0)


def test_without_a_similarity_words_alone_decide() -> None:
    assert fused_score(None, 8.0, 0.5) == 8.0


def test_a_page_is_credited_for_its_second_and_third_passage() -> None:
    scores = [("a", 10.0), ("a", 8.0), ("a", 4.0), ("a", 2.0), ("b", 9.0), ("c", -3.0), ("c", -5.0)]
    assert page_credits(scores) == {"a": pytest.approx(0.8 + 0.2), "b": 0.0, "c": 0.0}
