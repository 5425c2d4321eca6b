"""Where sentences end."""

from __future__ import annotations

import pytest

from otterwiki_semantic.content.analysis import sentence_ranges


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_ranges(text)]


@pytest.mark.parametrize(
    "sentence",
    [
        *(
            "Ask Dr. Miller.",
            "See No. 5 of it.",
            "Use a tool, e.g. Git.",
            "That is, i.e. Git, works.",
            "Nginx vs. Apache is old.",
        ),
        *(
            "Written by J. Smith in May.",
            "Logs, etc. are kept.",
            "As Smith et al. Show.",
            "1. Install it.",
            "- 12. Install it.",
        ),
        *(
            "Der Server bzw. Dienst.",
            "Ein Dienst, z. B. Git.",
            "Ein Dienst, z.B. Git.",
            "Siehe Nr. 7 und Abb. 3.",
            "Es ist ähnl. übrig.",
        ),
        *("Un outil, p. ex. Git.", "Demandez à Mme. Curie.", "Una herramienta, p. ej. Git.", "It is in the U.S. Army."),
    ],
)
def test_no_sentence_ends_after_an_abbreviation(sentence: str) -> None:
    assert split(f"{sentence} Then it ends.") == [sentence, "Then it ends."]


@pytest.mark.parametrize(
    "text",
    [
        "The answer is no. Then ask.",
        "Logs, files, etc. Then more.",
        "It takes 5 ms. Then more.",
        "Use 3. Then more.",
        "It is 5 m. Then more.",
        "Is it? (Yes.) No!",
    ],
)
def test_a_sentence_ends_after_what_can_also_end_one(text: str) -> None:
    assert len(split(text)) >= 2
