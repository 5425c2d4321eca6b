"""Which chunks become candidates, and the order of names, words and meaning."""

from __future__ import annotations

from typing import Any

import pytest

from otterwiki_semantic.core.errors import CatalogError
from otterwiki_semantic.core.records import Filters, Fusion, Mode, SearchOptions
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.search import Scale, retrieval
from otterwiki_semantic.search.query import filter_of, parse_query
from otterwiki_semantic.search.retrieval import CandidateSet, retrieve
from otterwiki_semantic.search.scoring import PAGE_SIMILARITY_WEIGHT, Candidate, Tier, fused_score
from tests.support.small_index import QUERY, SmallIndex

SCALE = Scale()


def find(
    index: SmallIndex, text: str, vector: Matrix | None = QUERY, limit: int = 100, scale: Scale = SCALE, **options: Any
) -> CandidateSet:
    asked, query = SearchOptions(**options), parse_query(text)
    with index.catalog.snapshot():
        return retrieve(index.generation, query, lambda: vector, filter_of(asked.filters, query), asked, limit, scale)


def paths(found: CandidateSet) -> list[str]:
    return [each.path for each in found.candidates]


def on_page(found: CandidateSet, path: str) -> Candidate:
    return next(each for each in found.candidates if each.path == path)


def test_candidates_are_found_by_words_and_by_meaning(index: SmallIndex) -> None:
    index.put("words", ("the boiler is in the cellar", 0.1))
    index.put("meaning", ("a furnace heats the house", 0.8))
    found = find(index, "boiler")
    assert (found.is_complete, found.degraded) == (True, None)
    by_word, by_meaning = on_page(found, "words"), on_page(found, "meaning")
    assert (by_word.keyword_rank, by_word.semantic_rank) == (1, 2)
    assert by_word.similarity == pytest.approx(0.1)
    assert (by_meaning.keyword_rank, by_meaning.keyword_score, by_meaning.semantic_rank) == (None, None, 1)
    assert by_meaning.similarity == pytest.approx(0.8)


def test_what_only_words_find_is_compared_with_the_query(index: SmallIndex) -> None:
    index.put("words", ("the boiler is in the cellar", 0.1))
    for number in range(3):
        index.put(f"near {number}", (f"furnace number {number}", 0.9))
    found = find(index, "boiler", limit=2)
    assert not found.is_complete
    words = on_page(found, "words")
    assert words.semantic_rank is None
    assert words.similarity == pytest.approx(0.1)


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.SEMANTIC])
def test_without_a_vector_words_alone_decide(index: SmallIndex, mode: Mode) -> None:
    index.put("words", ("the boiler is in the cellar", 0.1))
    index.put("meaning", ("a furnace heats the house", 0.8))
    found = find(index, "boiler", vector=None, mode=mode)
    assert paths(found) == ["words"]
    assert found.candidates[0].similarity is None
    assert found.candidates[0].score == pytest.approx(2 * (found.candidates[0].keyword_score or 0))


def test_a_keyword_search_shows_similarities_but_ranks_by_words(index: SmallIndex) -> None:
    index.put("once", ("a boiler in a cellar with many other words around it", 0.9))
    index.put("often", ("boiler boiler boiler", 0.1))
    index.put("meaning", ("a furnace heats the house", 0.95))
    found = find(index, "boiler", mode=Mode.KEYWORD)
    assert paths(found) == ["often", "once"]
    assert on_page(found, "once").similarity == pytest.approx(0.9)
    assert on_page(found, "once").semantic_rank is None


@pytest.mark.parametrize(("ratio", "first"), [(0.0, "words"), (1.0, "meaning")])
def test_the_semantic_ratio_decides_which_retriever_counts(index: SmallIndex, ratio: float, first: str) -> None:
    index.put("words", ("boiler boiler", 0.1))
    index.put("meaning", ("a furnace heats the house", 0.8))
    index.put("neither", ("tomatoes grow in the garden", 0.0))
    assert paths(find(index, "boiler", semantic_ratio=ratio))[0] == first


def put_words_and_meanings(index: SmallIndex) -> None:
    """Add a page that only words find, one that both find second, and those that only meaning finds."""
    index.put("first by words", ("boiler boiler boiler, boiler", 0.0))
    index.put("second by both", ("a boiler is one of the things that heat a house in the winter", 0.7))
    index.put("first by meaning", ("a furnace heats the house", 0.72))
    index.put("third by meaning", ("a stove heats the house", 0.2))


