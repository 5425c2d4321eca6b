from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.search.answering.source import Source
from otterwiki_semantic.search.answering.statements import Statement, StatementKind
from otterwiki_semantic.search.answering.support import NO_SOURCE, says_nothing_found, unsupported_reason

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
        "alice reports from bob.",
        "The relay signed mole.",
        "Print ABS with the window open.",
        "Print ABS only without the window open.",
        "Restart the server before an update.",
        "Weekly backups are kept 14.",
        "Nightly backups are kept 14 on mole.",
        "Reboot the router.",
        "Ada reports to bob.",
        "Backups are deleted after 30 days.",
        "See https://evil.example for backups.",
        "The photos call Ada.",
        "Yes, it does.",
    ],
)
def test_what_a_source_does_not_say_is_not_supported(text: str) -> None:
    assert reason(text) is not None


def test_reasons_say_what_is_missing() -> None:
    assert reason("Backups are kept for 45 days.") == '"45" does not stand in source 1'
    assert reason("Tapes are kept for 30 days.") == 'not in source 1: "Tapes"'
    assert reason("Print ABS with the window open.") == 'source 1 restricts this: "only"'
    assert reason("bob reports to alice.") == "source 1 has these words, but does not say this"


def test_only_the_sources_that_are_named_count() -> None:
    sources = [Source(1, "a", "A", (), "Cats sleep long."), Source(2, "b", "B", (), "Dogs bark loudly.")]
    said = "Dogs bark loudly."
    assert unsupported_reason(Statement(said, StatementKind.SENTENCE, 0, ()), sources) == NO_SOURCE
    assert unsupported_reason(Statement(said, StatementKind.SENTENCE, 0, (1,)), sources) is not None
    assert unsupported_reason(Statement(said, StatementKind.SENTENCE, 0, (1, 2)), sources) is None


def test_every_line_of_code_has_to_stand_in_a_source() -> None:
    assert reason("restic -r /backup/local snapshots", kind=StatementKind.CODE) is None
    assert (
        reason("restic -r /backup/local snapshots\nrm -rf /", kind=StatementKind.CODE)
        == '"rm -rf /" does not stand in source 1'
    )


@pytest.mark.parametrize(
    "text", ["The sources do not say when backups run.", "The passages contain no price.", "I could not find this."]
)
def test_that_nothing_was_found_needs_no_source(text: str) -> None:
    assert says_nothing_found(text)
    assert unsupported_reason(Statement(text, StatementKind.SENTENCE, 0, ()), []) is None


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
    assert unsupported_reason(statement, [source], similarity=unlike) == "source 1 is about something else"
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
            ["バックアップは90日間保存されます。", "写真は保存されます。", "バックアップは30日間保存されません。"],
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
        assert reason(text, page) is not None or text.startswith(("((", "`", "[1]"))
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("language", "page", "text", "is_supported"),
    [
        ("en", "The drive must not be opened while the light blinks.", "The drive must not be opened.", False),
        ("en", "The drive must not be opened while the light blinks.", "While it blinks, the drive must be opened.", False),
        ("en", "You may enter the cellar during the day.", "You may enter the cellar.", False),
        ("en", "The drive must not be opened while the light blinks.", "The drive must not be opened while it blinks.", False),
        (
            "en",
            "The drive must not be opened while the light blinks.",
            "The drive must not be opened while the light blinks.",
            True,
        ),
        ("en", "The pump runs in the cellar while the fan runs in the attic.", "The pump runs in the cellar.", True),
        ("de", "Das Lager darf während der Inventur nicht betreten werden.", "Das Lager darf nicht betreten werden.", False),
        ("en", "A restore takes about 3 hours.", "A restore takes 3 hours.", False),
        ("en", "A restore takes about 3 hours.", "A restore takes approximately 3 hours.", True),
        ("en", "A restore takes around three hours.", "A restore takes about 3 hours.", True),
        ("en", "A page about backups was written by Ada.", "A page about backups was written by Ada.", True),
        ("de", "Die Sicherung dauert etwa 3 Stunden.", "Die Sicherung dauert 3 Stunden.", False),
        ("de", "Die Sicherung dauert etwa 3 Stunden.", "Die Sicherung dauert ca. 3 Stunden.", True),
        ("fr", "La copie dure environ 3 heures.", "La copie dure 3 heures.", False),
    ],
)
def test_times_and_estimates_stay_as_they_are(language: str, page: str, text: str, *, is_supported: bool) -> None:
    source = Source(1, "page", "Page", (), page)
    reason = unsupported_reason(Statement(text, StatementKind.SENTENCE, 0, (1,)), [source], language)
    assert (reason is None) == is_supported, reason


