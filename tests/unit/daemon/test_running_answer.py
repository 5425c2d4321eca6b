"""While an answer is written, its reader gets better sources before the sentences that cite them."""

from __future__ import annotations

import time

from msgspec import structs

from otterwiki_semantic.core.records import Freshness, GroundedAnswer
from otterwiki_semantic.daemon.answer_service import _RunningAnswer
from otterwiki_semantic.search.answering.statements import Statement, StatementKind

OPENING = GroundedAnswer("How long?", (), (), confident=False, unsupported=(), index=Freshness(None, None, 0), model="small")


def test_better_sources_come_before_the_text_that_cites_them_even_to_a_reader_who_asks_late() -> None:
    running = _RunningAnswer(OPENING, time.monotonic(), time.monotonic() + 3600, is_strict=False)
    better = structs.replace(OPENING, confident=True, rewrites=("How many days?",))
    running.begin_again(better)
    running.add(Statement("14 days.", StatementKind.SENTENCE, 0, (1,)), None)
    running.end(None)
    first, last = running.wait(0, 0), running.wait(0, 0)
    assert (first.result, first.answer, first.done) == (better, (), False)
    assert ([sentence.text for sentence in last.answer], last.done) == (["14 days."], True)