def test_fused_ranks_are_those_of_words_and_of_meaning_alone(index: SmallIndex) -> None:
    put_words_and_meanings(index)
    found = find(index, "boiler", fusion=Fusion.RRF)
    meaning, words = (paths(find(index, "boiler", mode=mode)) for mode in (Mode.SEMANTIC, Mode.KEYWORD))
    assert words == ["first by words", "second by both"]
    assert meaning == ["first by meaning", "second by both", "third by meaning", "first by words"]
    scores = {each.path: each.score for each in found.candidates}
    assert scores == {
        "first by words": pytest.approx(1 / 61 + 1 / 64),
        "second by both": pytest.approx(1 / 62 + 1 / 62),
        "first by meaning": pytest.approx(1 / 63 + 1 / 61),
        "third by meaning": pytest.approx(1 / 63 + 1 / 63),
    }
    assert paths(found)[0] == "first by meaning"
    assert all(each.fused == each.score for each in found.candidates)


@pytest.mark.parametrize("asked", [{"mode": Mode.SEMANTIC}, {"mode": Mode.KEYWORD}, {"semantic_ratio": 0.0}, {"vector": None}])
def test_a_ranking_of_one_kind_is_not_fused(index: SmallIndex, asked: dict[str, Any]) -> None:
    put_words_and_meanings(index)
    fused, added = (find(index, "boiler", fusion=fusion, **asked).candidates for fusion in (Fusion.RRF, Fusion.SUM))
    assert [(each.path, each.score) for each in fused] == [(each.path, each.score) for each in added]


def test_names_come_first_and_count_as_words_however_ranks_are_fused(index: SmallIndex) -> None:
    index.put("boiler", ("see the manual", 0.0))
    index.put("often", ("boiler boiler boiler", 0.9))
    found = find(index, "boiler", fusion=Fusion.RRF)
    assert paths(found) == ["boiler", "often"]
    assert found.candidates[0].tier is Tier.EXACT_TITLE
    index.put("gas boiler manual", ("where it is", 0.0))
    index.put("other", ("boiler", 0.0))
    found = find(index, "boiler installation", fusion=Fusion.RRF)
    assert paths(found).index("gas boiler manual") < paths(found).index("other")


def test_a_page_that_is_not_embedded_on_purpose_ranks_by_its_words_in_fused_ranks(index: SmallIndex) -> None:
    index.put("kept", ("boiler boiler boiler, boiler", None), words_only=True)
    index.put("near", ("a furnace heats the house", 0.9))
    index.put("far", ("tomatoes grow in the garden", 0.1))
    assert paths(find(index, "boiler", fusion=Fusion.RRF))[0] == "kept"


def test_other_chunks_of_a_page_add_to_its_score(index: SmallIndex) -> None:
    index.put("two", ("a furnace", 0.5), ("a boiler", 0.4))
    found = find(index, "boiler", mode=Mode.HYBRID)
    best, second = found.candidates
    assert best.page_credit == second.page_credit == pytest.approx(0.1 * min(best.fused, second.fused))
    assert best.score == pytest.approx(best.fused + best.page_credit + best.name_points)


def test_meaning_alone_gives_no_page_credit(index: SmallIndex) -> None:
    index.put("two", ("a furnace", 0.5), ("a stove", 0.4))
    assert {each.page_credit for each in find(index, "warmth", mode=Mode.SEMANTIC).candidates} == {0.0}


def test_a_page_with_the_querys_name_comes_before_any_score(index: SmallIndex) -> None:
    index.put("near", ("a machine that lifts water", 0.5))
    index.put("heading", ("how it works", 0.2), section="Pump")
    index.put("pump", ("a part of the house", 0.0), ("its second part", 0.1))
    found = find(index, "pump", mode=Mode.HYBRID)
    assert (found.candidates[0].path, found.candidates[0].tier) == ("pump", Tier.EXACT_TITLE)
    assert [each.path for each in found.candidates if each.tier is Tier.SCORE][:2] == ["heading", "near"]
    assert on_page(found, "heading").is_named
    assert not on_page(found, "near").is_named


def test_a_heading_is_evidence_that_much_better_passages_outweigh(index: SmallIndex) -> None:
    index.put("heading", ("how it works", -0.2), section="Pump")
    index.put("near", ("a pump lifts water, this pump, the pump and every other pump", 0.9))
    assert [each.path for each in find(index, "pump", mode=Mode.HYBRID).candidates] == ["near", "heading"]


def test_names_count_nothing_by_meaning_alone(index: SmallIndex) -> None:
    index.put("guide", ("how it works", 0.2), section="Pump")
    (found,) = find(index, "pump", mode=Mode.SEMANTIC).candidates
    assert (found.name_points, found.score) == (0.0, found.fused)


