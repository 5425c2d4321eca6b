"""Search results in a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from otterwiki_semantic.cli.results import print_answer
from otterwiki_semantic.core.records import Answer, Correction, Freshness, Hit, Progress, TotalHits
from tests.support.hits import make_hit


def answer(*results: Hit, **fields: Any) -> Answer:
    whole: dict[str, Any] = {"confident": True, "index": Freshness("a", "a", 0)}
    return Answer(query="rain", total=len(results), total_hits=TotalHits(0, "eq"), results=results, **whole | fields)


def test_a_result_is_its_place_its_text_and_the_pages_that_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(answer(make_hit(snippet="[Page] Rain.", prefix_length=7, distance=0.25, also_on=("b", "c"))))
    shown = capsys.readouterr()
    assert shown.out.splitlines() == ["page:1  0.75  ", "    Rain.", "    (nearly the same on b, c)", ""]
    assert shown.err == ""


@pytest.mark.parametrize(
    ("fields", "notice"),
    [
        ({"degraded": "the model does not answer"}, "the model does not answer"),
        ({"corrections": (Correction("rian", "rain"),)}, "Also searched for rain: no page has rian."),
        ({"confident": False}, "Nothing relevant was found; these are the nearest passages."),
        (
            {"index": Freshness("a", "b", 2, progress=Progress(1, 3, 1, 4, pages_by_words=1))},
            "The index is behind by 2 pages (1 of 3 pages by words, 25% by meaning). To wait for it: otterwiki-semantic index",
        ),
    ],
)
def test_notices_are_printed_apart_from_hits(capsys: pytest.CaptureFixture[str], fields: dict[str, Any], notice: str) -> None:
    print_answer(answer(make_hit(), **fields))
    assert capsys.readouterr().err == f"{notice}\n"
