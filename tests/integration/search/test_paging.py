"""A page of results is a part of one ranking, whatever its size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.records import Answer, Filters, Hit, Mode, SearchContext, SearchOptions, Sort
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.search import pipeline

QUERIES = (
    "how do I restore a backup",
    "winter",
    "boiler pressure",
    "Irrigation",
    "wiki",
    "solar panels and the battery",
    "password",
    "the",
    "xyzzy",
)


@pytest.fixture(params=[pipeline._CANDIDATES, 10], autouse=True)
def stages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Rank in stages as large as they are, and in smaller ones: the demo wiki fills two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "_CANDIDATES", request.param)
        yield


def options(**chosen: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some options, each of which is mostly left out."""
    return st.fixed_dictionaries({}, optional=chosen)


OPTIONS = options(
    max_chunks_per_page=st.integers(1, 5),
    mode=st.sampled_from(Mode),
    diversity=st.sampled_from([0.2, 0.7, 1.0]),
    min_similarity=st.sampled_from([0.1, 0.3]),
    recency=st.just(0.5),
    sort=st.just(Sort.UPDATED),
    context=st.integers(0, 2),
    explain=st.just(True),
    markdown=st.just(True),
    best_sentence=st.just(True),
    filters=st.sampled_from([Filters(path="house/"), Filters(updated_since=0)]),
)


def search(index: IndexEngine, query: str, **asked: Any) -> Answer:
    return index.search([query], SearchOptions(**asked), context=SearchContext(is_logged=False))[0]


def results(index: IndexEngine, query: str, **asked: Any) -> list[Hit]:
    return list(search(index, query, **asked).results)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(QUERIES), OPTIONS, st.integers(0, 60), st.integers(1, 40), st.integers(0, 60))
def test_a_page_holds_exactly_what_a_longer_answer_has_in_its_place(
    demo: IndexEngine, query: str, asked: dict[str, Any], offset: int, limit: int, more: int
) -> None:
    longer = results(demo, query, limit=offset + limit + more, **asked)
    assert results(demo, query, offset=offset, limit=limit, **asked) == longer[offset : offset + limit]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(QUERIES), OPTIONS)
def test_pages_lead_through_all_results_each_once(demo: IndexEngine, query: str, asked: dict[str, Any]) -> None:
    whole = search(demo, query, limit=1000, **asked)
    assert whole.total_hits.value == len(whole.results) == whole.total
    places = [(hit.path, hit.chunk_index) for hit in whole.results]
    assert len(set(places)) == len(places)
    most = asked.get("max_chunks_per_page", 2)
    assert all(sum(path == other for other, _ in places) <= most for path, _ in places)
    assert results(demo, query, offset=min(len(places), 999), limit=1, **asked) == []


def test_there_is_more_than_the_first_stage_finds(demo: IndexEngine) -> None:
    assert len(results(demo, "the boiler", limit=1000, max_chunks_per_page=5)) > 20


def test_n_is_the_same_as_limit(demo: IndexEngine) -> None:
    for count in (1, 5, 12, 50):
        assert results(demo, "boiler", n=count) == results(demo, "boiler", limit=count)
    assert len(results(demo, "boiler", n=3, limit=7)) == 7


def test_total_hits_never_promises_too_much(demo: IndexEngine) -> None:
    whole = search(demo, "boiler", limit=1000)
    assert whole.total_hits.relation == "eq"
    for limit in (1, 5, 20, 21):
        found = search(demo, "boiler", limit=limit)
        assert found.total == limit
        assert limit <= found.total_hits.value <= whole.total_hits.value
        assert found.total_hits.relation == "gte" or found.total_hits == whole.total_hits


def test_a_later_page_of_a_good_answer_is_confident(demo: IndexEngine) -> None:
    later = search(demo, "how do I restore a backup", offset=40, limit=5)
    assert later.confident
    assert not any(hit.relevant for hit in later.results)


@pytest.mark.parametrize(("offset", "limit"), [(0, 1001), (999, 2), (1000, 1)])
def test_a_thousand_results_can_be_paged_through(offset: int, limit: int) -> None:
    with pytest.raises(ParameterError, match="allowed are 1,000 together"):
        SearchOptions(offset=offset, limit=limit)
    assert SearchOptions(offset=999, limit=1).end == 1000
