"""From candidates to results: shares of pages, duplicates, diversity, reranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from otterwiki_semantic.core.records import Mode, SearchOptions, Sort
from otterwiki_semantic.search import Scale, SearchResult, pipeline, search_chunks
from otterwiki_semantic.search.query import parse_query
from tests.support.small_index import QUERY, SmallIndex

BOILERPLATE = " ".join(f"word{number}" for number in range(60))


def search(index: SmallIndex, text: str, scores: Mapping[str, float] | None = None, **options: Any) -> SearchResult:
    asked = SearchOptions(**options)
    with index.catalog.snapshot():
        return search_chunks(index.generation, parse_query(text), lambda: QUERY, asked, Scale(), scores)


def paths(found: SearchResult) -> list[str]:
    return [hit.path for hit in found.hits]


def test_the_best_are_returned_and_no_more_of_a_page_than_its_share(index: SmallIndex) -> None:
    index.put("long", *((f"furnace part {number}", 0.9 - number / 100) for number in range(5)))
    index.put("short", ("a stove", 0.3))
    assert paths(search(index, "warmth", n=4)) == ["long", "long", "short"]
    assert paths(search(index, "warmth", n=4, max_chunks_per_page=1)) == ["long", "short"]
    assert paths(search(index, "warmth", n=2)) == ["long", "long"]


def test_more_are_retrieved_where_one_page_crowds_out_the_others(index: SmallIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_CANDIDATES", 2)
    monkeypatch.setattr(pipeline, "_CANDIDATES_PER_RESULT", 1)
    index.put("long", *((f"furnace part {number}", 0.9 - number / 100) for number in range(5)))
    index.put("short", ("a stove", 0.3))
    assert paths(search(index, "warmth", n=2, max_chunks_per_page=1)) == ["long", "short"]
    monkeypatch.setattr(pipeline, "_MAX_CANDIDATES", 2)
    assert paths(search(index, "warmth", n=2, max_chunks_per_page=1)) == ["long"]


def test_chunks_that_are_not_similar_enough_are_left_out(index: SmallIndex) -> None:
    index.put("near", ("a furnace", 0.6))
    index.put("far", ("a tomato", 0.2))
    index.put("failed", ("the boiler", None))
    assert paths(search(index, "boiler", min_similarity=0.5)) == ["near"]
    assert "failed" in paths(search(index, "boiler", min_similarity=-1)), "what has no vector counts as the least similar"


def test_a_phrase_has_to_stand_in_the_text_word_for_word(index: SmallIndex) -> None:
    index.put("exact", ("it wants the exact phrase here", 0.1))
    index.put("stems", ("it wants exactly phrases here", 0.9))
    assert paths(search(index, '"exact phrase"')) == ["exact"]


def test_what_is_excluded_stays_out_even_without_the_keyword_index(index: SmallIndex) -> None:
    index.put("pump", ("the pump lifts water", 0.9))
    index.put("well", ("the well is deep", 0.5))
    assert paths(search(index, "water -pump")) == ["well"]
    index.break_keywords()
    found = search(index, "water -pump")
    assert paths(found) == ["well"]
    assert found.degraded is not None
    assert found.hits[0].explain is None


def test_a_repeated_passage_is_shown_once_with_the_pages_that_repeat_it(index: SmallIndex) -> None:
    index.put("first", (BOILERPLATE, 0.9))
    index.put("second", (BOILERPLATE, 0.8), ("something of its own", 0.3))
    index.put("third", ("a third thing", 0.4))
    found = search(index, "anything")
    assert paths(found) == ["first", "third", "second"]
    assert [hit.also_on for hit in found.hits] == [("second",), (), ()]
    assert paths(search(index, "anything", max_chunks_per_page=1)) == ["first", "second", "third"]


def test_pages_that_nearly_repeat_the_last_result_are_found_behind_it(index: SmallIndex) -> None:
    index.put("first", (BOILERPLATE, 0.9))
    index.put("second", (BOILERPLATE.replace("word59", "other"), 0.8))
    assert [hit.also_on for hit in search(index, "anything", n=1).hits] == [("second",)]


def test_diverse_results_differ_from_each_other(index: SmallIndex) -> None:
    index.put("a", ("a furnace", 0.9), ("a stove", 0.8))
    index.put("b", ("a tomato", 0.0))
    assert paths(search(index, "warmth", n=2)) == ["a", "a"]
    assert paths(search(index, "warmth", n=2, diversity=1.0)) == ["a", "b"]


def test_the_rerankers_scores_order_all_but_what_the_query_names(index: SmallIndex) -> None:
    index.put("pump", ("it lifts water", 0.9))
    for path, similarity in (("a", 0.8), ("b", 0.7), ("c", 0.6)):
        index.put(path, (f"text of {path}", similarity))
    first = search(index, "pump", rerank=True, explain=True)
    assert paths(first) == ["pump", "a", "b", "c"]
    assert list(first.shortlist.values()) == ["[a] text of a", "[b] text of b", "[c] text of c"]
    again = search(index, "pump", dict(zip(first.shortlist, (0.1, 0.0, 0.9), strict=True)), rerank=True, explain=True)
    assert paths(again) == ["pump", "c", "a", "b"]
    assert [hit.score for hit in again.hits] == [hit.score for hit in first.hits], "scores stay with the ranks"
    assert [hit.explain.rerank.rank for hit in again.hits if hit.explain] == [None, 4, 2, 3]
    assert again.shortlist == {}


def test_no_reranker_reads_what_is_never_embedded_and_it_keeps_its_rank(index: SmallIndex) -> None:
    index.put("best", ("boiler of the house", 0.9))
    index.put("secret", ("the boiler in the house", None), words_only=True)
    index.put("worst", ("a boiler", 0.2))
    first = search(index, "boiler house", rerank=True)
    assert paths(first) == ["best", "secret", "worst"]
    assert list(first.shortlist.values()) == ["[best] boiler of the house", "[worst] a boiler"]
    again = search(index, "boiler house", dict(zip(first.shortlist, (0.1, 0.9), strict=True)), rerank=True)
    assert paths(again) == ["worst", "secret", "best"]


def test_diverse_results_include_what_has_no_vector(index: SmallIndex) -> None:
    index.put("near", ("boiler and furnace", 0.9))
    index.put("secret", ("the boiler of the hotel", None), words_only=True)
    index.put("failed", ("a boiler in a ship", None))
    assert sorted(paths(search(index, "boiler", diversity=0.5))) == ["failed", "near", "secret"]


def test_what_the_reranker_has_not_read_comes_last(index: SmallIndex) -> None:
    for path, similarity in (("a", 0.8), ("b", 0.7), ("c", 0.6)):
        index.put(path, (f"text of {path}", similarity))
    a, _, c = search(index, "anything", rerank=True).shortlist
    assert paths(search(index, "anything", {a: 0.1, c: 0.9}, rerank=True)) == ["c", "a", "b"]


def test_nothing_is_shortlisted_unless_a_reranker_is_to_read_it(index: SmallIndex) -> None:
    index.put("a", ("a furnace", 0.9))
    assert search(index, "warmth").shortlist == {}


def test_an_answer_is_confident_if_any_result_is_relevant(index: SmallIndex) -> None:
    index.put("a", ("a furnace", 0.9))
    index.put("b", ("a tomato", 0.0))
    found = search(index, "warmth")
    assert found.confident
    assert [hit.relevant for hit in found.hits] == [True, False]
    index.catalog.remove_pages(["a"])
    assert not search(index, "warmth").confident


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.KEYWORD])
def test_a_passage_with_all_words_of_the_query_is_relevant_even_if_unknown_to_the_model(index: SmallIndex, mode: Mode) -> None:
    index.put("tool", ("the nights are saved by restic", 0.1))
    index.put("other", ("the nights are cold", 0.1))
    assert [(hit.path, hit.relevant) for hit in search(index, "restic nights", mode=mode).hits] == [
        ("tool", True),
        ("other", False),
    ]


def test_facets_are_counted_on_request(index: SmallIndex) -> None:
    index.put("house/a", ("a furnace", 0.9), category="Guide", tags=("heat",))
    assert search(index, "warmth").facets is None
    facets = search(index, "warmth", facets=True).facets
    assert facets is not None
    assert (facets.category, facets.tag, facets.path) == ({"Guide": 1}, {"heat": 1}, {"house/": 1})


def test_sorted_by_date_the_relevant_ones_stand_in_the_order_of_their_last_change(index: SmallIndex) -> None:
    index.put("old", ("a furnace", 0.9), updated=1)
    index.put("new", ("a stove", 0.5), updated=3)
    index.put("irrelevant", ("a tomato", 0.0), updated=4)
    assert paths(search(index, "warmth", sort=Sort.UPDATED)) == ["new", "old"]
    index.catalog.remove_pages(["old", "new"])
    assert paths(search(index, "warmth", sort=Sort.UPDATED)) == ["irrelevant"], "if none is relevant, the best few"


def test_an_empty_index_has_no_results(index: SmallIndex) -> None:
    for mode in Mode:
        found = search(index, "anything", mode=mode, facets=True, rerank=True)
        assert (found.hits, found.confident, found.degraded) == ((), False, None)
