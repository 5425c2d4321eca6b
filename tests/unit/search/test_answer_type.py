"""What a question asks for, and what texts have, in three languages."""

from __future__ import annotations

import pytest

from otterwiki_semantic.search.best_unit import AnswerType, answer_type, has_answer, is_question

ALL = ("en", "de", "fr")
NUMBER, TIME, PERSON, PLACE = AnswerType.NUMBER, AnswerType.TIME, AnswerType.PERSON, AnswerType.PLACE
COMMAND, REASON, YES_NO, STEPS = AnswerType.COMMAND, AnswerType.REASON, AnswerType.YES_NO, AnswerType.STEPS


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How long are backups kept?", NUMBER),
        ("which ports are open", NUMBER),
        ("when is the office open", TIME),
        ("Who approves leave?", PERSON),
        ("where do logs go", PLACE),
        ("command to restart the server", COMMAND),
        ("why is my build slow", REASON),
        ("Can I take my laptop abroad?", YES_NO),
        ("how do I reset a password", STEPS),
        ("backup retention policy", None),
        ("The whole day off", None),
        ("Wie lange werden Sicherungen aufbewahrt?", NUMBER),
        ("Wann ist das Büro offen?", TIME),
        ("Wer genehmigt Urlaub?", PERSON),
        ("Wie kann ich mein Passwort ändern", STEPS),
        ("Combien de jours de congé ?", NUMBER),
        ("Qui valide les congés ?", PERSON),
        ("Comment changer de mot de passe", STEPS),
    ],
)
def test_the_type_of_answer_that_a_question_asks_for(question: str, expected: AnswerType | None) -> None:
    assert answer_type(question, ALL) is expected


@pytest.mark.parametrize(
    "text",
    [
        *("backups kept?", "バックアップはいつ？", "how long", "Can I smoke", "password of the guest network"),
        *("wie lange", "Darf ich rauchen", "où est", "peut-on fumer"),
    ],
)
def test_questions(text: str) -> None:
    assert is_question(text, ALL)


@pytest.mark.parametrize("text", ["", "how", "may", "whatsapp", "password minimum length", "what-if analysis", "the who"])
def test_other_queries(text: str) -> None:
    assert not is_question(text, ALL)


@pytest.mark.parametrize(
    ("kind", "has", "has_not"),
    [
        (NUMBER, "nightly: 14", "They are kept on the shelf."),
        (NUMBER, "Nach drei Tagen.", "Auf dem Regal."),
        (TIME, "It opens at 09:30.", "It opens often."),
        (TIME, "Jeudi matin.", "Souvent."),
        (PERSON, "Ask Anna Meier.", "Ask again."),
        (PERSON, "Die Leitung entscheidet.", "Das wird entschieden."),
        (PLACE, "In `/var/log`.", "In some cupboard."),
        (COMMAND, "Run `make run`.", "Run the tests."),
        (REASON, "Because the disk is full.", "The disk is full."),
        (YES_NO, "Das darf niemand.", "Das macht jemand."),
        (STEPS, "1. Open the settings.", "Settings are open."),
    ],
)
def test_what_a_text_has(kind: AnswerType, has: str, has_not: str) -> None:
    assert has_answer(kind, has, ALL)
    assert not has_answer(kind, has_not, ALL)


def test_a_language_without_a_table_has_no_types_but_signs() -> None:
    assert answer_type("How long are backups kept?", ("sv",)) is None
    assert is_question("Hur länge?", ("sv",))
    assert not is_question("how long", ("sv",))
    assert has_answer(NUMBER, "14 dagar", ("sv",))
    assert not has_answer(NUMBER, "two days", ("sv",))
