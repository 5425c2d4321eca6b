"""Signatures recognise passages that are nearly equal."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from otterwiki_semantic.content.analysis.minhash import ShingledText, minhash_signature, read_signatures

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
def test_near_duplicates_differ_in_a_few_words_at_most(other: str, expected: bool) -> None:
    assert ShingledText(BOILERPLATE).is_near_duplicate_of(ShingledText(other)) is expected
    assert ShingledText(other).is_near_duplicate_of(ShingledText(BOILERPLATE)) is expected


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=40), st.lists(st.sampled_from(["a", "b", "x"]), max_size=40))
def test_equal_texts_have_equal_signatures_and_every_text_has_one(one: list[str], other: list[str]) -> None:
    found = read_signatures([minhash_signature(" ".join(words)) for words in (one, one, other)])
    assert found.shape == (3, 8)
    assert (found[0] == found[1]).all()


@given(st.integers(60, 200), st.integers(0, 10_000))
def test_near_duplicates_share_numbers_of_their_signatures(length: int, seed: int) -> None:
    random = Random(seed)
    words = [f"word{random.randrange(5_000)}" for _ in range(length)]
    other = [*words]
    other[random.randrange(length)] = "another"
    assume(ShingledText(" ".join(words)).is_near_duplicate_of(ShingledText(" ".join(other))))
    one, two = read_signatures([minhash_signature(" ".join(words)), minhash_signature(" ".join(other))])
    assert np.count_nonzero(one == two) >= 3  # 4 are asked for, and are missed once in 2,000 pairs
