"""Stemming and detection of each language."""

from __future__ import annotations

import pytest
import Stemmer

from otterwiki_semantic.content.analysis import detect_language, fold, function_words, indexed_text, language_code
from otterwiki_semantic.core.languages import SNOWBALL

GERMAN = "Die Häuser stehen nicht weit von der Straße, und das Wasser kommt aus dem Brunnen."
FRENCH = "Les maisons ne sont pas loin de la rue, et l'eau vient du puits avec une pompe."
ENGLISH = "The houses are not far from the street, and the water comes out of the well."


def test_every_language_has_a_stemmer() -> None:
    known = set(Stemmer.algorithms())
    assert set(SNOWBALL.values()) <= known
    assert known - set(SNOWBALL.values()) <= {"porter", "dutch_porter", "sesotho"}


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("de", "Kellertreppen", "Kellertreppe"),
        ("fr", "continuellement", "continuelle"),
        ("ru", "документация", "документации"),
        ("es", "gatos", "gata"),
        ("en", "tapes", "tape"),
        ("fr", "préférée", "préférer"),
        ("pt", "informação", "informações"),
        ("cs", "počítačů", "počítače"),
        ("hi", "किताबें", "किताबों"),
    ],
)
def test_forms_of_a_word_are_stored_alike_in_their_language(language: str, one: str, other: str) -> None:
    assert indexed_text(one, language).split()[0] == indexed_text(other, language).split()[0]
    assert language == "en" or indexed_text(one) != indexed_text(other)


@pytest.mark.parametrize(("language", "word"), [("fr", "préférée"), ("es", "cantaría"), ("de", "Häuser"), ("ru", "большой")])
def test_a_word_is_stored_so_that_it_is_found_without_accents(language: str, word: str) -> None:
    assert set(indexed_text(fold(word), language).split()) <= set(indexed_text(word, language).split())
    assert set(indexed_text(f"Xy{word}", "en").split()) == set(indexed_text(fold(f"Xy{word}"), "en").split())


def test_the_language_with_most_function_words_is_that_of_the_text() -> None:
    languages = ("en", "de", "fr")
    assert [detect_language([text], languages) for text in (ENGLISH, GERMAN, FRENCH)] == ["en", "de", "fr"]
    assert detect_language(["kubernetes 10.0.0.5"], languages) == "en"
    assert detect_language([], ("de", "en")) == "de"
    assert detect_language([FRENCH], ("en",)) == "en"


@pytest.mark.parametrize(
    ("name", "code"), [("de", "de"), ("de-AT", "de"), ("DE_ch", "de"), ("nl", None), ("", None), (None, None), ("-", None)]
)
def test_the_front_matter_names_a_language(name: str | None, code: str | None) -> None:
    assert language_code(name, ("en", "de")) == code


def test_languages_without_a_list_have_no_function_words() -> None:
    assert function_words("hy") == frozenset()
    assert {"och", "att"} <= function_words("sv")
    assert {"og", "er"} <= function_words("no")
