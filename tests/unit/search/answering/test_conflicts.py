"""Sources of an answer that contradict each other."""

from __future__ import annotations

import pytest

from otterwiki_semantic.search.answering.conflicts import find_conflicts
from otterwiki_semantic.search.answering.sources import Source


def source(number: int, title: str, text: str, updated: str | None = None) -> Source:
    return Source(number, title.lower(), title, (), text, updated)


def test_both_pages_and_the_newer_one_are_named() -> None:
    found = find_conflicts(
        [
            source(1, "Backups", "Every night counts. Backups are kept for 30 days.", "2024-01-01T00:00:00Z"),
            source(2, "Retention", "Our backups are kept 90 days.", "2025-01-01T00:00:00Z"),
        ]
    )
    assert [each.describe() for each in found] == [
        "'Backups' says \"30 days\", 'Retention' says \"90 days\"; 'Retention' was changed last"
    ]
    assert (found[0].first.source, found[0].second.source, found[0].newer) == (1, 2, 2)
    assert found[0].first.text == "Backups are kept for 30 days."


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The next meeting of the board is on 2024-05-01.", "The next meeting of the board is on 2024-06-01."),
        ("The server needs at least version 3.11 of Python.", "The server needs at least version 3.12 of Python."),
        ("The port of the relay is 8080.", "The port of the relay is 9090."),
        ("The fan starts at 32 °C.", "The fan starts at 45 °C."),
    ],
)
def test_dates_versions_and_numbers_may_differ(one: str, other: str) -> None:
    assert len(find_conflicts([source(1, "One", one), source(2, "Two", other)])) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Backups are kept for 30 days.", "Backups are kept for 30 days."),
        ("Backups are kept for 30 days.", "Logs are kept for 90 days."),
        ("Backups are kept for 30 days.", "Backups are kept for 4 weeks."),
        ("Backups are kept for 30 days.", "Backups are not kept for 90 days."),
        ("Nightly backups are kept for 30 days.", "Monthly backups are kept for 90 days."),
        ("otter has 4 disks in it.", "badger has 2 disks in it."),
        ("Figure 2 shows the growth.", "Figure 3 shows the growth."),
        ("Only supported in 3.3 and later.", "Only supported in 3.4 and later."),
        ("It takes 4 minutes to start.", "It takes 9 minutes to start."),
    ],
)
def test_other_things_may_have_other_figures(one: str, other: str) -> None:
    assert find_conflicts([source(1, "One", one), source(2, "Two", other)]) == []


def test_sentences_of_one_page_and_dated_pages_do_not_conflict() -> None:
    one, other = "Backups are kept for 30 days.", "Backups are kept for 90 days."
    same = Source(2, "one", "One", ("Later",), other)
    assert find_conflicts([source(1, "One", one), same]) == []
    assert find_conflicts([source(1, "Minutes 2024-05-01", one), source(2, "Two", other)]) == []


def test_the_newer_page_is_unknown_without_dates() -> None:
    found = find_conflicts(
        [source(1, "One", "Backups are kept for 30 days."), source(2, "Two", "Backups are kept for 90 days.")]
    )
    assert found[0].newer is None
    assert found[0].describe() == "'One' says \"30 days\", 'Two' says \"90 days\""
