from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from otterwiki_semantic.content.analysis.minhash import Passage, sketch, sketches
from otterwiki_semantic.search.diversity import Repeats, diverse_order

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
    texts = {1: BOILERPLATE, 2: "something else", 3: BOILERPLATE.replace("word59", "other"), 4: BOILERPLATE}
    read: list[int] = []

    def reading(chunks: Sequence[int]) -> dict[int, str]:
        read.extend(chunks)
        return {chunk: texts[chunk] for chunk in chunks}

    repeats = Repeats(list(texts), sketches([sketch(text) for text in texts.values()]), reading)
    assert repeats.original(3) is None
    repeats.keep(3)
    assert repeats.original(1) == 3
    repeats.keep(1)
    assert repeats.original(2) is None
    assert repeats.original(4) == 1, "the very same text comes before one that is nearly the same"
    assert repeats.copies(1) == [4]
    assert 2 not in read, "what is like no other is not read"


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=40), st.lists(st.sampled_from(["a", "b", "x"]), max_size=40))
def test_sketches_tell_the_same_text_and_any_text_has_one(one: list[str], other: list[str]) -> None:
    found = sketches([sketch(" ".join(words)) for words in (one, one, other)])
    assert found.shape == (3, 8)
    assert (found[0] == found[1]).all()


@given(st.integers(60, 200), st.integers(0, 10_000))
def test_nearly_the_same_texts_have_nearly_the_same_sketch(length: int, seed: int) -> None:
    random = Random(seed)
    words = [f"word{random.randrange(5_000)}" for _ in range(length)]
    other = [*words]
    other[random.randrange(length)] = "another"
    assume(Passage(" ".join(words)).nearly_repeats(Passage(" ".join(other))))
    one, two = sketches([sketch(" ".join(words)), sketch(" ".join(other))])
    assert np.count_nonzero(one == two) >= 3  # 4 are asked for, and are missed once in 2,000 pairs


VECTORS = np.array([[1, 0], [0.995, 0.0999], [0, 1]], dtype=np.float32)
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
    assert diverse_order([], {}, VECTORS[:0], {}, 0.5, 5, 1) == []
