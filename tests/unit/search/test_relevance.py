from __future__ import annotations

import math

import numpy as np
import pytest

from otterwiki_semantic.search.scoring import FLOOR, relevance
from otterwiki_semantic.search.similarity_scale import Scale


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ((0.6, 0.0, 100), (0.5, 0.0, 100)),
        ((0.5, 1.0, 100), (0.5, 0.5, 100)),
        ((0.5, 0.0, 100), (0.5, 0.0, 10_000)),
        ((math.nan, 0.5, 4), (math.nan, 0.4, 4)),
    ],
    ids=["nearer", "more of the words", "among fewer passages", "without a vector: more of the words"],
)
def test_a_passage_is_more_relevant(more: tuple[float, float, int], less: tuple[float, float, int]) -> None:
    assert of(*more) > of(*less)


def test_the_threshold() -> None:
    assert of(0.5, 0.0, 1) == pytest.approx(0.5 - FLOOR)
    assert of(math.nan, 0.5, 4) == pytest.approx(0.0), "without a vector half of the words have to be there"


def of(similarity: float, coverage: float, passages: int) -> float:
    return float(relevance(np.array([similarity]), np.array([coverage]), passages, Scale())[0])
