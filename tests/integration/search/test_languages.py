"""Pages in several languages: each is stemmed in its own, and a query finds the forms of its words in all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.records import Answer, Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.engines import opened
from tests.support.live_wiki import eventually, make_repository

PAGES: dict[str, str | bytes] = {
    "en/well.md": "# The well\n\nThe water comes out of the well, and the pumps are in the shed by the street.\n",
    "de/haus.md": "# Wohnhäuser\n\nDie Häuser stehen an der Straße, und die Schlüssel sind bei den Nachbarn zu bekommen.\n",
    "de/notiz.md": "---\nlang: de-AT\n---\n# Notiz\n\nKellertreppen, Dachböden\n",
    "fr/maison.md": "# La maison\n\nLes maisons sont près de la rue, et les clefs sont chez les voisins.\n",
}


def settings(place: Path, *languages: str) -> Settings:
    return Settings(place / "repository", place / "index", map=False, languages=languages)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexEngine]:
    place = tmp_path_factory.mktemp("languages")
    make_repository(place / "repository", PAGES)
    made = opened(settings(place, "en", "de", "fr"))
    yield made
    made.close()


def ask(index: IndexEngine, query: str, **options: Any) -> Answer:
    return index.search([query], SearchOptions(mode=Mode.KEYWORD, **options))[0]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("pump", "en/well"),
        ("Haus", "de/haus"),
        ("Wohnhaus", "de/haus"),
        ("Dachboden", "de/notiz"),
        ("Kellertreppe", "de/notiz"),
        ("maison", "fr/maison"),
        ("voisine", "fr/maison"),
        ('"die Häuser"', "de/haus"),
    ],
)
def test_forms_of_words_are_found_in_every_language(index: IndexEngine, query: str, path: str) -> None:
    answer = ask(index, query)
    assert [hit.path for hit in answer.results] == [path]
    assert answer.results[0].highlights
    assert answer.corrections == ()


def test_words_are_excluded_in_every_language(index: IndexEngine) -> None:
    assert [hit.path for hit in ask(index, "rue Straße -Häuser").results] == ["fr/maison"]


def test_function_words_of_a_language_find_nothing(index: IndexEngine) -> None:
    assert [hit.path for hit in ask(index, "wo sind die Dachböden und das").results][:1] == ["de/notiz"]


def test_other_languages_are_indexed_anew_without_the_model(tmp_path: Path) -> None:
    make_repository(tmp_path / "repository", PAGES)
    index = opened(settings(tmp_path, "en"))
    assert ask(index, "Kellertreppe", corrections=False).results == ()
    index.close()
    index = opened(settings(tmp_path, "en", "de"))
    eventually(lambda: [hit.path for hit in ask(index, "Kellertreppe", corrections=False).results] == ["de/notiz"])
    assert index.status().embedded_texts == 0
    index.close()
