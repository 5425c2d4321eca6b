from __future__ import annotations

import numpy as np

from otterwiki_semantic.search.mmr import mmr_order

VECTORS = np.array([[1, 0], [0.995, 0.0999], [0, 1]], dtype=np.float32)
SCORES = [3.0, 2.9, 1.0]


def order(diversity: float, n: int = 3, pages: str = "abc", max_per_page: int = 5) -> list[int]:
    return mmr_order(SCORES, VECTORS, list(pages), diversity, n, max_per_page)


def test_without_diversity_the_best_come_first() -> None:
    assert order(0.0) == [0, 1, 2]


def test_with_diversity_the_same_again_comes_last() -> None:
    assert order(0.7) == [0, 2, 1]
    assert order(1.0) == [0, 2, 1]


def test_a_page_has_its_share_and_the_end_is_kept() -> None:
    assert order(0.0, pages="aac", max_per_page=1) == [0, 2]
    assert order(0.7, n=2) == [0, 2]
    assert mmr_order([], VECTORS[:0], [], 0.5, 5, 1) == []
