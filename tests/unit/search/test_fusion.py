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
    scores = {1: 10.0, 2: 8.0, 3: 4.0, 4: 2.0, 5: 9.0, 6: -3.0, 7: -5.0}
    paths = {1: "a", 2: "a", 3: "a", 4: "a", 5: "b", 6: "c", 7: "c"}
    assert page_credits(scores, paths) == {"a": pytest.approx(0.8 + 0.2), "b": 0.0, "c": 0.0}