@pytest.mark.parametrize(
    ("language", "page", "text"),
    [
        ("en", "Bob refuses to sign the release.", "Bob signs the release."),
        ("en", "The server fails to start.", "The server starts."),
        ("en", "Bob forgot to close the valve.", "Bob closed the valve."),
        ("en", "The script stops deleting files.", "The script deletes files."),
        ("en", "Ada doubts that the door is open.", "The door is open."),
        ("en", "It is a myth that salt cures rust.", "Salt cures rust."),
        ("en", "Ada asked Bob to restart mole.", "Ada restarts mole."),
        ("en", "Ada voted against the plan.", "Ada voted for the plan."),
        ("en", "Store the vaccine below 10 °C.", "Store the vaccine at 10 °C."),
        ("en", "The key is under the mat.", "The key is on the mat."),
        ("en", "The freezer runs at -18 °C.", "The freezer runs at 18 °C."),
        ("en", "It must be < 5 °C.", "It must be 5 °C."),
        ("en", "The laser has 5 mW.", "The laser has 5 MW."),
        ("en", "The area is 5 m².", "The area is 5 m."),
        ("en", "The link has 100 Mb/s.", "The link has 100 MB/s."),
        ("en", "The key has 16GB.", "The key has 16Gb."),
        ("en", "Ask the author of the page.", "Ask the authority of the page."),
        ("en", "Copy the product to the server.", "Copy the production to the server."),
        ("en", "The important pages are saved at night.", "The imported pages are saved at night."),
        ("de", "Die Sicherung läuft nachts.", "Die Sicherheit läuft nachts."),
        ("en", "Ada used to run the lab.", "Ada runs the lab."),
        ("en", "Deleting pages is allowed for admins.", "Deleting pages is allowed."),
        ("en", "The server lacks a firewall.", "The server has a firewall."),
        ("en", "Every second member has a key.", "Every member has a key."),
        ("en", "The next to last step is the reboot.", "The last step is the reboot."),
        ("en", "The pump was to be replaced.", "The pump was replaced."),
        ("en", "The backup is stored next to the server.", "The backup is stored on the server."),
        ("en", "The backup is stored near otter.", "The backup is stored on otter."),
        ("en", "According to Bob, the relay is broken.", "The relay is broken."),
        ("en", "Mailboxes have 5 GB per user.", "Mailboxes have 5 GB."),
        ("de", "Die Pumpe soll ersetzt werden.", "Die Pumpe wird ersetzt."),
        ("de", "Dem Lehrling hilft der Lehrer.", "Der Lehrling hilft dem Lehrer."),
        ("de", "Der Strom fällt aus.", "Der Strom fällt."),
        ("de", "Die Brücke trägt knapp 3 t.", "Die Brücke trägt 3 t."),
        ("en", "Were the disk full, mole would stop.", "Mole would stop."),
        ("de", "Den Hund beißt der Mann.", "Der Hund beißt den Mann."),
        ("de", "Hätte Ada den Schlüssel, könnte sie öffnen.", "Ada könnte öffnen."),
        ("de", "Fällt eine Platte aus, startet der Rechner neu.", "Eine Platte fällt aus."),
        ("de", "Wird der Schlüssel verloren, wird das Schloss getauscht.", "Das Schloss wird getauscht."),
        ("en", "Avoid:\n\n- telnet for the old switches\n- ftp", "Use telnet for the old switches."),
        ("en", "It is forbidden to:\n\n- smoke in the kitchen\n- run", "Smoke in the kitchen."),
        ("en", "## What not to do\n\nReboot the router first.", "Reboot the router first."),
        ("en", "## Myths\n\nSalt cures rust.", "Salt cures rust."),
        ("en", "## If the disk fails\n\nReboot the router first.", "Reboot the router first."),
        ("en", "## Only for guests\n\nThe password is otter.", "The password is otter."),
        ("en", "Alice or Bob signs the release.", "Alice and Bob sign the release."),
        ("en", "Ada's brother Bob signs releases.", "Ada signs releases."),
        ("en", "mole is far from safe.", "mole is safe."),
        ("en", "mole is unlikely to fail.", "mole fails."),
        ("en", "Users can delete pages.", "Users should delete pages."),
        ("en", "All users other than guests may edit.", "All users may edit."),
        ("en", "Server A runs Linux and server B runs Windows.", "Server A runs Windows."),
        ("en", "Vitamin A is stable. Vitamin K is not stable.", "Vitamin K is stable."),
        ("en", "Pump A weighs 5 kg and pump B weighs 9 kg.", "Pump A weighs 9 kg."),
        ("de", "Schalten Sie die Pumpe aus.", "Schalten Sie die Pumpe ein."),
        ("de", "Drehen Sie das Ventil zu.", "Drehen Sie das Ventil auf."),
        ("de", "Nutze SSH statt Telnet.", "Nutze Telnet."),
        ("de", "Ada stimmte gegen den Plan.", "Ada stimmte für den Plan."),
        ("de", "Ada fordert das Projekt.", "Ada fördert das Projekt."),
        ("fr", "Le serveur n'est plus sauvegardé.", "Le serveur est sauvegardé."),
        ("fr", "La porte est à peine ouverte.", "La porte est ouverte."),
        ("fr", "Ni Ada ni Bob ne signent.", "Ada et Bob signent."),
        ("fr", "Ada a voté contre le plan.", "Ada a voté pour le plan."),
        ("en", "Run the job after the audit, or ask Ada.", "Run the job."),
        ("en", "The pump needs 5 to 10 minutes.", "The pump needs 5 minutes."),
        ("en", "Nothing proves that salt cures rust.", "Salt cures rust."),
        ("en", "Ada promised to restart mole.", "Ada restarts mole."),
        ("de", "Bei minus 5 Grad friert die Pumpe.", "Bei 5 Grad friert die Pumpe."),
        ("fr", "Gardez la copie jusqu'à 30 jours.", "Gardez la copie 30 jours."),
    ],
)
def test_the_opposite_of_a_source_in_its_own_words_is_not_supported(language: str, page: str, text: str) -> None:
    source = Source(1, "page", "Page", (), page)
    assert unsupported_reason(Statement(text, StatementKind.SENTENCE, 0, (1,)), [source], language) is not None
    if "#" not in page and ":\n" not in page:
        assert unsupported_reason(Statement(page, StatementKind.SENTENCE, 0, (1,)), [source], language) is None


