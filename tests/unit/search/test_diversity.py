from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from otterwiki_semantic.content.analysis.minhash import minhash_signature, read_signatures
from otterwiki_semantic.search.diversity import Repeats, diverse_order

BOILERPLATE = " ".join(f"word{number}" for number in range(60))


def test_a_repeated_passage_knows_the_one_that_was_kept() -> None:
    texts = {1: BOILERPLATE, 2: "something else", 3: BOILERPLATE.replace("word59", "other"), 4: BOILERPLATE}
    read: list[int] = []

    def reading(chunks: Sequence[int]) -> dict[int, str]:
        read.extend(chunks)
        return {chunk: texts[chunk] for chunk in chunks}

    repeats = Repeats(list(texts), read_signatures([minhash_signature(text) for text in texts.values()]), reading)
    assert repeats.original(3) is None
    repeats.keep(3)
    assert repeats.original(1) == 3
    repeats.keep(1)
    assert repeats.original(2) is None
    assert repeats.original(4) == 1, "the very same text comes before one that is nearly the same"
    assert repeats.copies(1) == [4]
    assert 2 not in read, "what is like no other is not read"


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