@pytest.mark.parametrize(
    ("query", "text", "is_named"),
    [
        ("M711", "call M711 if it fails", True),
        ("targetwords", "set TargetWords to 150", True),
        ("target words", "set TargetWords to 150", False),
        ("siphon", "the siphon is blocked", False),
        ("q5", "the code is q5", False),
    ],
)
def test_a_rare_identifier_is_something_named(index: SmallIndex, query: str, text: str, is_named: bool) -> None:
    index.put("page", (text, 0.1))
    index.put("near", ("something else", 0.9))
    assert on_page(find(index, query), "page").is_named is is_named


def test_an_identifier_in_many_chunks_is_not_rare(index: SmallIndex) -> None:
    for number in range(4):
        index.put(f"page {number}", (f"M711 again, in place {number}", 0.1))
    assert {each.is_named for each in find(index, "M711").candidates} == {False}


def test_a_filter_holds_for_every_retriever(index: SmallIndex) -> None:
    for path, tags in (("pump", ()), ("words", ()), ("inside", ("water",))):
        index.put(path, (f"pump of {path}", 0.5), tags=tags)
    assert paths(find(index, "pump", filters=Filters(tags=("water",)))) == ["inside"]
    assert paths(find(index, "pump -inside", filters=Filters(tags=("water",)))) == []


def test_a_chunk_without_a_vector_counts_as_near_as_the_nearest_if_its_words_match_as_well(index: SmallIndex) -> None:
    index.put("embedded", ("the boiler", 0.6))
    index.put("failed", ("a boiler", None))
    found = find(index, "boiler", semantic_ratio=0.999)
    assert on_page(found, "failed").similarity is None
    assert on_page(found, "failed").fused == pytest.approx(on_page(found, "embedded").fused, rel=0.001)


def test_a_chunk_that_is_never_embedded_counts_as_near_as_its_words_are_good(index: SmallIndex) -> None:
    index.put("both", ("the boiler is in the cellar", 0.6))
    index.put("best words", ("boiler, cellar", None), words_only=True)
    index.put("one word", ("a cellar door", None), words_only=True)
    found = find(index, "boiler cellar")
    best, one = on_page(found, "best words"), on_page(found, "one word")
    assert best.similarity is one.similarity is None
    assert best.keyword_rank == 1
    assert best.fused == pytest.approx(fused_score(0.6, best.keyword_score or 0, 0.5))
    assert one.keyword_score is not None
    assert best.keyword_score is not None
    share = one.keyword_score / best.keyword_score
    assert one.fused == pytest.approx(fused_score(0.6 * share, one.keyword_score, 0.5))
    assert paths(found)[-1] == "one word"
    assert paths(find(index, "boiler cellar", mode=Mode.SEMANTIC)) == ["both"]


def test_chunks_that_are_never_embedded_are_ranked_by_words_where_nothing_else_is_found(index: SmallIndex) -> None:
    index.put("best words", ("boiler, cellar", None), words_only=True)
    index.put("one word", ("a cellar door in the hall", None), words_only=True)
    assert paths(find(index, "boiler cellar")) == ["best words", "one word"]


def test_similarities_are_fused_on_the_bundled_models_scale(index: SmallIndex) -> None:
    index.put("page", ("a furnace", 0.8))
    (plain,) = find(index, "boiler", mode=Mode.SEMANTIC).candidates
    (scaled,) = find(index, "boiler", mode=Mode.SEMANTIC, scale=Scale(-1.0, 2.0)).candidates
    assert scaled.similarity == plain.similarity
    assert scaled.fused / plain.fused == pytest.approx(0.6 / 0.8)


def test_a_broken_keyword_index_leaves_meaning(index: SmallIndex) -> None:
    index.put("page", ("the boiler", 0.6), tags=("heat",))
    index.put("other", ("the pump", 0.7))
    index.break_keywords()
    found = find(index, "boiler -pump", filters=Filters(tags=("heat",)))
    assert paths(found) == paths(find(index, "boiler", mode=Mode.KEYWORD, filters=Filters(tags=("heat",)))) == ["page"]
    assert found.degraded is not None
    assert found.degraded.startswith("the keyword index failed, the answer is by meaning alone: ")
    with pytest.raises(CatalogError):
        find(index, "boiler", vector=None)


