"""What is searched for to answer a question."""

from __future__ import annotations

import pytest

from otterwiki_semantic.core.records import Exchange
from otterwiki_semantic.search.answering import search_queries
from otterwiki_semantic.search.answering.sources import queries_in

BEFORE = [Exchange("How long are backups kept?", "14 nights [1].")]


@pytest.mark.parametrize("question", ["And the logs?", "Why?", "Where is it stored on the server?", "Und die Protokolle?"])
def test_a_question_that_refers_to_the_one_before_is_searched_with_it(question: str) -> None:
    assert search_queries(question, BEFORE) == [f"{BEFORE[0].question} {question}"]
    assert search_queries(question, ()) == [question]


def test_a_question_of_its_own_is_searched_alone() -> None:
    question = "Which machine runs the photo library?"
    assert search_queries(question, BEFORE) == [question]


def test_several_questions_are_searched_one_by_one_too() -> None:
    question = "How long are backups kept? Who tests the restore every month?"
    assert search_queries(question, ()) == [question, "How long are backups kept?", "Who tests the restore every month?"]


def test_many_questions_are_not() -> None:
    assert len(search_queries("What is this thing? " * 50, ())) == 4


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("1. how long are backups kept\n2) retention of backups\n", ["how long are backups kept", "retention of backups"]),
        ("- “backups”\n* **backups**\n\u2022 'logs'", ["backups", "logs"]),
        ("3 days of logs\nnginx.conf", ["3 days of logs", "nginx.conf"]),
        ("one\ntwo\nthree\nfour", ["one", "two", "three"]),
        ("NONE", []),
        ("None.", []),
        ("Here are two queries:\nbackups\nlogs", ["backups", "logs"]),
        ("I know of no other wording.\nNONE", []),
        (" \n--\n" + "x" * 301, []),
    ],
)
def test_queries_are_read_from_what_a_model_writes(text: str, queries: list[str]) -> None:
    assert queries_in(text) == queries
