"""Pages in several languages: each is stemmed in its own, and a query finds the forms of its words in all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.records import Answer, Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.indexing.promotion import QualityGate
from otterwiki_semantic.indexing.rebuild import RebuildJob
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.search.evaluation import JudgedQuery
from otterwiki_semantic.search.scoring import EXACT_POINTS
from otterwiki_semantic.storage import GenerationStore
from tests.support.engines import opened
from tests.support.live_wiki import eventually, make_repository

PAGES: dict[str, str | bytes] = {
    "en/well.md": "# The well\n\nThe water comes out of the well, and the pumps are in the shed by the street.\n",
    "de/haus.md": "# Wohnhäuser\n\nDie Häuser stehen an der Straße, und die Schlüssel sind bei den Nachbarn zu bekommen.\n",
    "de/notiz.md": "---\nlang: de-AT\n---\n# Notiz\n\nKellertreppen, Dachböden\n",
    "fr/choix.md": "# Le choix\n\nLa couleur préférée de nos clients est le vert, et elle est dans le catalogue.\n",
    "fr/maison.md": "# La maison\n\nLes maisons sont près de la rue, et les clefs sont chez les voisins.\n",
}


def settings(place: Path, *languages: str, repository: Path | None = None) -> Settings:
    return Settings(repository or place / "repository", place / "index", pages=(), languages=languages)


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
        ("préférer", "fr/choix"),
        ("preferee", "fr/choix"),
        ('"couleur preferee"', "fr/choix"),
        ('"couleur préférée"', "fr/choix"),
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


WORDS = ("Kellertreppen", "Gartenzwerge", "Wasserpumpen", "Heizungen", "Versicherungen", "Rechnungen")
GERMAN: dict[str, str | bytes] = {
    f"page{number}.md": f"# Seite\n\nDie {word} sind bei den Nachbarn zu bekommen, und das ist nicht weit von hier.\n"
    for number, word in enumerate(WORDS)
}
JUDGED = [JudgedQuery(word, (f"page{number}",)) for number, word in enumerate(WORDS)]


def test_the_recall_of_an_index_is_measured_in_its_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path / "repository", GERMAN)
    choices = (("de",), ("en",), ("en", "de"))
    for languages in choices:
        opened(settings(tmp_path / "-".join(languages), *languages, repository=tmp_path / "repository")).close()
    index = opened(settings(tmp_path, "fr"))
    monkeypatch.setattr(IndexRecipe, "matches_vectors", lambda *_: False)  # by words alone
    gate = QualityGate(
        index._manager.model.recipe, list, partial(index._searcher.asking_in_background, pause=index._manager.index.pause)
    )
    for languages in choices:
        generation = GenerationStore(tmp_path / "-".join(languages) / "index").open_current()
        assert generation is not None
        assert generation.languages == languages
        assert [row["recall@10"] for row in gate.measure(generation, JUDGED)[0]["queries"]] == [1.0] * len(JUDGED)
        generation.close()
    index.close()


def test_while_an_index_is_built_the_old_one_is_asked_in_its_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path / "repository", GERMAN)
    opened(settings(tmp_path, "en")).close()
    monkeypatch.setattr(RebuildJob, "is_outdated", lambda *_: False)
    index = opened(settings(tmp_path, "de"))
    assert [hit.path for hit in ask(index, "Kellertreppen", corrections=False).results] == ["page0"]
    index.close()


def test_an_identifier_is_recognised_in_its_language(tmp_path: Path) -> None:
    make_repository(tmp_path / "repository", GERMAN | {"code.md": "# Code\n\nDie Werte sind in TreppenHauswerten zu finden.\n"})
    index = opened(settings(tmp_path, "de"))
    (hit,) = ask(index, "treppenhauswerte", corrections=False, explain=True).results
    assert (hit.path, hit.explain is not None and hit.explain.names >= EXACT_POINTS) == ("code", True)
    index.close()
