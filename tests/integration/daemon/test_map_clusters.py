"""Clusters of the map: pages about the same are in one, and its name says what they are about."""

from __future__ import annotations

import numpy as np
import pytest

from otterwiki_semantic.daemon.wiki_map.clusters import cluster_names
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


def named(pages: dict[str, tuple[str, str]]) -> dict[str, str]:
    vectors = BundledModel().embed([text for _, text in pages.values()])
    return cluster_names(list(pages), {path: title for path, (title, _) in pages.items()}, vectors)


def test_pages_about_the_same_are_in_a_cluster_with_their_word(pages: dict[str, tuple[str, str]]) -> None:
    names = named(pages)
    for at, subject in enumerate(SUBJECTS):
        found = {name for path, name in names.items() if path.endswith(f"-{at}")}
        assert len(found) == 1
        assert subject in found.pop()
    assert len(set(names.values())) == len(SUBJECTS)


def test_the_same_pages_have_the_same_clusters(pages: dict[str, tuple[str, str]]) -> None:
    assert named(pages) == named(pages)


def test_a_small_wiki_has_none_and_neither_has_a_page_without_vectors(pages: dict[str, tuple[str, str]]) -> None:
    few = dict(list(pages.items())[:20])
    assert named(few) == {}
    vectors = BundledModel().embed([text for _, text in pages.values()])
    vectors[0] = 0
    paths = list(pages)
    names = cluster_names(paths, {}, vectors)
    assert paths[0] not in names
    assert set(names) == set(paths[1:])


def test_pages_without_a_difference_are_no_error() -> None:
    vectors = np.ones((40, 8), dtype=np.float32)
    names = cluster_names([f"p{at}" for at in range(40)], {}, vectors)
    assert len(names) == 40
