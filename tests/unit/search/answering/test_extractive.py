"""Answers made of the sources' own sentences."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from otterwiki_semantic.search.answering.extractive import extract_statements
from otterwiki_semantic.search.answering.source import Source

_STEPS = """\
You deleted a folder? Nothing easier:

1. List the nights.
2. Fetch the folder.

```
restic restore latest
```
"""


def source(text: str, number: int = 1) -> Source:
    return Source(number, f"page{number}", "Backups", (), text)


def by_words(*wanted: str) -> object:
    def score(texts: Sequence[str]) -> list[float]:
        return [sum(word in text for word in wanted) / len(wanted) for text in texts]

    return score


def extracted(sources: Sequence[Source], *wanted: str) -> list[tuple[str, str, tuple[int, ...], int]]:
    found = extract_statements(sources, by_words(*wanted))  # type: ignore[arg-type]
    return [(each.text, each.kind.value, each.cited, each.block) for each in found]


def test_the_best_sentence_names_its_source() -> None:
    sources = [source("The office has chairs. They are blue."), source("Backups are kept 14 nights. Ana tests them.", 2)]
    assert extracted(sources, "kept") == [("Backups are kept 14 nights.", "sentence", (2,), 0)]


def test_a_list_comes_with_what_announces_it() -> None:
    assert extracted([source(_STEPS)], "deleted", "Fetch") == [
        ("You deleted a folder?", "sentence", (1,), 0),
        ("Nothing easier:", "sentence", (1,), 0),
        ("List the nights.", "item", (1,), 1),
        ("Fetch the folder.", "item", (1,), 1),
    ]


def test_rows_of_a_table_are_found_one_by_one() -> None:
    table = "| service | runs on |\n|---|---|\n| photo library | otter |\n| music player | badger |\n"
    assert extracted([source(table)], "photo") == [("service: photo library; runs on: otter", "item", (1,), 0)]


def test_a_sentence_that_several_sources_have_comes_once() -> None:
    sources = [source("Backups are kept 14 nights.", number) for number in (1, 2)]
    assert extracted(sources, "kept") == [("Backups are kept 14 nights.", "sentence", (1,), 0)]


def test_nothing_is_made_of_nothing() -> None:
    assert extracted([], "kept") == []
    assert extracted([source("```\ncode\n```")], "kept") == []


@pytest.mark.parametrize("heading", ["Myths", "If the disk fails", "Only for guests", "Do not do this"])
def test_a_heading_that_restricts_stands_before_what_is_below_it(heading: str) -> None:
    above = Source(1, "page", "Rust", ("Rust", heading), "Salt cures rust within a week.")
    assert extracted([above], "Salt") == [(f"{heading}: Salt cures rust within a week.", "sentence", (1,), 0)]


@pytest.mark.parametrize("heading", ["Rust", "When to use salt", "Why rust on tools is not a problem"])
def test_other_headings_do_not(heading: str) -> None:
    above = Source(1, "page", "Rust", ("Rust", heading), "Salt cures rust within a week.")
    assert extracted([above], "Salt")[0][0] == "Salt cures rust within a week."
