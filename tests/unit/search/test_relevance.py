from __future__ import annotations

import pytest

from otterwiki_semantic.search.scoring import FLOOR, relevance
from otterwiki_semantic.search.similarity_scale import Scale

SCALE = Scale()


def test_what_is_nearer_or_has_more_of_the_words_is_more_relevant() -> None:
    assert relevance(0.6, 0.0, 100, SCALE) > relevance(0.5, 0.0, 100, SCALE)
    assert relevance(0.5, 1.0, 100, SCALE) > relevance(0.5, 0.5, 100, SCALE)


def test_among_more_passages_it_takes_more_to_be_relevant() -> None:
    assert relevance(0.5, 0.0, 100, SCALE) > relevance(0.5, 0.0, 10_000, SCALE)
    assert relevance(0.5, 0.0, 1, SCALE) == pytest.approx(0.5 - FLOOR)


def test_without_a_similarity_half_of_the_words_have_to_be_there() -> None:
    assert relevance(None, 0.5, 4, SCALE) == pytest.approx(0.0)
    assert relevance(None, 0.4, 4, SCALE) < 0
