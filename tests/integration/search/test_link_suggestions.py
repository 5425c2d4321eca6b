"""What a text that is being written could link to, in the demo wiki."""

from __future__ import annotations

import pytest

from otterwiki_semantic.core.records import DraftRequest
from otterwiki_semantic.daemon.engine import IndexEngine


def named(demo: IndexEngine, text: str, path: str = "new/page") -> dict[str, str]:
    found = demo.draft_links(DraftRequest(text, path)).mentions
    assert all(text[each.start : each.end] == each.phrase for each in found)
    return {each.path: each.phrase for each in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Look at home AUTOMATION first.", {"services/automation": "home AUTOMATION"}),
        ("A new\nmember of the household is here.", {"procedures/new-person": "A new\nmember of the household"}),
        ("The Backups are old. Our backups, too, and Backups again.", {"procedures/backup": "Backups"}),
        ("See [[Backups|procedures/backup]] and the Backups.", {}),
        ("See [them](/procedures/backup) and the Backups.", {}),
        ("`Backups` and\n\n```\nBackups\n```\n\n# Backups\n\nhttps://example.org/Backups", {}),
        ("our home, automation", {}),
        ("A home.\n\nAutomation.", {}),
        ("machines run in many places", {}),
        ("", {}),
    ],
)
def test_phrases_that_name_a_page_are_found(demo: IndexEngine, text: str, expected: dict[str, str]) -> None:
    assert named(demo, text) == expected


def test_a_page_does_not_name_itself(demo: IndexEngine) -> None:
    assert "procedures/backup" in named(demo, "The Backups.")
    assert "procedures/backup" not in named(demo, "The Backups.", "procedures/backup")


def test_pages_about_the_same_are_found_and_those_that_are_linked_are_told(demo: IndexEngine) -> None:
    text = "Before frost, turn the radiators to frost guard and look after the pipe in the workshop."
    found = demo.draft_links(DraftRequest(text, "new/page")).pages
    assert found[0].path == "services/automation"
    assert not found[0].linked
    linked = demo.draft_links(DraftRequest(f"{text}\n\nSee [[Heating|services/automation]].", "new/page")).pages
    assert linked[0].linked
    own = demo.draft_links(DraftRequest(text, "services/automation")).pages
    assert "services/automation" not in {page.path for page in own}


def test_a_page_that_is_about_exactly_this_is_a_duplicate_of_a_new_one_only(demo: IndexEngine) -> None:
    text = "Two valves in the green box behind the shed, a pump in the cistern, and a controller that asks for the forecast."
    assert [page.path for page in demo.draft_links(DraftRequest(text, "new/page")).duplicates] == ["garden/irrigation"]
    assert demo.draft_links(DraftRequest(text, "machines/otter")).duplicates == ()


def test_what_is_written_at_the_cursor_counts_in_a_long_text(demo: IndexEngine) -> None:
    filler = "\n\n".join(f"Paragraph {number} says nothing much about anything at all." for number in range(200))
    place = "Before frost, turn the radiators to frost guard and look after the pipe in the workshop."
    text = f"{filler}\n\n{place}\n\n{filler}"
    found = demo.draft_links(DraftRequest(text, "new/page", cursor=len(filler) + 10)).pages
    assert "services/automation" in {page.path for page in found}
