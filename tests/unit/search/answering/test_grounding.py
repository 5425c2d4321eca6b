"""Which statements their sources support."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otterwiki_semantic.search.answering.grounding import NO_SOURCE, says_nothing_found, unsupported_reason
from otterwiki_semantic.search.answering.sources import Source
from otterwiki_semantic.search.answering.statements import Statement, StatementKind

BACKUPS = """
Backups are kept for 30 days and logs for 90. The photos are stored on otter, not on mole. If a disk fails, call Ada before
noon.

alice reports to bob. The relay is signed by mole. Print ABS only with the window open. Restart the server after an update.

| kind | kept | where |
|---|---|---|
| nightly | 14 | otter |
| weekly | 8 | mole |

Never do this:

- reboot the router

```bash
restic -r /backup/local snapshots
```
"""


def reason(
    text: str, page: str = BACKUPS, language: str = "en", kind: StatementKind = StatementKind.SENTENCE, title: str = "Backups"
) -> str | None:
    return unsupported_reason(Statement(text, kind, 0, (1,)), [Source(1, "page", title, (), page)], language)


@pytest.mark.parametrize(
    "text",
    [
        "Backups are kept for 30 days.",
        "According to the wiki, backups are kept for 30 days.",
        "The photos are stored on otter.",
        "If a disk fails, call Ada before noon.",
        "Call Ada before noon if a disk fails.",
        "alice reports to bob.",
        "mole signed the relay.",
        "Nightly backups are kept 14.",
        "Backups are kept for 30 days, and alice reports to bob.",
        "The command restic -r /backup/local snapshots.",
        "Never reboot the router.",
    ],
)
def test_what_a_source_says_is_supported(text: str) -> None:
    assert reason(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Logs are kept for 30 days.",
        "Backups are kept for 90 days.",
        "Backups are kept for 30 weeks.",
        "Backups are kept for 31 days.",
        "Backups are not kept for 30 days.",
        "The photos are stored on mole.",
        "The photos are not stored on otter.",
        "Call Ada before noon.",
        "If a disk fails, call Ada after noon.",
        "bob reports to alice.",
        "The relay signed mole.",
        "Print ABS with the window open.",
        "Print ABS only without the window open.",
        "Restart the server before an update.",
        "Weekly backups are kept 14.",
        "Reboot the router.",
        "Backups are deleted after 30 days.",
        "See https://evil.example for backups.",
        "The photos call Ada.",
        "Yes, it does.",
    ],
)
def test_what_a_source_does_not_say_is_not_supported(text: str) -> None:
    assert reason(text) is not None


def test_reasons_say_what_is_missing() -> None:
    assert reason("Backups are kept for 45 days.") == '"45 days" is not in its source'
    assert reason("Print ABS with the window open.") == 'its source restricts this: "only"'
    assert reason("bob reports to alice.") == "its source has these words, but does not say this"


def test_only_the_sources_that_are_named_count() -> None:
    sources = [Source(1, "a", "A", (), "Cats sleep long."), Source(2, "b", "B", (), "Dogs bark loudly.")]
    said = "Dogs bark loudly."
    assert unsupported_reason(Statement(said, StatementKind.SENTENCE, 0, ()), sources) == NO_SOURCE
    assert unsupported_reason(Statement(said, StatementKind.SENTENCE, 0, (1,)), sources) is not None
    assert unsupported_reason(Statement(said, StatementKind.SENTENCE, 0, (1, 2)), sources) is None


def test_every_line_of_code_has_to_stand_in_a_source() -> None:
    assert reason("restic -r /backup/local snapshots", kind=StatementKind.CODE) is None
    assert reason("restic -r /backup/local snapshots\nrm -rf /", kind=StatementKind.CODE) == '"rm -rf /" is not in its source'


@pytest.mark.parametrize(
    "text", ["The sources do not say when backups run.", "The passages contain no price.", "I could not find this."]
)
def test_that_nothing_was_found_needs_no_source(text: str) -> None:
    assert says_nothing_found(text)


@pytest.mark.parametrize(
    "text", ["The sources do not say it, but it is 5 days.", "The wiki does not run.", "The server does not say hello."]
)
def test_nothing_else_is_taken_for_that(text: str) -> None:
    assert not says_nothing_found(text)


def test_a_statement_unlike_its_evidence_is_not_supported() -> None:
    def unlike(_text: str, others: Sequence[str]) -> Sequence[float]:
        return [0.0] * len(others)

    statement = Statement("Backups are kept for 30 days.", StatementKind.SENTENCE, 0, (1,))
    source = Source(1, "page", "Backups", (), BACKUPS)
    assert unsupported_reason(statement, [source], similarity=unlike) == "its source is about something else"
    assert unsupported_reason(statement, [source], similarity=lambda _, others: [0.9] * len(others)) is None


@pytest.mark.parametrize(
    ("language", "page", "supported", "unsupported"),
    [
        (
            "de",
            "Die Sicherungen werden 30 Tage aufbewahrt. Der Drucker darf nicht bewegt werden.",
            ["Die Sicherungen werden 30 Tage aufbewahrt.", "Der Drucker darf nicht bewegt werden."],
            [
                "Die Sicherungen werden 40 Tage aufbewahrt.",
                "Der Drucker darf bewegt werden.",
                "Die Sicherungen werden nicht aufbewahrt.",
            ],
        ),
        (
            "fr",
            "Les sauvegardes sont gardées 30 jours. Le routeur ne doit pas être éteint.",
            ["Les sauvegardes sont gardées 30 jours.", "Le routeur ne doit pas être éteint."],
            ["Les sauvegardes sont gardées 31 jours.", "Le routeur doit être éteint."],
        ),
        (
            "en",
            "バックアップは30日間保存されます。写真は保存されません。",
            ["バックアップは30日間保存されます。", "写真は保存されません。"],
            ["バックアップは90日間保存されます。"],
        ),
    ],
)
def test_other_languages_are_checked_too(language: str, page: str, supported: list[str], unsupported: list[str]) -> None:
    for text in supported:
        assert reason(text, page, language, title="") is None, text
    for text in unsupported:
        assert reason(text, page, language, title="") is not None, text


@given(st.text(max_size=80), st.text(max_size=120), st.sampled_from(["en", "de", "fr", "el"]))
def test_no_text_raises_an_error(text: str, page: str, language: str) -> None:
    reason(text, page, language)


@given(
    st.sampled_from(["Backups are kept for {} days.", "Backups are kept {} days.", "Nightly backups are kept {}."]),
    st.integers(0, 10_000),
)
@example("Nightly backups are kept {}.", 30)  # as other backups are
def test_no_other_number_is_supported(pattern: str, number: int) -> None:
    if reason(pattern.format(number)) is None:
        assert number == (14 if "Nightly" in pattern else 30)


def test_a_hostile_statement_takes_no_time_to_speak_of() -> None:
    page = "Alpha beta gamma. " * 200
    start = time.process_time()
    for text in (
        "alpha beta gamma; " * 300,
        "alpha beta, and " * 40 + "delta.",
        "a " * 3_000,
        "((((" * 900,
        "[1](" * 900,
        "`" * 3_999,
    ):
        reason(text, page)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("language", "page", "text"),
    [
        ("en", "A restore takes about 3 hours.", "A restore takes approximately 3 hours."),
        ("en", "A restore takes around three hours.", "A restore takes about 3 hours."),
        ("en", "The pump runs in the cellar and the fan runs in the attic.", "The pump runs in the cellar."),
        ("en", "Important settings are stopped installations.", "An important setting is a stopped installation."),
        ("de", "Die Sicherung dauert etwa 3 Stunden.", "Die Sicherung dauert ca. 3 Stunden."),
        ("de", "Ada prüft die Sicherungen der Häuser.", "Ada prüft die Sicherung des Hauses."),
        ("de", "Starten Sie den Rechner, und warten Sie.", "Starten Sie den Rechner."),
        ("fr", "Ada garde les sauvegardes automatiques.", "Ada garde la sauvegarde automatique."),
    ],
)
def test_another_form_of_the_same_words_is_supported(language: str, page: str, text: str) -> None:
    assert reason(text, page, language, title="Page") is None


@pytest.mark.parametrize("text", ["Never do this:", "You must not do the following:"])
def test_an_announcement_that_denies_something_needs_a_source(text: str) -> None:
    assert unsupported_reason(Statement(text, StatementKind.SENTENCE, 0, ()), [], "en") == "names no source"
    assert unsupported_reason(Statement("Do this:", StatementKind.SENTENCE, 0, ()), [], "en") is None


def test_a_unit_says_nothing_of_what_another_one_denies() -> None:
    page = "Backups are copied. Logs are not copied. ## Myths\n\nTapes are copied."
    assert reason("Backups are copied.", page) is None
    assert reason("Logs are copied.", page) is not None
    assert reason("Backups are not copied.", page) == 'not in its source: "not"'


def test_a_comment_in_code_is_no_heading() -> None:
    page = "Run this:\n\n```\n# Myths\nrestic check\n```\n\nTapes are copied."
    assert reason("Tapes are copied.", page) is None
    assert reason("Tapes are not copied.", page) is not None
