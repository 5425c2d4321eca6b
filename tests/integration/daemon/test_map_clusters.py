"""Groups of the map: pages about the same are in one, and its name says what they are about."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from otterwiki_semantic.daemon.wiki_map.builder import labels_of
from otterwiki_semantic.daemon.wiki_map.projection import group_names, project
from otterwiki_semantic.embedding import BundledModel

SUBJECTS = {
    "Tomato": "The gardener waters the {} tomatoes in the greenhouse and picks the ripe ones in August.",
    "Router": "The {} router in the cellar hands out addresses to the computers of the network and forwards their packets.",
    "Violin": "The orchestra rehearses the {} violin concerto, and plays the slow movement softer.",
}
KINDS = ("old", "new", "red", "small", "large", "first", "second", "third", "other", "late", "early", "quick")


@pytest.fixture(scope="module")
def pages() -> dict[str, tuple[str, str]]:
    """Title and text of pages by path, without folders, subjects mixed."""
    return {
        f"page{number:02}-{at}": (f"{subject} number {number} and the {kind} ones", text.format(kind))
        for number, kind in enumerate(KINDS)
        for at, (subject, text) in enumerate(SUBJECTS.items())
    }


def named(pages: dict[str, tuple[str, str]], without: int | None = None) -> dict[str, str | None]:
    """Return the name of each page's group, by path."""
    vectors = BundledModel().embed([text for _, text in pages.values()])
    if without is not None:
        vectors[without] = 0
    with threadpool_limits(1):
        _, names = project(vectors, np.full((len(pages), 2), np.nan), [[title] for title, _ in pages.values()])
    return dict(zip(pages, names, strict=True))


def test_pages_about_the_same_are_in_a_group_with_their_word(pages: dict[str, tuple[str, str]]) -> None:
    names = named(pages)
    for at, subject in enumerate(SUBJECTS):
        (name,) = {name for path, name in names.items() if path.endswith(f"-{at}")}
        assert name
        assert subject in name
    assert len(set(names.values())) == len(SUBJECTS)
    assert named(pages) == names, "the same pages have the same groups"


def test_a_small_wiki_has_none_and_neither_has_a_page_without_vectors(pages: dict[str, tuple[str, str]]) -> None:
    assert set(named(dict(list(pages.items())[:20])).values()) == {None}
    assert [path for path, name in named(pages, without=0).items() if name is None] == [next(iter(pages))]


def test_a_group_is_named_by_the_phrase_that_distinguishes_its_titles_and_folders() -> None:
    groups = [
        [["Restore", "backups of the DNS"], ["Nightly", "Backups", "Overview"], ["backups of mail {#mail}"]],
        [["The rack", "Cooling plan"], ["Cooling plans", "Overview"], ["Backup"]],
        [["2024"], ["of the"], ["Overview"]],
        [["From the diary"], ["Letters"]],
        [["Diary"]],
        [["Diary"]],
    ]
    assert group_names(groups) == ["Backups", "Cooling plan", "2024", "Letters", "Diary", "Group 6"]
    mostly = [[[f"The lab {name}", name]] * 3 for name in ("Kitchen", "Garden", "Cellar")]
    assert group_names(mostly) == ["Kitchen", "Garden", "Cellar"]
    assert labels_of("user-guide/live_tv/setup", "Setup") == ["Setup", "user guide", "live tv"]
