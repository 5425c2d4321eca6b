"""A vault of notes: where its links lead, also after files were moved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from otterwiki_semantic.content import Folder
from otterwiki_semantic.core.records import Filters, FindingKind, HealthReport, HealthRequest, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.engines import opened, wait_until_equal
from tests.support.live_wiki import eventually

NOTES = {
    "Home.md": "# Home\n\n[[Boiler|the boiler]], ![[Plan#Beds]], [[Nickname]], [[Projects/Shed]], ![[photo.png|300]] #start\n",
    "house/Boiler.md": (
        "---\naliases: [Nickname]\n---\n# The boiler\n\nSee [[Home]] and [manual](manual.pdf).\n\n## Care\n\n[[Gone|nowhere]]\n"
    ),
    "garden/Plan.md": "# Plan\n\n## Beds\n\nBeans. See [the boiler](../Boiler.md) and `[[Code]]`. #garden/beds\n",
    "work/Projects/Shed.md": "# Shed\n\n[[lang]] and [[a/b]]\n",
    "pages/a___b.md": "- Text of a namespace, see [[Plan]]\n",
    "lang.md": "Languages.\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    for name, text in NOTES.items():
        path = tmp_path / "vault" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    folder = Folder(tmp_path / "vault", tmp_path / "index")
    folder.commit()
    return folder


@pytest.fixture
def index(folder: Folder) -> Iterator[IndexEngine]:
    engine = opened(Settings(folder.directory, folder.data_dir, sync_interval=3600, pages=()))
    yield engine
    engine.close()


def bring_up(index: IndexEngine, folder: Folder) -> None:
    folder.commit()
    index.notify()
    wait_until_equal(index)


def broken(index: IndexEngine) -> dict[str, list[str]]:
    """Return the missing pages as they are written, each with the pages that link to it."""

    def current() -> HealthReport | None:
        report = index.health(HealthRequest(FindingKind.BROKEN_LINK))
        return report if report.is_current else None

    report = eventually(current)
    return {each.missing or "": [place.path for place in each.pages] for each in report.findings}


def test_links_lead_to_the_notes_that_they_name(index: IndexEngine) -> None:
    assert index.links("Home").links_to == ("garden/Plan", "house/Boiler", "work/Projects/Shed")
    assert index.links("garden/Plan").linked_from == ("Home", "pages/a___b")
    assert index.links("work/Projects/Shed").links_to == ("lang", "pages/a___b")
    assert broken(index) == {"Gone": ["house/Boiler"], "Boiler": ["garden/Plan"]}


def test_links_follow_a_note_that_is_moved(index: IndexEngine, folder: Folder) -> None:
    (folder.folder / "garden" / "Plan.md").rename(folder.folder / "Plan.md")
    bring_up(index, folder)
    assert index.links("Plan").linked_from == ("Home", "pages/a___b")
    (folder.folder / "Plan.md").unlink()
    bring_up(index, folder)
    assert "Plan" not in index.links("Home").links_to
    assert {"Plan", "Gone"} <= broken(index).keys()
    (folder.folder / "work" / "Plan.md").write_text("# Another plan\n")
    bring_up(index, folder)
    assert index.links("work/Plan").linked_from == ("Home", "pages/a___b")


def test_tags_in_the_text_and_labels_are_found(index: IndexEngine) -> None:
    answer = index.search(["garden/beds"], SearchOptions(filters=Filters(tags=("garden/beds",))))[0]
    assert [hit.path for hit in answer.results] == ["garden/Plan"]
    hit = index.search(["the boiler"], SearchOptions(filters=Filters(tags=("start",))))[0].results[0]
    assert "the boiler, Plan#Beds, Nickname" in hit.text
    assert index.search(["namespace"], SearchOptions())[0].results[0].title == "a/b"
