"""How often true sentences in other words are marked, and opposites are not: the figures of docs/ask.md."""

from __future__ import annotations

import pytest

from otterwiki_semantic.search.answering.grounding import Similarity, unsupported_reason
from otterwiki_semantic.search.answering.statements import Statement, StatementKind
from tests.support.sentences import sentences


@pytest.mark.parametrize("has_model", [True, False], ids=["with a model", "by words alone"])
@pytest.mark.parametrize(
    ("language", "flagged_at_most", "passed_at_most"), [("en", 0.12, 0.073), ("de", 0.20, 0.15), ("fr", 0.20, 0.15)]
)
def test_few_paraphrases_are_marked_and_few_opposites_are_not(
    language: str, flagged_at_most: float, passed_at_most: float, has_model: bool, similarity: Similarity
) -> None:
    flagged, passed, true, wrong = 0, 0, 0, 0
    for part in ("1", "2"):
        counts = _count(f"{language}-{part}", similarity if has_model else None)
        print(f"{language}-{part}: {counts[0]} of {counts[1]} paraphrases marked, {counts[2]} of {counts[3]} opposites passed")
        flagged, true, passed, wrong = (a + b for a, b in zip((flagged, true, passed, wrong), counts, strict=True))
    assert flagged <= flagged_at_most * true
    assert passed <= passed_at_most * wrong + (0 if has_model else 0.02 * wrong)


def _count(name: str, similarity: Similarity | None) -> tuple[int, int, int, int]:
    """Return how many paraphrases of a set are marked, of how many, and how many opposites are not, of how many."""
    cases = list(sentences(name))
    results = [
        unsupported_reason(Statement(case.text, StatementKind.SENTENCE, 0, (1,)), [case.source], name[:2], similarity)
        for case in cases
    ]
    true = [reason for reason, case in zip(results, cases, strict=True) if case.is_true]
    wrong = [reason for reason, case in zip(results, cases, strict=True) if not case.is_true]
    return len(true) - true.count(None), len(true), wrong.count(None), len(wrong)
