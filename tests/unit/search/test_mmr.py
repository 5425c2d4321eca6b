from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.search.selection import mmr_order

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


@given(st.integers(0, 10_000), st.integers(2, 60), st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 3))
def test_more_results_begin_with_the_same_and_what_is_pinned_stays_first(
    seed: int, count: int, diversity: float, max_per_page: int
) -> None:
    numbers = np.random.default_rng(seed)
    vectors = numbers.normal(size=(count, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = sorted(numbers.random(count).tolist(), reverse=True)
    pages = [str(page) for page in numbers.integers(0, 10, count)]
    whole = mmr_order(scores, vectors, pages, diversity, count, max_per_page)
    assert len(set(whole)) == len(whole)
    for n in range(1, count):
        assert mmr_order(scores, vectors, pages, diversity, n, max_per_page) == whole[:n]
    assert mmr_order(scores, vectors, [str(page) for page in range(count)], diversity, count, 1, count // 2)[
        : count // 2
    ] == list(range(count // 2))