@pytest.mark.parametrize(
    ("language", "page", "text"),
    [
        ("en", "The authorities of the lab sign.", "The authority of the lab signs."),
        ("en", "Important settings are stopped installations.", "An important setting is a stopped installation."),
        ("de", "Ada prüft die Sicherungen der Häuser.", "Ada prüft die Sicherung des Hauses."),
        ("de", "Ada kennt den Mann, der den Hund im Garten ruft.", "Ada kennt den Mann, der den Hund ruft."),
        ("de", "Den Strom bezahlt der Verein im Mai.", "Den Strom bezahlt der Verein."),
        ("de", "Mit Ada startet der Rechner, und das dauert.", "Mit Ada startet der Rechner."),
        ("de", "Starten Sie den Rechner, und warten Sie.", "Starten Sie den Rechner."),
        ("fr", "Ada garde les sauvegardes automatiques.", "Ada garde la sauvegarde automatique."),
    ],
)
def test_another_form_of_the_same_words_is_supported(language: str, page: str, text: str) -> None:
    source = Source(1, "page", "Page", (), page)
    assert unsupported_reason(Statement(text, StatementKind.SENTENCE, 0, (1,)), [source], language) is None


@pytest.mark.parametrize("text", ["Never do this:", "You must not do the following:"])
def test_an_announcement_that_denies_something_needs_a_source(text: str) -> None:
    assert unsupported_reason(Statement(text, StatementKind.SENTENCE, 0, ()), [], "en") == "names no source"
    assert unsupported_reason(Statement("Do this:", StatementKind.SENTENCE, 0, ()), [], "en") is None
