"""The words that correct those of queries, which follow the pages of a catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from otterwiki_semantic.core.records import Chunk, Page
from otterwiki_semantic.embedding import vector_id
from otterwiki_semantic.search.spelling import corrected
from otterwiki_semantic.storage import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "catalog.sqlite3")


def put(catalog: Catalog, path: str, text: str) -> None:
    chunk = Chunk(text, 0, 0, "", (), (), "", 1, 1)
    catalog.put_pages([(Page(path, "blob", path, None, (), 1, (chunk,)), [vector_id(text)])])


def test_words_follow_their_pages(catalog: Catalog) -> None:
    vocabulary = catalog.keywords.vocabulary
    put(catalog, "a", "gardens garden gate")
    assert sorted(vocabulary.beginning("g", 5, 7)) == ["garden", "gardens"]
    put(catalog, "b", "garden gazebo grape")
    assert sorted(vocabulary.beginning("g", 5, 7)) == ["garden", "gardens", "gazebo", "grape"]
    assert vocabulary.beginning("h", 1, 9) == []
    assert vocabulary.pages(["garden", "gazebo", "gopher"]) == {"garden": 2, "gazebo": 1}
    catalog.remove_pages(["b"])
    assert vocabulary.pages(["garden", "gazebo"]) == {"garden": 1}
    put(catalog, "c", "gazebo")
    assert sorted(vocabulary.beginning("g", 6, 6)) == ["garden", "gazebo"]
    assert vocabulary.pages(["gazebo"]) == {"gazebo": 1}


@pytest.mark.parametrize("typed", ["xonfiguration", "cconfiguration", "onfiguration", "ocnfiguration"])
def test_a_long_word_may_begin_wrongly(catalog: Catalog, typed: str) -> None:
    put(catalog, "a", "configuration")
    assert corrected(typed, catalog.keywords, ["en"])[0] == "configuration"


def test_the_first_unknown_words_are_corrected(catalog: Catalog) -> None:
    put(catalog, "a", "tomatoes")
    text, corrections = corrected(" ".join(["tomatose"] * 10), catalog.keywords, ["en"])
    assert text.split() == ["tomatoes"] * 8 + ["tomatose"] * 2
    assert len(corrections) == 1
