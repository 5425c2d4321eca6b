"""The health of a real wiki: findings of each kind, found by a real index, and dismissed for good."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import DismissalError, FindingNotFoundError
from otterwiki_semantic.core.records import (
    DismissalRequest,
    Finding,
    FindingKind,
    HealthReport,
    HealthRequest,
    PageUrls,
)
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.engines import opened, wait_until_equal
from tests.support.live_wiki import commit, eventually, make_repository

FREEZE = """\
When a cold night is announced, open the valves of the workshop by a quarter, so that water keeps moving in the pipe along the
outer wall. It burst once, in a January when nobody was at home, and the floor had to be laid again. Since then a neighbour
looks in every second day, opens the door of the shed, and reads the thermometer that hangs behind it.

If it shows less than four degrees, the heater below the bench is switched on for the night. Its cable is too short for the
socket at the door, so take the extension from the drawer, unwind all of it, and keep it away from the shavings. The heater has
a switch that falls when it is pushed over; press the red button below it to start it again. In the morning write the meter's
numbers into the book, and switch everything off, because the bench warps in dry air, and so do the boards that are stored
above it. The key of the shed returns to its hook behind the kitchen door, next to the torch.
"""
GARDEN = "Cut the hedge in March, and not when birds breed in it; the twigs go on the compost behind the shed. " * 12
PAGES: dict[str, str | bytes] = {
    "home.md": "# Home\n\nSee [[Heating]], [the cellar](/cellar) and [[The attic|rooms/attic]].\n",
    "heating.md": f"# Heating\n\nIt warms the rooms.\n\n## Before the frost\n\n{FREEZE}",
    "cellar.md": f"# Cellar\n\nIt is dark, and [cold](./heating).\n\n## In winter\n\n{FREEZE.replace('January', 'February')}",
    "garden.md": (
        "# Garden\n\n`[[Only code]]` and [a plan](/garden/plan.pdf), [history](/garden/history), [log](/-/changelog),"
        " [a folder](/rooms), [secret](/secret), [elsewhere](https://example.org/x).\n\n"
        f"{GARDEN}\n## Beds\n\n{GARDEN.replace('hedge', 'bed')}See [[Rooms/Attic]].\n"
    ),
    "garden/plan.pdf": b"%PDF",
    "rooms/bath.md": "# Bath\n\nTiles.\n",
    "secret.md": "---\nsearch: false\n---\n# Secret\n\nIt exists.\n",
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(make_repository(tmp_path / "repository", PAGES), tmp_path / "index", sync_interval=3600, map=False)


@pytest.fixture
def index(settings: Settings) -> Iterator[IndexEngine]:
    engine = opened(settings)
    yield engine
    engine.close()


def report(index: IndexEngine, kind: FindingKind | None = None, *, dismissed: bool = False) -> HealthReport:
    """Wait for a report on the index as it is now."""
    request = HealthRequest(kind, dismissed=dismissed, shows_queries=True)

    def current() -> HealthReport | None:
        found = index.health(request, PageUrls("/wiki/"))
        return found if found.is_current else None

    found = eventually(current)
    assert found is not None
    return found


def findings(index: IndexEngine, kind: FindingKind) -> list[Finding]:
    found = report(index, kind)
    assert [count.kind for count in found.counts] == [kind]
    assert found.open == len(found.findings) == found.counts[0].open
    return list(found.findings)


def test_nearly_equal_passages_are_found_with_their_sections(index: IndexEngine) -> None:
    (finding,) = findings(index, FindingKind.DUPLICATE)
    assert [(page.path, page.section, page.url) for page in finding.pages] == [
        ("cellar", "In winter", "/wiki/cellar#in-winter"),
        ("heating", "Before the frost", "/wiki/heating#before-the-frost"),
    ]
    assert (finding.passages, finding.total_pages) == (1, 2)
    assert finding.pages[0].excerpt.startswith("If it shows less than four degrees, the heater")


def test_passages_that_only_share_some_sentences_are_no_duplicates(index: IndexEngine, settings: Settings) -> None:
    other = FREEZE.partition("\n\n")[0] + "\nEmpty it, lock the door, and tell everybody that it is over for this year.\n" * 8
    commit(settings.repository, {"cellar.md": f"# Cellar\n\n## In winter\n\n{other}"})
    index.notify()
    wait_until_equal(index)
    assert findings(index, FindingKind.DUPLICATE) == []


def test_orphans_are_all_but_those_that_something_links_to(index: IndexEngine) -> None:
    assert [finding.pages[0].path for finding in findings(index, FindingKind.ORPHAN)] == ["garden", "rooms/bath"]
    in_menu = index.health(HealthRequest(FindingKind.ORPHAN, linked=("/Garden", "home"))).findings
    assert [finding.pages[0].path for finding in in_menu] == ["rooms/bath"]


def test_links_to_nothing_name_the_sections_that_have_them(index: IndexEngine) -> None:
    (finding,) = findings(index, FindingKind.BROKEN_LINK)
    assert finding.missing == "Rooms/Attic"
    assert [(page.path, page.section) for page in finding.pages] == [("garden", "Beds"), ("home", "")]


def test_a_page_that_is_created_ends_a_finding(index: IndexEngine, settings: Settings) -> None:
    before = report(index)
    commit(settings.repository, {"rooms/attic.md": "# Attic\n\nIt is warm below the roof.\n"})
    index.notify()
    wait_until_equal(index)
    after = report(index, FindingKind.BROKEN_LINK)
    assert (after.findings, after.open) == ((), 0)
    assert (after.commit != before.commit, after.commit) == (True, after.index.commit)


def test_a_dismissed_finding_stays_so_after_a_start_and_a_rebuild(settings: Settings) -> None:
    engine = opened(settings)
    garden, bath = findings(engine, FindingKind.ORPHAN)
    assert engine.dismiss(DismissalRequest([garden.id])).is_dismissed
    assert findings(engine, FindingKind.ORPHAN) == [bath]
    engine.close()
    engine = opened(replace(settings, chunks="fixed"))  # an index of another profile
    try:
        assert findings(engine, FindingKind.ORPHAN) == [bath]
        listed = report(engine, FindingKind.ORPHAN, dismissed=True)
        assert [(each.id, each.is_dismissed) for each in listed.findings] == [(garden.id, True), (bath.id, False)]
        assert (listed.open, listed.counts[0].dismissed) == (1, 1)
        assert not engine.dismiss(DismissalRequest([garden.id], restore=True)).is_dismissed
        assert findings(engine, FindingKind.ORPHAN) == [garden, bath]
    finally:
        engine.close()


def test_what_is_no_finding_cannot_be_dismissed(index: IndexEngine) -> None:
    report(index)
    with pytest.raises(FindingNotFoundError, match="no finding '0123456789abcdef'"):
        index.dismiss(DismissalRequest(["0123456789abcdef"]))


@pytest.mark.parametrize("content", ["", "{", '{"dismissed": [1]}', '"x"', "\x00" * 50])
def test_damaged_dismissals_fail_nothing(settings: Settings, content: str) -> None:
    settings.data_dir.mkdir()
    (settings.data_dir / "health.json").write_text(content)
    engine = opened(settings)
    try:
        garden, bath = findings(engine, FindingKind.ORPHAN)
        engine.dismiss(DismissalRequest([garden.id]))
        assert findings(engine, FindingKind.ORPHAN) == [bath]
        assert list(json.loads((settings.data_dir / "health.json").read_text())["dismissed"]) == [garden.id]
    finally:
        engine.close()


def test_a_dismissal_that_cannot_be_stored_is_an_error(index: IndexEngine, settings: Settings) -> None:
    garden, _ = findings(index, FindingKind.ORPHAN)
    (settings.data_dir / "health.new").mkdir()
    with pytest.raises(DismissalError, match="cannot be stored"):
        index.dismiss(DismissalRequest([garden.id]))
    assert len(findings(index, FindingKind.ORPHAN)) == 2


def test_a_wiki_without_pages_has_no_findings(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", {})
    commit(repository, {})
    engine = opened(Settings(repository, tmp_path / "index", sync_interval=3600, map=False))
    try:
        assert report(engine).findings == ()
    finally:
        engine.close()
