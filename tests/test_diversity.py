from __future__ import annotations

import numpy as np
import pytest

from otterwiki_semantic.diversity import Passage, Repeats, diverse_order

BOILERPLATE = " ".join(f"word{number}" for number in range(60))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (BOILERPLATE, True),
        (BOILERPLATE.replace("word59", "other"), True),
        (BOILERPLATE.replace("word20", "other").replace("word40", "another"), False),
        (" ".join(reversed(BOILERPLATE.split())), False),
        ("", False),
    ],
)
def test_only_what_differs_in_next_to_nothing_is_nearly_the_same(other: str, expected: bool) -> None:
    assert Passage(BOILERPLATE).nearly_repeats(Passage(other)) is expected
    assert Passage(other).nearly_repeats(Passage(BOILERPLATE)) is expected


def test_a_repeated_passage_knows_the_one_that_was_kept() -> None:
    repeats = Repeats({1: BOILERPLATE, 2: "something else", 3: BOILERPLATE})
    assert repeats.original(1) is None
    repeats.keep(1)
    assert repeats.original(2) is None
    assert repeats.original(3) == 1


VECTORS = {
    1: np.array([1, 0], dtype=np.float32),
    2: np.array([0.995, 0.0999], dtype=np.float32),
    3: np.array([0, 1], dtype=np.float32),
}
SCORES = {1: 3.0, 2: 2.9, 3: 1.0}


def order(diversity: float, n: int = 3, pages: dict[int, str] | None = None, most: int = 5) -> list[int]:
    return diverse_order([1, 2, 3], SCORES, VECTORS, pages or {1: "a", 2: "b", 3: "c"}, diversity, n, most)


def test_without_diversity_the_best_come_first() -> None:
    assert order(0.0) == [1, 2, 3]


def test_with_diversity_the_same_again_comes_last() -> None:
    assert order(0.7) == [1, 3, 2]
    assert order(1.0) == [1, 3, 2]


def test_a_page_has_its_share_and_the_end_is_kept() -> None:
    assert order(0.0, pages={1: "a", 2: "a", 3: "c"}, most=1) == [1, 3]
    assert order(0.7, n=2) == [1, 3]
    assert diverse_order([], {}, {}, {}, 0.5, 5, 1) == []
