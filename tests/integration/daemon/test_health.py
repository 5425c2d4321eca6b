"""The health of a real wiki: findings of each kind, found by a real index, and dismissed for good."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
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
    SearchOptions,
)
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.health.reporter import Dismissals
from otterwiki_semantic.daemon.health.survey import finding_id
from tests.support.engines import follow, opened
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
    return settings_in(tmp_path)


def settings_in(place: Path) -> Settings:
    return Settings(make_repository(place / "repository", PAGES), place / "index", sync_interval=3600, pages=())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexEngine]:
    """An index that is only asked."""
    engine = opened(settings_in(tmp_path_factory.mktemp("shared")))
    yield engine
    engine.close()


@pytest.fixture
def index(settings: Settings) -> Iterator[IndexEngine]:
    engine = opened(settings)
    yield engine
    engine.close()


def report(index: IndexEngine, kind: FindingKind | None = None, *, dismissed: bool = False) -> HealthReport:
    """Wait for a report on the index as it is now."""
    request = HealthRequest(kind, dismissed=dismissed, shows_queries=True, linked=("Home", "old/rooms/attic/index"))

    def current() -> HealthReport | None:
        found = index.health(request, PageUrls("/wiki/"))
        return found if found.is_current else None

    return eventually(current)


def findings(index: IndexEngine, kind: FindingKind) -> list[Finding]:
    found = report(index, kind)
    assert [count.kind for count in found.counts] == [kind]
    assert found.open == len(found.findings) == found.counts[0].open
    return list(found.findings)


def test_the_most_important_findings_come_first(shared: IndexEngine) -> None:
    found, order = report(shared), list(FindingKind)
    assert [count.kind for count in found.counts] == order
    kinds = [each.kind for each in found.findings]
    assert kinds == sorted(kinds, key=order.index)
    assert len(set(kinds)) > 2


def test_nearly_equal_passages_are_found_with_their_sections(shared: IndexEngine) -> None:
    (finding,) = findings(shared, FindingKind.DUPLICATE)
    assert [(page.path, page.section, page.url) for page in finding.pages] == [
        ("cellar", "In winter", "/wiki/cellar#in-winter"),
        ("heating", "Before the frost", "/wiki/heating#before-the-frost"),
    ]
    assert (finding.passages, finding.total_pages) == (1, 2)
    assert finding.pages[0].excerpt.startswith("If it shows less than four degrees, the heater")


def test_an_attached_file_can_repeat_a_page(index: IndexEngine, settings: Settings) -> None:
    follow(index, settings, {"rooms/bath/Frost notes.txt": FREEZE})
    places = [page for finding in findings(index, FindingKind.DUPLICATE) for page in finding.pages]
    (kind, url), *_ = {(page.kind, page.url) for page in places if page.path == "rooms/bath/Frost notes.txt"}
    assert (kind, url) == ("text", "/wiki/rooms/bath/Frost%20notes.txt")


def test_passages_that_only_share_some_sentences_are_no_duplicates(index: IndexEngine, settings: Settings) -> None:
    other = FREEZE.partition("\n\n")[0] + "\nEmpty it, lock the door, and tell everybody that it is over for this year.\n" * 8
    follow(index, settings, {"cellar.md": f"# Cellar\n\n## In winter\n\n{other}"})
    assert findings(index, FindingKind.DUPLICATE) == []


def test_orphans_are_all_but_those_that_something_links_to(shared: IndexEngine) -> None:
    assert [finding.pages[0].path for finding in findings(shared, FindingKind.ORPHAN)] == ["garden", "rooms/bath"]
    in_menu = shared.health(HealthRequest(FindingKind.ORPHAN, linked=("/Garden", "home"))).findings
    assert [finding.pages[0].path for finding in in_menu] == ["rooms/bath"]


def test_orphans_name_related_pages(settings: Settings) -> None:
    pages: dict[str, str | bytes] = {
        "bread.md": "# Bread\n\nA recipe for bread: flour, water, salt and yeast, baked for an hour in a hot oven.\n",
        "cake.md": "# Cake\n\nA recipe for cake: flour, sugar, eggs and butter, baked for half an hour in a warm oven.\n",
        "tapes.md": "# Tapes\n\nHow the tapes of the backup server are exchanged.\n",
    }
    commit(settings.repository, dict.fromkeys(PAGES) | pages)
    with closing(opened(settings)) as engine:
        near = {each.pages[0].path: [page.path for page in each.neighbours] for each in findings(engine, FindingKind.ORPHAN)}
    assert near == {"bread": ["cake"], "cake": ["bread"], "tapes": []}


def test_links_to_nothing_name_the_sections_that_have_them(shared: IndexEngine) -> None:
    (finding,) = findings(shared, FindingKind.BROKEN_LINK)
    assert finding.missing == "Rooms/Attic"
    assert [(page.path, page.section) for page in finding.pages] == [("garden", "Beds"), ("home", "")]


def test_a_page_that_is_created_ends_a_finding(index: IndexEngine, settings: Settings) -> None:
    follow(index, settings, {"old/attic.md": "# One\n", "old/rooms/attic/index.md": "# Two\n"})
    before = report(index)
    (finding,) = (each for each in before.findings if each.missing)
    assert getattr(finding.target, "path", "") == "old/rooms/attic/index", "it has more of the folders"
    follow(index, settings, {"rooms/attic.md": "# Attic\n\nIt is warm below the roof.\n"})
    after = report(index, FindingKind.BROKEN_LINK)
    assert (after.findings, after.open) == ((), 0)
    assert (after.commit != before.commit, after.commit) == (True, after.index.commit)


def test_a_dismissed_finding_stays_so_after_a_start_and_a_rebuild(settings: Settings) -> None:
    engine = opened(settings)
    garden, bath = findings(engine, FindingKind.ORPHAN)
    assert engine.dismiss(DismissalRequest([garden.id])).is_dismissed
    assert findings(engine, FindingKind.ORPHAN) == [bath]
    engine.close()
    with closing(opened(replace(settings, chunks="fixed"))) as engine:  # an index of another profile, with other related pages
        assert [each.id for each in findings(engine, FindingKind.ORPHAN)] == [bath.id]
        listed = report(engine, FindingKind.ORPHAN, dismissed=True)
        assert [(each.id, each.is_dismissed) for each in listed.findings] == [(bath.id, False), (garden.id, True)]
        assert (listed.open, listed.counts[0].dismissed) == (1, 1)
        assert not engine.dismiss(DismissalRequest([garden.id], restore=True)).is_dismissed
        assert [each.id for each in findings(engine, FindingKind.ORPHAN)] == [garden.id, bath.id]


def test_what_is_no_finding_cannot_be_dismissed(shared: IndexEngine) -> None:
    report(shared)
    with pytest.raises(FindingNotFoundError, match="no finding '0123456789abcdef'"):
        shared.dismiss(DismissalRequest(["0123456789abcdef"]))


def test_damaged_dismissals_fail_nothing(tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    for content in ("", "{", '{"dismissed": [1]}', '"x"', "\x00" * 50):
        file.write_text(content)
        Dismissals(file).change(["an id"], restore=False)
        assert list(json.loads(file.read_text())["dismissed"]) == ["an id"]
        assert "an id" in Dismissals(file)


def test_a_dismissal_that_cannot_be_stored_is_an_error(index: IndexEngine, settings: Settings) -> None:
    garden, _ = findings(index, FindingKind.ORPHAN)
    (settings.data_dir / "health.new").mkdir()
    with pytest.raises(DismissalError, match="cannot be stored"):
        index.dismiss(DismissalRequest([garden.id]))
    assert len(findings(index, FindingKind.ORPHAN)) == 2


def test_a_wiki_without_pages_has_no_findings(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", {})
    commit(repository, {})
    with closing(opened(Settings(repository, tmp_path / "index", sync_interval=3600, pages=()))) as engine:
        assert report(engine).findings == ()


# Titles without a link

TITLES: dict[str, str | bytes] = {
    "home.md": "# Home\n\nWelcome.\n",
    "winter.md": "# Winter checklist\n\nSee [[home]].\n",
    "nas.md": "# NAS\n\nFour disks.\n",
    "how.md": (
        "# How to\n\nFollow the winter\nchecklist, and copy it to the NAS.\n\n"
        "```\nwinter checklist\n```\n\nSee home, or nas, or `NAS`.\n"
    ),
    "linked.md": "# Linked\n\nFollow the [Winter checklist](/winter), that is the winter checklist. Then `NAS`.\n",
    "code.md": "# Code\n\n    run winter checklist\n\nThe [NAS](https://example.org/nas) of a friend.\n",
}


def mentions(settings: Settings, pages: Mapping[str, str | bytes]) -> list[tuple[str, str]]:
    commit(settings.repository, {**dict.fromkeys(PAGES), **pages})
    with closing(opened(settings)) as engine:
        found = findings(engine, FindingKind.MENTION)
        return sorted((each.pages[0].path, each.target.path) for each in found if each.target)


def test_a_title_in_running_text_is_a_mention_and_one_in_code_or_in_a_link_is_none(settings: Settings) -> None:
    assert mentions(settings, TITLES) == [("how", "nas"), ("how", "winter")]


def test_a_mention_names_the_heading_above_it_among_sections_of_one_passage(settings: Settings) -> None:
    laptop = "# Laptop\n\nSee the winter checklist.\n\n## Radio\n\nThe stick has a long cable.\n\n## Lid\n\nSee the NAS.\n"
    commit(settings.repository, dict.fromkeys(PAGES) | TITLES | {"how.md": laptop})
    with closing(opened(settings)) as engine:
        places = {each.target.path: each.pages[0] for each in findings(engine, FindingKind.MENTION) if each.target}
    assert {path: (place.section, place.anchor) for path, place in places.items()} == {
        "winter": ("", "laptop"),
        "nas": ("Lid", "lid"),
    }


def test_everyday_expressions_are_no_mentions(settings: Settings) -> None:
    text = "Read the getting started guide, day"
    common = {f"notes/{number}.md": f"# Note {number}\n\n{text} {number}.\n" for number in range(25)}
    pages = {"start.md": "# Getting started\n\nBegin.\n", "day.md": "# day\n\nA day.\n", **common}
    assert mentions(settings, pages) == []


def test_a_page_has_three_mentions_at_most_and_others_follow_dismissed_ones(settings: Settings) -> None:
    names = ("Blue pump", "Green pump", "Black pump", "White pump", "Small red pump", "Red pump")
    pages: dict[str, str | bytes] = {f"{name.lower()}.md": f"# {name}\n\nIt pumps.\n" for name in names}
    pages["all.md"] = "# All of them\n\nThere is a blue pump, a green pump, a black pump, a white pump and a small red pump.\n"
    commit(settings.repository, dict.fromkeys(PAGES) | pages)
    with closing(opened(settings)) as engine:
        first = findings(engine, FindingKind.MENTION)
        assert len(first) == 3
        assert first[0].target is not None
        assert first[0].target.path == "small red pump"
        place = first[0].pages[0]
        assert place.excerpt.startswith("There is a blue pump")
        assert place.excerpt.endswith("a white pump and a small red pump.")
        assert [place.excerpt[start:end] for start, end in place.excerpt_highlights] == ["small red pump"]
        engine.dismiss(DismissalRequest([each.id for each in first]))
        follow(engine, settings, {"other.md": "# Other\n"})
        second = findings(engine, FindingKind.MENTION)
        assert {each.target.path for each in second if each.target} == {name.lower() for name in names} - {"red pump"} - {
            each.target.path for each in first if each.target
        }


# Stale pages


def commit_at(settings: Settings, date: str, pages: dict[str, str | bytes | None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_AUTHOR_DATE", date)
        patch.setenv("GIT_COMMITTER_DATE", date)
        commit(settings.repository, pages)


def test_pages_unchanged_for_a_year_are_stale_if_their_neighbours_changed(settings: Settings) -> None:
    about = {
        "backup/disks": "How the disks of the backup server are exchanged, and how the backup is restored from them.",
        "backup/tapes": "How the tapes of the backup server are exchanged, and how the backup is restored from them.",
        "backup/cloud": "How the backup of the server is copied to the cloud, and how it is restored from there.",
        "bread": "A recipe for bread: flour, water, salt and yeast, baked for an hour in a hot oven.",
        "cake": "A recipe for cake: flour, sugar, eggs and butter, baked for half an hour in a warm oven.",
    }
    pages: dict[str, str | bytes] = {f"{path}.md": f"# About {path}\n\n{text}\n" for path, text in about.items()}
    commit_at(settings, "2019-05-01T12:00:00Z", dict.fromkeys(PAGES) | pages)
    changed = {name: f"{pages[name]!s}\nChanged.\n" for name in ("backup/tapes.md", "backup/cloud.md")}
    commit_at(settings, "2019-06-01T12:00:00Z", {**changed})
    with closing(opened(settings)) as engine:
        (finding,) = findings(engine, FindingKind.STALE)
        assert (finding.pages[0].path, finding.pages[0].updated) == ("backup/disks", "2019-05-01T12:00:00+00:00")
        assert {each.path for each in finding.neighbours} == {"backup/tapes", "backup/cloud"}
        follow(engine, settings, {"backup/disks.md": f"{pages['backup/disks.md']!s}\nLooked at again.\n"})
        assert "backup/disks" not in {each.pages[0].path for each in findings(engine, FindingKind.STALE)}


# Unanswered questions


def test_questions_that_found_nothing_are_grouped_and_asked_again(settings: Settings) -> None:
    with closing(opened(replace(settings, search_log=True))) as engine:
        asked = ["how do I apply for parental leave", "How can I apply for parental leave?", "capital of mongolia"]
        for query in (*asked, asked[0]):
            assert not engine.search([query], SearchOptions())[0].confident
        eventually(lambda: len(engine.insight().unanswered) == 3)
        leave, capital = findings(engine, FindingKind.UNANSWERED)
        assert (set(leave.queries), leave.times, leave.answered_by) == (set(asked[:2]), 3, None)
        assert capital.queries == (asked[2],)
        assert not engine.health(HealthRequest(FindingKind.UNANSWERED)).counts
        leave_page = "# Parental leave\n\nTo apply for parental leave, send the form to the office seven weeks before.\n"
        follow(engine, settings, {"leave.md": leave_page})
        found = report(engine, FindingKind.UNANSWERED, dismissed=True)
        assert [each.queries[0] for each in found.findings] == [asked[2], asked[0]]
        assert found.findings[1].answered_by is not None
        assert (found.findings[1].answered_by.path, found.open) == ("leave", 1)
        assert len(engine.insight().unanswered) == 3, "asking again is not logged"


def test_only_who_sees_a_question_can_dismiss_it_and_its_id_cannot_be_computed(settings: Settings, tmp_path: Path) -> None:
    own = replace(settings, search_log=True)
    ids = [dismissed_question(each) for each in (own, own, replace(own, data_dir=tmp_path / "other"))]
    assert ids[0] == ids[1], "the same after a start"
    assert ids[0] != ids[2], "another one in another wiki"


def dismissed_question(settings: Settings) -> str:
    """Ask what nothing answers, dismiss it, and restore it; return its id."""
    question = "capital of mongolia"
    with closing(opened(settings)) as engine:
        engine.search([question], SearchOptions())
        eventually(lambda: engine.insight().unanswered)
        (found,) = findings(engine, FindingKind.UNANSWERED)
        for id_ in (found.id, finding_id(FindingKind.UNANSWERED, question)):
            with pytest.raises(FindingNotFoundError, match="has no finding"):
                engine.dismiss(DismissalRequest([id_]))
        assert engine.dismiss(DismissalRequest([found.id], shows_queries=True)).is_dismissed
        with pytest.raises(FindingNotFoundError, match="has no finding"):
            engine.dismiss(DismissalRequest([found.id], restore=True))
        engine.dismiss(DismissalRequest([found.id], restore=True, shows_queries=True))
    return found.id


def test_without_a_search_log_there_are_no_questions(shared: IndexEngine) -> None:
    shared.search(["capital of mongolia"], SearchOptions())
    found = report(shared, FindingKind.UNANSWERED)
    assert (found.findings, found.keeps_searches) == ((), False)
