from __future__ import annotations

import math

import pytest

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.search.evaluation import JudgedQuery, difference, means, parse_judged_queries, percentiles, score


def test_the_metrics_of_a_ranking_worked_out_by_hand() -> None:
    found = score(JudgedQuery("q", ("a", "b"), ("x",)), ["x", "c", "A.md", "a", "d", "b"])
    # Without x, and with the repeated a counted once: c, a, d, b.
    gain, ideal = 1 / math.log2(3) + 1 / math.log2(5), 1 + 1 / math.log2(3)
    assert found["ndcg"] == pytest.approx(gain / ideal)
    assert found["mrr"] == 0.5
    assert [found[f"recall@{k}"] for k in (1, 5, 10)] == [0.0, 1.0, 1.0]
    assert [found[f"precision@{k}"] for k in (1, 5, 10)] == [0.0, 0.4, 0.2]
    assert found["zero"] == 0.0


def test_a_perfect_an_empty_and_a_wrong_ranking() -> None:
    judged = JudgedQuery("q", ("a",))
    assert score(judged, ["a"])["ndcg"] == score(judged, ["a"])["mrr"] == 1.0
    assert (score(judged, [])["ndcg"], score(judged, [])["zero"]) == (0.0, 1.0)
    assert score(judged, ["b"])["mrr"] == 0.0


def test_what_comes_after_ten_counts_for_nothing() -> None:
    found = score(JudgedQuery("q", ("a",)), [*"bcdefghijk", "a"])
    assert (found["ndcg"], found["mrr"], found["recall@10"]) == (0.0, 0.0, 0.0)


def test_means_and_percentiles() -> None:
    rows = [score(JudgedQuery("q", ("a",)), ["a"]), score(JudgedQuery("r", ("a",)), [])]
    assert (means(rows)["ndcg"], means(rows)["zero"]) == (0.5, 0.5)
    assert percentiles([float(value) for value in range(1, 101)]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert percentiles([7.0]) == {"p50": 7.0, "p95": 7.0, "p99": 7.0}


def test_a_steady_change_is_told_from_noise() -> None:
    before = [0.1 * (number % 7) for number in range(200)]
    better = difference(before, [value + 0.05 + 0.01 * (number % 3) for number, value in enumerate(before)])
    assert better.mean == pytest.approx(0.06, abs=0.002)
    assert 0.05 < better.low < better.mean < better.high < 0.07
    assert not better.is_noise
    noise = difference(before, [value + (0.2 if number % 2 else -0.2) for number, value in enumerate(before)])
    assert noise.low < 0 < noise.high
    assert noise.is_noise
    assert difference(before, better_again := [value + 0.06 for value in before]) == difference(before, better_again)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "has to be a list"),
        ([], "has to be a list"),
        ([{"relevant": ["a"]}], "entry 0 of the query file has no query"),
        ([{"query": "q", "relevant": ["a"]}, {"query": "r"}], r"entry 1 of the query file \('r'\) names no relevant page"),
        ([{"query": "q", "relevant": "a"}], "relevant of entry 0 of the query file has to be a list"),
        ([{"query": "q", "relevant": ["a"], "exclude": [1]}], "exclude of entry 0"),
        ([{"querry": "q"}], "^unknown parameter 'querry' in entry 0 of the query file; did you mean 'query'"),
        (
            [{"query": "q", "relevant": ["a"], "limit": 5}],
            "'limit' in entry 0 .*; allowed are query, relevant, exclude",
        ),
    ],
)
def test_a_bad_query_file_is_told_where(value: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_judged_queries(value)


def test_paths_are_read_however_they_are_written() -> None:
    (judged,) = parse_judged_queries([{"query": " q ", "relevant": ["/Dir/A.md", "dir/a"]}])
    assert judged == JudgedQuery("q", ("dir/a",))
