"""The fits of the ranking and of relevance, on figures made up for them; SciPy comes with an extra."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from otterwiki_semantic.search.evaluation import JudgedQuery
from tools.fit_relevance import Asked as Relevance
from tools.fit_relevance import fit as fit_floor
from tools.fit_relevance import judged_wiki, rates

pytest.importorskip("scipy")
from tools.fit_ranking import IN_USE, Asked, Wiki, fit, shown

JUDGED = JudgedQuery("q", ("right",), kind="question", page="right", answer="the answer")
PATHS = ["wrong", "right", "right", "other"]


def asked(evidence: list[tuple[float, float, float]]) -> Asked:
    """Return a question that another page answers best by all that has no weight."""
    is_right = np.array([path == "right" for path in PATHS])
    return Asked(
        JUDGED, PATHS, np.array([12.0, 10.0, 10.0, 0.0]), np.array(evidence), is_right, np.array([0, 0, 1, 0], dtype=bool)
    )


def test_the_evidence_that_tells_pages_apart_gains_weight() -> None:
    telling = [(0.9, 0.0, 0.5), (0.1, 1.0, 0.5), (0.1, 1.0, 0.5), (0.1, 0.0, 0.5)]
    weights = fit([Wiki([asked(telling)], [])])
    assert weights[1] > IN_USE[1]
    assert weights[0] < IN_USE[0]
    assert weights[2] == pytest.approx(IN_USE[2], abs=1e-3), "it is the same for all candidates"


def test_figures_follow_from_the_weights() -> None:
    wiki = Wiki([asked([(0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.5, 1.0, 0.0), (0.0, 0.0, 0.0)])], [])
    without, weighed = (wiki.figures(np.array(weights)) for weights in ((0.0, 0.0, 0.0), (0.0, 3.0, 0.0)))
    assert (without["page first"], without["page in 5"], without["answer in 5"]) == ([0.0], [1.0], [1.0])
    assert (weighed["page first"], weighed["nDCG@10"], weighed["link texts"]) == ([1.0], [1.0], [])


def test_a_page_shows_two_passages_and_a_search_five() -> None:
    assert shown([0, 1, 2, 3, 4, 5, 6, 7], [*"aaabcbde"]) == [0, 1, 3, 4, 5]


def test_the_floor_flags_the_share_of_answerable_questions_that_it_may() -> None:
    answerable = [Relevance("wiki", number / 100, is_answerable=True) for number in range(100)]
    rows = [*answerable, Relevance("wiki", 0.05, is_answerable=False), Relevance("wiki", 0.5, is_answerable=False)]
    assert fit_floor(rows, 0.08) == 0.08
    assert rates(rows, 0.08) == ("flagged are 1 of 2 unanswerable questions (50.0%) and 8 of 100 answerable ones (8.0%)")
    assert rates(rows[:1], 0.08) == "flagged are 0 of 0 unanswerable questions (none) and 1 of 1 answerable ones (100.0%)"


def test_a_judged_wiki_has_answerable_and_unanswerable_questions(tmp_path: Path) -> None:
    questions = [{"query": "a", "kind": "question", "page": "p"}, {"query": "b", "kind": "unanswerable"}]
    (tmp_path / "questions.json").write_text(json.dumps(questions))
    assert judged_wiki(tmp_path) == (tmp_path / "pages", [("a", True), ("b", False)])
