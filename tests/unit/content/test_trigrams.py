from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.analysis.trigrams import nearest_names, trigram_similarity

NAMES = {name: name for name in ("garden/irrigation", "garden/tomatoes", "house/heating", "house/alarm", "home")}


def test_a_mistyped_name_leads_to_the_right_one() -> None:
    assert nearest_names("garden/irigation", NAMES, 2, 0.3)[0] == "garden/irrigation"
    assert nearest_names("Haus/Heizung", NAMES, 5, 0.2)[0] == "house/heating"
    assert nearest_names("zzzzzz", NAMES, 5, 0.3) == []


@given(st.text(max_size=120), st.text(max_size=120))
def test_similarity_is_the_same_both_ways_and_one_for_the_same(one: str, other: str) -> None:
    assert trigram_similarity(one, one) == 1
    assert trigram_similarity(one, other) == trigram_similarity(other, one)
    assert 0 <= trigram_similarity(one, other) <= 1


def test_a_name_as_long_as_a_page_is_compared_by_its_beginning() -> None:
    assert trigram_similarity("x" * 80 + "one", "x" * 80 + "other") == 1
