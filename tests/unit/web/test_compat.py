"""The earlier plugin's fields."""

from __future__ import annotations

import msgspec
import pytest

from otterwiki_semantic.core.records import Answer, Freshness, Hit, TotalHits
from otterwiki_semantic.core.serialization import decode, encode
from otterwiki_semantic.web.api.answers import compatible
from tests.support.hits import make_hit


@pytest.fixture
def hit() -> Hit:
    """A result that words found, on a page that no model gets."""
    return make_hit(distance=None, similarity=None)


def answered(hit: Hit) -> Answer:
    index = Freshness(None, None, 0)
    return Answer(query="rain", total=1, total_hits=TotalHits(1, "eq"), confident=True, index=index, results=(hit,))


@pytest.mark.parametrize(("distance", "shown"), [(None, 2.0), (0.25, 0.25)], ids=["unknown: the largest one", "known"])
def test_a_distance_is_always_a_number(hit: Hit, distance: float | None, shown: float) -> None:
    answer = answered(msgspec.structs.replace(hit, distance=distance))
    plain, compat = (decode(encode(each), dict) for each in (answer, compatible(answer)))
    assert plain["results"][0]["distance"] == distance
    assert compat["results"][0]["similarity"] is None, "it is not made up"
    differences = {"distance": shown, "section_path": "Page > Part"}
    assert compat == plain | {"results": [plain["results"][0] | differences]}
