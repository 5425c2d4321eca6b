"""Values of parameters are read as what they show, wherever they come from; the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.parameter_parsing import overlaid, parameters_of, parse_parameters
from otterwiki_semantic.core.records import (
    AskRequest,
    BatchRequest,
    Exchange,
    Filters,
    Mode,
    PageListRequest,
    PageRequest,
    QueryRequest,
    RelatedRequest,
    SearchOptions,
)
from otterwiki_semantic.core.serialization import decode, encode


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"n": "05"}, SearchOptions(n=5)),
        ({"n": 5.0, "offset": None}, SearchOptions(n=5)),
        ({"limit": "1000"}, SearchOptions(limit=1000)),
        ({"mode": " Keyword "}, SearchOptions(mode=Mode.KEYWORD)),
        ({"mode": Mode.KEYWORD}, SearchOptions(mode=Mode.KEYWORD)),
        ({"recency": ".5", "diversity": 1}, SearchOptions(recency=0.5, diversity=1.0)),
        ({"facets": "yes", "draft": 1, "corrections": "0"}, SearchOptions(facets=True, draft=True, corrections=False)),
        ({"tag": "a", "category": " null "}, SearchOptions(filters=Filters(category="null", tags=("a",)))),
        ({"tag": [" a  b", "c"], "path": "a  b"}, SearchOptions(filters=Filters(tags=("a b", "c"), path="a  b"))),
        ({"updated_since": "1970-01-02", "explain": " ON"}, SearchOptions(filters=Filters(updated_since=86_400), explain=True)),
    ],
)
def test_values_are_read_as_what_they_show(given: dict[str, Any], expected: SearchOptions) -> None:
    assert parse_parameters(SearchOptions, given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": "null"}, "limit is 'null'; allowed are the whole numbers 1 to 1000"),
        ({"rerank": "null"}, "rerank is 'null'; allowed are true and false"),
        ({"n": "1e1"}, "n is '1e1'; allowed are the whole numbers 1 to 50"),
        ({"n": 10**30}, "n is 1000000000000000000000000000000; allowed are the whole numbers 1 to 50"),
        ({"recency": float("nan")}, "recency is nan; allowed are the numbers 0 to 1"),
        ({"mode": "\ud800"}, "mode has half characters (lone surrogates) in it; it has to be text"),
        ({"category": "a\n"}, "category is 'a\\n'; it takes 1 to 1,000 characters on one line"),
        ({"category": "a" + " " * 1_000}, f"category is 'a{' ' * 58}…; it takes 1 to 1,000 characters on one line"),
        ({"tag": ["a", 1]}, "tag is 1; it takes 1 to 1,000 characters on one line"),
        ({"tag": {}}, "tag is {}; it takes 1 to 1,000 characters on one line"),
        ({"is_logged": "false"}, "unknown parameter 'is_logged'; allowed are n, "),
    ],
)
def test_what_is_no_value_is_named_with_what_is_allowed(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse_parameters(SearchOptions, given)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ("x", "history is 'x'; it has to be a list of 0 to 10 entries"),
        ([{"question": "q", "answer": "a"}] * 11, "history has 11 entries; allowed are 0 to 10"),
        ([{"question": "q"}], "history[0] is {'question': 'q'}; it has to be an object with question and answer"),
        ([{"question": "q", "answer": "a", "x": 1}], "history[0] is {'question': 'q', 'answer': 'a', 'x': 1}; it has to be an"),
        ([{"question": " ", "answer": "a"}], "history[0].question is empty; allowed are 1 to 2,000"),
        ([{"question": "q" + " " * 2_000, "answer": "a"}], "history[0].question has 2,001 characters; allowed are 1 to 2,000"),
        ([{"question": "q", "answer": "x" * 20_001}], "history[0].answer has 20,001 characters; allowed are 0 to 20,000"),
    ],
)
def test_the_part_of_a_value_that_is_wrong_is_named(history: Any, message: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse_parameters(AskRequest, {"question": "why", "history": history})
    assert str(refused.value).startswith(message)


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for name in ("n", "tag", "filter", "mode"):
        with pytest.raises(ParameterError, match=rf"^{name} is nested too deeply"):
            parse_parameters(SearchOptions, {name: deep})


def test_other_types_are_read() -> None:
    assert parse_parameters(RelatedRequest, {"path": " /garden/irrigation.md"}).path == "garden/irrigation"
    assert parse_parameters(PageRequest, {"lines": " 40-12", "section": "A"}) == PageRequest(("A",), (12, 40))
    assert parse_parameters(PageListRequest, {"prefix": "house/"}).filters.path == "house/"
    asked = parse_parameters(AskRequest, {"question": " why ", "history": [{"question": " q ", "answer": " a "}]})
    assert (asked.question, asked.history) == ("why", (Exchange("q", " a "),))


def test_parameters_replace_those_of_another_request() -> None:
    shared = QueryRequest("x", SearchOptions(n=3, filters=Filters(category="a", tags=("b",))), ("path",))
    changed = overlaid(shared, {"query": "y", "n": 4, "category": "c", "tag": None})
    assert changed == QueryRequest("y", SearchOptions(n=4, filters=Filters(category="c", tags=("b",))), ("path",))


@pytest.mark.parametrize(("own", "size"), [({}, 9), ({"n": 2}, 2), ({"limit": 3}, 3), ({"n": 2, "limit": 3}, 3)])
def test_the_number_of_results_of_one_query_replaces_the_shared_one(own: dict[str, int], size: int) -> None:
    asked = parse_parameters(BatchRequest, {"queries": [{"query": "x", **own}], "n": 4, "limit": 9})
    assert [each.options.size for each in asked.searches()] == [size]


def test_a_request_survives_the_way_to_the_daemon() -> None:
    given = {"n": 7, "limit": 1000, "mode": "semantic", "tag": ["a", "b"], "updated_since": "2026-01-31", "filter": "tag:a"}
    asked = parse_parameters(SearchOptions, given)
    assert decode(encode(asked), SearchOptions) == asked


def test_every_parameter_is_described_with_its_limits() -> None:
    described = {each.name: each for each in parameters_of(SearchOptions)}
    assert described["limit"].help == "Number of results, instead of `n`; with `offset` at most 1,000."
    assert described["limit"].schema == {"type": "integer", "minimum": 1, "maximum": 1000}
    assert described["mode"].schema == {"type": "string", "enum": ["hybrid", "semantic", "keyword"], "default": "hybrid"}
    assert described["tag"].schema["maxItems"] == 20
    assert [each.name for each in described.values() if not each.help] == []
