"""The measures of ranking quality, computed by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.records import Hit
from otterwiki_semantic.search.evaluation import (
    JudgedQuery,
    difference,
    holds,
    means,
    means_by_kind,
    page_metrics,
    parse_judged_queries,
    percentiles,
    question_means,
    read_judged_queries,
    score,
    score_question,
)
from tests.support.hits import make_hit

ANSWER = "Hold a **cup** under the [screw](/tools#screw) at the top, and turn the key to the left."
SHOWN = "Then hold a cup under the screw at the top, and turn the key to the left. Close it again."
LEAK = {"query": "radiator leaks", "kind": "situation", "page": "heating", "section": "Bleeding", "answer": ANSWER}
JUDGED = JudgedQuery("radiator leaks", ("heating", "pipes"), (), "situation", "heating", "Bleeding", ANSWER)
NOWHERE = JudgedQuery("exchange rate of the yen", (), kind="unanswerable")


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
            "'limit' in entry 0 .*; allowed are query, relevant, exclude, kind, page, section, answer",
        ),
        (
            [LEAK | {"kind": "riddle"}],
            r"the kind of entry 0 of the query file \('radiator leaks'\) is 'riddle'; allowed are question, ",
        ),
        ([LEAK, {"query": "q", "relevant": ["a"], "answer": "b"}], "entry 1 .* has a page, section or answer, but no kind"),
        (
            [LEAK, LEAK | {"kind": "unanswerable"}],
            "entry 1 .* has a page, section or answer, although its kind is unanswerable",
        ),
        ([LEAK, {"query": "q", "kind": "question", "page": " "}], r"entry 1 of the query file \('q'\) names no relevant page"),
        ([LEAK, LEAK | {"page": ["a"]}], "page of entry 1 of the query file has to be a text"),
        ([LEAK | {"section": None}], "section of entry 0 of the query file has to be a text"),
        ([LEAK | {"exclude": ["heating"]}], "entry 0 .* leaves out every relevant page"),
        ([{"query": "q", "kind": "unanswerable"}], "at least one question needs one"),
    ],
)
def test_a_bad_query_file_is_told_where(value: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_judged_queries(value)


def test_paths_are_read_however_they_are_written() -> None:
    (judged,) = parse_judged_queries([{"query": " q ", "relevant": ["/Dir/A.md", "dir/a"]}])
    assert judged == JudgedQuery("q", ("dir/a",))


def test_a_file_may_mix_queries_questions_and_unanswerable_ones(tmp_path: Path) -> None:
    entries = [
        {"query": "q", "relevant": ["a"]},
        LEAK | {"relevant": ["Pipes", "Heating.md"]},
        {"query": "r", "kind": "keywords", "relevant": ["a"], "section": ""},
        {"query": "exchange rate of the yen", "kind": "unanswerable", "page": "", "relevant": [], "section": "", "answer": ""},
    ]
    query, question, keywords, nowhere = parse_judged_queries(entries)
    assert query == JudgedQuery("q", ("a",))
    assert question == JUDGED
    assert keywords == JudgedQuery("r", ("a",), (), "keywords", section="")
    assert (nowhere.relevant, nowhere.kind) == ((), "unanswerable")
    path = tmp_path / "queries.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    assert read_judged_queries(path) == [query, question, keywords], "only what a ranking can be right about"


@pytest.mark.parametrize(
    ("text", "answer", "is_held"),
    [
        (SHOWN, ANSWER, True),
        ("hold a cup under the screw at the top", ANSWER, False),
        ("a cup under the screw at the top, and turn the key to the wall", ANSWER, True),
        ("cup hold a under screw the at top the and turn the key to the left", ANSWER, False),
        ("one two three FOUR five", "one, two, three four", True),
        ("two three four", "one two three four", False),
        ("zero half bar", "half bar", True),
        ("half a bar", "half bar", False),
        ("crowbar", "bar", False),
        ("anything", " * ", False),
    ],
)
def test_a_text_holds_an_answer_by_runs_of_its_words(text: str, answer: str, is_held: bool) -> None:
    assert holds(text, answer) is is_held


def passage(path: str = "heating", text: str = SHOWN, section: str = "Bleeding", best: str = "", **fields: Any) -> Hit:
    """Return a result whose best unit is `best`."""
    start = text.index(best)
    return make_hit(path=path, text=text, snippet=text, section=section, best_sentence=(start, start + len(best)), **fields)


OTHER = passage("house", "Something else.", "Bleeding")


def test_the_first_relevant_page_counts() -> None:
    assert page_metrics(JUDGED, ["Pipes.md", "heating"]) == {"r1": 1.0, "r5": 1.0, "ndcg": 1.0}
    assert page_metrics(JUDGED, ["a", "a", "b", "heating", "pipes"]) == {"r1": 0.0, "r5": 1.0, "ndcg": 0.5}
    assert page_metrics(JUDGED, [*"abcde", "heating"]) == {"r1": 0.0, "r5": 0.0, "ndcg": 1 / math.log2(7)}
    assert page_metrics(JUDGED, [*"abcdefghij", "heating"])["ndcg"] == 0.0


def test_passages_are_compared_with_the_section_and_the_answer() -> None:
    right = score_question(JUDGED, ["heating"], [passage()])
    assert {name: right[name] for name in ("r1", "s1", "s5", "a1", "a3", "a5", "labelled")} == dict.fromkeys(
        ("r1", "s1", "s5", "a1", "a3", "a5", "labelled"), 1.0
    )
    assert (right["wrongly_silent"], right["silent"], right["unit"]) == (0.0, None, None)
    third = score_question(JUDGED, ["house"], [OTHER, passage("pipes"), passage(section="Frost"), passage(text="No.")])
    assert (third["s1"], third["s5"]) == (0.0, 1.0)
    assert (third["a1"], third["a3"], third["a5"]) == (0.0, 1.0, 1.0), "pipes has the words, but is not the page"
    assert third["labelled"] == 0.0
    sixth = score_question(JUDGED, [], [*[OTHER] * 5, passage()])
    assert (sixth["s5"], sixth["a5"], sixth["labelled"]) == (0.0, 0.0, None)
    without = score_question(
        JudgedQuery("q", ("heating",), ("house",), "question", answer=ANSWER), [], [*[OTHER] * 5, passage()]
    )
    assert (without["a1"], without["s1"], without["labelled"]) == (1.0, None, None), "the section is not known"
    anywhere = score_question(JudgedQuery("q", ("a", "pipes"), kind="question", section=""), [], [passage("pipes", section="")])
    assert (anywhere["s1"], anywhere["a5"]) == (1.0, None), "above all headings of any relevant page; the answer is not known"


@pytest.mark.parametrize(
    ("best", "is_right"),
    [
        (SHOWN[: SHOWN.index(" Close")], 1.0),
        ("turn the key to the left", 1.0),
        ("the key to", 0.0),
        ("Close it again.", 0.0),
        ("", 0.0),
    ],
)
def test_the_best_unit_is_compared_with_the_answer(best: str, is_right: float) -> None:
    marked = [OTHER, passage(text="Bleed it.", best="Bleed it."), passage(best=best), passage(best=SHOWN)]
    assert score_question(JUDGED, [], [OTHER], marked)["unit"] == is_right, "of the first passage that holds the answer"


def test_silence_is_right_only_for_unanswerable_questions() -> None:
    irrelevant = passage(relevant=False)
    assert score_question(JUDGED, ["heating"], [irrelevant])["wrongly_silent"] == 1.0
    silent, spoken = score_question(NOWHERE, ["a"], [irrelevant]), score_question(NOWHERE, ["a"], [irrelevant, passage()])
    assert {name: value for name, value in silent.items() if value is not None} == {"silent": 1.0}
    assert spoken["silent"] == 0.0


def test_means_leave_out_what_has_no_meaning() -> None:
    questions = [(JUDGED, [passage()]), (JUDGED, [OTHER]), (NOWHERE, [passage(relevant=False)])]
    rows = [{"kind": each.kind} | score_question(each, [hits[0].path], hits) for each, hits in questions]
    found = question_means(rows)
    assert (found["r1"], found["labelled"], found["unit"], found["silent"]) == (0.5, 1.0, None, 1.0)
    assert means_by_kind(rows) == {"situation": {"r1": 0.5, "r5": 0.5, "a5": 0.5}}
