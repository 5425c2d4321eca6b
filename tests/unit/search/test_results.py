"""What a result shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from otterwiki_semantic.core.records import Hit, PageUrls, SearchOptions
from otterwiki_semantic.search.best_unit import UnitChooser
from otterwiki_semantic.search.query import parse_query
from otterwiki_semantic.search.results import ResultBuilder, facet_folders
from otterwiki_semantic.search.retrieval import CandidateSet
from otterwiki_semantic.search.scoring import Candidate, QueryWords, Tier
from otterwiki_semantic.search.similarity_scale import Scale
from tests.support.small_index import SmallIndex

WEIGHTS = {"boiler": 3.0, "cellar": 1.0}


def candidates(index: SmallIndex, *scores: float) -> list[Candidate]:
    """Return the chunks of an index in the order in which they were put, with these scores as similarities and scores."""
    exact = index.catalog.reader.exact_index()
    chunks = exact.candidates(exact.columns.ids[exact.live].tolist())
    return [Candidate(*chunk, similarity=score, score=score) for chunk, score in zip(chunks, scores, strict=True)]


def builder(index: SmallIndex, ranked: Sequence[Candidate], **options: Any) -> ResultBuilder:
    found = CandidateSet(list(ranked), is_complete=True)
    asked, urls, query = SearchOptions(**options), PageUrls("/wiki/"), parse_query("boiler cellar")
    units = UnitChooser(query, [QueryWords(WEIGHTS, WEIGHTS)], None, None, Scale())
    return ResultBuilder(index.catalog, query, found, ranked, asked, urls, units)


def hits(
    index: SmallIndex,
    ranked: Sequence[Candidate],
    chosen: Sequence[Candidate],
    also_on: Mapping[int, set[str]] = MappingProxyType({}),
    **options: Any,
) -> list[Hit]:
    return builder(index, ranked, **options).hits(chosen, also_on, set(), 0, len(chosen))


def test_a_hit_shows_its_chunk_and_why_it_matches(index: SmallIndex) -> None:
    index.put("house/a", ("the boiler in the cellar", 0.5), section="Heating", category="Guide", tags=("heat",))
    (each,) = candidates(index, 0.5)
    (hit,) = hits(index, [each], [each], {each.id: {"c", "b"}})
    assert (hit.name, hit.path, hit.title, hit.category, hit.tags) == ("a", "house/a", "house/a", "Guide", ("heat",))
    assert hit.snippet == hit.text == "[house/a] the boiler in the cellar"
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["boiler", "cellar"]
    assert (hit.section, hit.section_path, hit.headings, hit.anchor) == (
        "Heating",
        ("house/a", "Heating"),
        ("Heating",),
        "heating",
    )
    assert (hit.start_line, hit.end_line, hit.chunk_index, hit.total_chunks, hit.page_word_count) == (1, 9, 0, 1, 10)
    assert (hit.similarity, hit.distance, hit.score) == (0.5, 0.5, 0.5)
    assert (hit.also_on, hit.url, hit.explain) == (("b", "c"), "/wiki/house/a#heating", None)


@pytest.mark.parametrize(
    ("path", "section", "breadcrumb"),
    [("heating", "Frost", "heating > Frost"), ("heating", "heating", "heating"), ("heating", "", "heating")],
)
def test_the_breadcrumb_leads_from_the_title_down(index: SmallIndex, path: str, section: str, breadcrumb: str) -> None:
    index.put(path, ("the boiler", 0.5), section=section)
    (each,) = candidates(index, 0.5)
    (hit,) = hits(index, [each], [each])
    assert (hit.breadcrumb, " > ".join(hit.section_path)) == (breadcrumb, breadcrumb)


def test_a_chunk_without_a_similarity_has_no_distance(index: SmallIndex) -> None:
    index.put("a", ("the boiler", None))
    (each,) = candidates(index, 1.0)
    each.similarity = None
    (hit,) = hits(index, [each], [each])
    assert (hit.similarity, hit.distance) == (None, None)


def test_good_neighbours_are_joined_to_a_result(index: SmallIndex) -> None:
    index.put("a", ("One.", 0.5), ("Two.", 0.5), ("Three.", 0.5), ("Four.", 0.5), section="S")
    one, two, three, four = ranked = candidates(index, 0.8, 1.0, 0.74, 0.9)
    (hit,) = hits(index, ranked, [two])
    assert hit.text == "[a] One.\n\nTwo.", "the third one is not good enough, and the fourth does not follow"
    assert (hit.snippet, hit.start_line, hit.end_line) == ("[a] Two.", 11, 19)
    assert (hit.text_start_line, hit.text_end_line) == (1, 19)
    three.score = 0.75
    assert hits(index, ranked, [two])[0].text_end_line == 29
    both = hits(index, ranked, [one, four])
    assert [(hit.text_start_line, hit.text_end_line) for hit in both] == [(1, 29), (31, 39)], "each is joined once"


def test_context_is_what_stands_around_a_chunk(index: SmallIndex) -> None:
    index.put("a", ("One.", 0.1), ("Two.", 0.9), ("Three.", 0.1))
    _, two, _ = ranked = candidates(index, 0.1, 0.9, 0.1)
    (hit,) = hits(index, ranked, [two], context=1)
    assert (hit.context_before, hit.context_after) == ("[a] One.", "[a] Three.")
    (hit,) = hits(index, ranked, [two])
    assert (hit.context_before, hit.context_after) == (None, None)


def test_a_chunk_that_is_gone_is_left_out(index: SmallIndex) -> None:
    index.put("a", ("the boiler", 0.5))
    index.put("b", ("the cellar", 0.5))
    first, second = ranked = candidates(index, 0.5, 0.5)
    index.catalog.remove_pages(["a"])
    assert [hit.path for hit in hits(index, ranked, [first, second])] == ["b"]


def test_what_is_above_the_threshold_or_named_is_relevant(index: SmallIndex) -> None:
    for path in ("near", "far", "named", "titled"):
        index.put(path, ("a furnace", 0.5))
    ranked = candidates(index, 0.5, 0.1, 0.0, 0.0)
    for each, above in zip(ranked, (0.1, -0.1, -0.2, -0.2), strict=True):
        each.relevance = above
    ranked[2].is_named, ranked[3].tier = True, Tier.EXACT_TITLE
    assert [hit.relevant for hit in hits(index, ranked, ranked)] == [True, False, True, True]


def test_an_explanation_says_what_placed_a_result(index: SmallIndex) -> None:
    index.put("a", ("the boiler", 0.5))
    index.put("b", ("the cellar", 0.4))
    index.put("c", ("something", 0.3))
    named, reranked, moved = ranked = candidates(index, 0.5, 0.4, 0.3)
    named.tier = Tier.EXACT_TITLE
    reranked.rank_before, reranked.rerank_score = 3, 0.75
    moved.semantic_rank, moved.fused, moved.page_credit = 2, 0.25, 0.125
    by_rank = [hit.explain for hit in hits(index, ranked, ranked, explain=True)]
    assert [each.rule for each in by_rank if each] == ["exact title", "reranker", "score"]
    assert by_rank[1] is not None
    assert by_rank[2] is not None
    assert (by_rank[1].rerank.rank, by_rank[1].rerank.score) == (3, 0.75)
    assert (by_rank[2].semantic.rank, by_rank[2].semantic.score, by_rank[2].keyword.rank) == (2, 0.3, None)
    assert (by_rank[2].fused, by_rank[2].page_credit) == (0.25, 0.125)
    diverse = hits(index, ranked, ranked, explain=True, diversity=0.5)
    assert [hit.explain.rule for hit in diverse if hit.explain] == ["exact title", "diversity", "diversity"]


def test_facets_count_pages_of_results_and_of_relevant_candidates(index: SmallIndex) -> None:
    index.put("house/a", ("a furnace", 0.5), ("a stove", 0.5), category="Guide", tags=("heat", "winter"))
    index.put("house/b", ("a radiator", 0.5), category="Guide", tags=("heat",))
    index.put("garden/c", ("a tomato", 0.0), category="Note", tags=("autumn", "winter"))
    index.put("d", ("a bean", 0.0), category="Plant")
    ranked = candidates(index, 0.5, 0.5, 0.5, 0.0, 0.0)
    for each in ranked[3:]:
        each.relevance = -0.1
    facets = builder(index, ranked).facets([ranked[3]])
    assert list(facets.category.items()) == [("Guide", 2), ("Note", 1)]
    assert list(facets.tag.items()) == [("heat", 2), ("winter", 2), ("autumn", 1)]
    assert list(facets.path.items()) == [("house/", 2), ("garden/", 1)]


def test_folders_are_counted_at_the_first_level_that_has_several() -> None:
    assert facet_folders(["a/b/x", "a/c/d/y", "a/z", "home"]) == ["a/b/", "a/c/"]
    assert [facet_folders([path, path]) for path in ("a/b/x", "x")] == [["a/b/", "a/b/"], []]