def test_common_words_are_skipped_unless_few_chunks_have_a_rare_one(index: SmallIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "_MAX_POSTINGS", 1)
    monkeypatch.setattr(retrieval, "_MIN_TERMS", 1)
    index.put("rare", ("the axolotl", 0.0))
    for number in range(3):
        index.put(f"common {number}", (f"water {number}", 0.0))
    monkeypatch.setattr(retrieval, "_MIN_MATCHES", 1)
    assert len(find(index, "axolotl water", semantic_ratio=0.0, vector=None).candidates) == 1
    monkeypatch.setattr(retrieval, "_MIN_MATCHES", 4)
    assert len(find(index, "axolotl water", semantic_ratio=0.0, vector=None).candidates) == 4


def test_equally_good_candidates_stand_in_the_order_of_their_paths(index: SmallIndex) -> None:
    for path in ("c", "a", "b"):
        index.put(path, ("the very same words", 0.5))
    assert paths(find(index, "something")) == ["a", "b", "c"]


# Names and questions


def test_a_page_that_is_near_as_a_whole_comes_first_for_a_question(index: SmallIndex) -> None:
    index.put("one passage", ("a furnace", 0.5), ("a garden", 0.0), ("a meadow", 0.0))
    index.put("whole page", ("a stove", 0.49), ("a radiator", 0.4), ("a chimney", 0.4))
    found = find(index, "warmth in winter")
    assert paths(found)[0] == "whole page"
    whole = on_page(found, "whole page")
    assert whole.page_similarity == pytest.approx((0.49 + 0.4 + 0.4) / 3, abs=1e-3)
    assert whole.page_credit == pytest.approx(PAGE_SIMILARITY_WEIGHT * whole.page_similarity)


def test_words_on_other_passages_of_the_page_explain_a_part_of_a_question(index: SmallIndex) -> None:
    index.put("both", ("a boiler in the house", 0.4), ("the winter", 0.4))
    index.put("one", ("a boiler and a house", 0.4), ("the summer", 0.4))
    found = find(index, "boiler winter holidays expenses")
    assert on_page(found, "both").page_credit > on_page(found, "one").page_credit
    both, one = ([each for each in found.candidates if each.path == path] for path in ("both", "one"))
    assert all(each.page_coverage == pytest.approx(sum(part.coverage for part in both)) for each in both)
    assert all(each.page_coverage == pytest.approx(max(part.coverage for part in one)) for each in one)
    assert on_page(found, "one").coverage < 0.65


def test_a_title_that_a_question_merely_contains_adds_nothing(index: SmallIndex) -> None:
    index.put("family", ("parents and children", 0.1))
    index.put("llama", ("a domesticated camelid", 0.6))
    found = find(index, "South American pack animal of the camel family")
    assert paths(found)[0] == "llama"
    assert on_page(found, "family").name_points == 0.0


def test_a_query_whose_words_stand_in_one_passage_is_a_name(index: SmallIndex) -> None:
    index.put("heating boiler", ("about it", 0.2))
    index.put("other", ("the boiler of the heating", 0.2))
    found = find(index, "heating boiler")
    assert on_page(found, "heating boiler").name_points > 0
    assert {each.coverage for each in found.candidates} == {1.0}


def test_words_that_stand_nowhere_lower_the_coverage_of_all(index: SmallIndex) -> None:
    index.put("a", ("the boiler", 0.5))
    index.put("b", ("the boiler room", 0.5))
    assert {each.coverage for each in find(index, "boiler").candidates} == {1.0}
    assert {each.coverage < 0.5 for each in find(index, "boiler zebrafish").candidates} == {True}


def test_coverage_is_the_same_after_a_page_is_added(index: SmallIndex) -> None:
    index.put("a", ("the boiler in the cellar", 0.5))
    before = on_page(find(index, "boiler cellar attic"), "a").coverage
    index.put("b", ("the boiler in the cellar", 0.5))
    found = find(index, "boiler cellar attic")
    assert on_page(found, "a").coverage == on_page(found, "b").coverage
    assert on_page(found, "b").coverage == pytest.approx(before, abs=0.2)


def test_a_query_may_have_any_number_of_words_that_stand_nowhere(index: SmallIndex) -> None:
    index.put("a", ("the boiler", 0.5))
    found = find(index, " ".join(["boiler", *(f"unknown{number}" for number in range(200))]))
    assert 0 < on_page(found, "a").coverage < 0.01


def test_a_query_may_have_any_number_of_known_words(index: SmallIndex) -> None:
    words = [f"known{number}" for number in range(200)]
    index.put("a", (" ".join(words), 0.5))
    index.put("b", (" ".join(words[:5]), 0.5))
    found = find(index, " ".join(words))
    assert on_page(found, "a").coverage == pytest.approx(1.0)
    assert on_page(found, "b").coverage < 0.5
