"""The unit of a passage that answers best, by words, by vectors, and by both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.records import StoredChunk, encode_places
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.search.best_unit import MAX_EMBEDDED, Embed, UnitChooser, asks_for_several
from otterwiki_semantic.search.query import Highlighter, parse_query
from otterwiki_semantic.search.scoring import QueryWords
from otterwiki_semantic.search.similarity_scale import Scale
from tests.support.chunks import chunks_of
from tests.support.hits import CHUNK

QUERY: Matrix = np.array([1.0, 0.0], dtype=np.float32)
BACKUPS = """# Backups

## Testing

A backup that nobody reads is a hope.

## Retention

| kind | kept |
|---|---|
| nightly | 14 |
| weekly | 8 |
"""


class Model:
    """Embeds a text as the vector of the query if it has a word, else as one at right angles; remembers what it embeds."""

    def __init__(self, word: str) -> None:
        self._word = word
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Matrix:
        self.texts += texts
        return np.array([[1.0, 0.0] if self._word in text else [0.0, 1.0] for text in texts], dtype=np.float32)


def failing(_texts: Sequence[str]) -> Matrix:
    raise ModelError("it is gone")


def stored(source: str, title: str) -> list[StoredChunk]:
    made = [(each.text, each.prefix_length, encode_places(each.sections, each.units)) for each in chunks_of(source, title)]
    return [replace(CHUNK, title=title, text=text, prefix_length=length, places=places) for text, length, places in made]


def chosen(source: str, query: str, weights: dict[str, float], embed: Embed | None = None) -> list[str]:
    """Return the heading and the text of the best unit of each passage."""
    parsed = parse_query(query)
    chooser = UnitChooser(parsed, [QueryWords(weights, weights)], QUERY, embed, Scale())
    found: list[str] = []
    chunks = stored(source, "Backups")
    highlighter = Highlighter(parsed)
    ranked = chooser.rank(chunks, [highlighter.ranges(chunk.text) for chunk in chunks])
    for chunk, units in zip(chunks, ranked, strict=True):
        best = units[0].unit if units else None
        found.append("" if best is None else f"{chunk.sections[best.section].heading}: {chunk.text[best.start : best.end]}")
    return found


def test_a_rare_word_weighs_more_than_two_common_ones() -> None:
    source = "The pump and the valve are in the shed. The siphon is on the roof."
    assert chosen(source, "pump valve siphon", {"pump": 1.0, "valv": 1.0, "siphon": 3.0}) == [": The siphon is on the roof."]


def test_a_row_has_the_words_of_its_header_and_its_heading() -> None:
    assert chosen(BACKUPS, "how long are backups kept", {"backup": 1.0, "kept": 2.0}) == ["Retention: nightly | 14"]
    assert chosen(BACKUPS, "retention of backups", {"backup": 1.0, "retent": 2.0}) == ["Retention: nightly | 14"]
    assert chosen(BACKUPS, "backup", {"backup": 1.0}) == ["Testing: A backup that nobody reads is a hope."]
    assert chosen("<Note>A backup.</Note>", "backup", {"backup": 1.0}) == [": <Note>A backup.</Note>"], "no markup alone"


@pytest.mark.parametrize("embed", [None, Model("nowhere")], ids=["by words", "by meaning"])
def test_a_query_that_is_a_heading_or_the_title_and_words_of_a_heading_finds_its_section(embed: Embed | None) -> None:
    source = "## Restore a file\n\nRun it with dump.\n\n## Restore all\n\nTo restore each file of a machine that is lost.\n"
    words, found = {"restor": 1.0, "file": 1.0}, ["Restore a file: Run it with dump."]
    assert chosen(source, "Restore a file", words, embed) == found
    assert chosen(source, "backup files restored", {**words, "backup": 1.0}, embed) == found


def test_without_a_word_of_the_query_there_is_no_best_unit_unless_units_are_embedded() -> None:
    assert chosen(BACKUPS, "zebrafish", {"zebrafish": 1.0}) == [""]
    assert chosen(BACKUPS, "zebrafish", {"zebrafish": 1.0}, Model("weekly")) == ["Retention: weekly | 8"]


def test_units_are_embedded_with_the_names_of_their_passage_and_rows_with_their_header_and_headings_are_not() -> None:
    model = Model("weekly")
    chosen(BACKUPS, "zebrafish", {"zebrafish": 1.0}, model)
    assert model.texts == [
        "[Backups > Testing] A backup that nobody reads is a hope.",
        "[Backups > Testing] kind | kept: nightly | 14",
        "[Backups > Testing] kind | kept: weekly | 8",
    ]


def test_words_and_meaning_count_together() -> None:
    source, keys = "The old ladder leads to the front door of the house. A new key is here.", {"key": 1.0, "backup": 1.0}
    assert chosen(source, "backup key", keys, Model("nothing")) == [": A new key is here."]
    assert chosen(BACKUPS, "backup", {"backup": 1.0}, Model("weekly")) == ["Retention: weekly | 8"]
    assert chosen(BACKUPS, "backup", {"backup": 1.0}, Model("nothing")) == ["Testing: A backup that nobody reads is a hope."]


def test_what_a_question_asks_for_counts_and_code_seldom_answers() -> None:
    source = "Backups are kept where nobody looks. Backups are kept for 14 days.\n\n```\nbackups are kept by rsync here\n```\n"
    weights = {"backup": 1.0, "kept": 1.0}
    assert chosen(source, "how long are backups kept", weights) == [": Backups are kept for 14 days."]
    assert chosen(source, "where are backups kept", weights) == [": Backups are kept where nobody looks."]
    assert chosen(source, "are backups kept by rsync", {**weights, "rsync": 0.2}) == [": Backups are kept where nobody looks."]


def test_code_and_lists_belong_to_their_announcement_and_to_what_it_follows_for_lists_only_a_question() -> None:
    source = "Get it here. Clean it well.\n\nThen run this:\n\n```\nmake\nmake test\n```\n\nThat is all.\n\n```\nls\n```\n"
    source += "\nSee it.\n\n| a |\n|---|\n| 1 |\n\n```\ncat\n```\n"
    lists = "It is gone. What can I do? All is easy:\n\n- Find the key.\n- Open the safe.\n"
    chunk, asking = (*stored(source, "Backups"), *stored(lists, "Keys"))
    ranked, found = UnitChooser(parse_query("it"), [], QUERY, Model("it"), Scale()).rank([chunk, asking], [(), ()])
    named = {chunk.text[each.unit.start :].split(maxsplit=1)[0]: chunk.text[slice(*each.code)] for each in ranked if each.code}
    assert named == {"Clean": "make\nmake test", "Then": "make\nmake test", "That": "ls"}
    assert {asking.text[each.unit.start :][:4] for each in found if each.items} == {"What", "All ", "- Fi", "- Op"}


def test_words_alone_decide_if_the_model_fails() -> None:
    assert chosen(BACKUPS, "backup", {"backup": 1.0}, failing) == ["Testing: A backup that nobody reads is a hope."]


def test_only_so_many_units_are_embedded() -> None:
    model = Model("nothing")
    source = "\n\n".join(f"## Part {number}\n\n" + "One two three four. " * 15 for number in range(5))
    chosen(source, "zebrafish", {"zebrafish": 1.0}, model)
    assert 0 < len(model.texts) <= MAX_EMBEDDED


def test_a_plural_asks_for_several_things() -> None:
    several = ["Which ports does it use?", "what video codecs are supported", "What are the steps?", "List of machines"]
    several += ["which docker images are used", "Welche Seiten gibt es?", "quels ports ouvrir"]
    one = ["Which DNS server do we use?", "What causes it?", "what does Jenkins do", "Which address does it have?"]
    one += ["Welche Adresse haben wir?", "Who keeps the list of keys?"]
    assert [each for each in (*several, *one) if asks_for_several(each, ["en", "de", "fr"])] == several


@pytest.mark.parametrize("source", ["## Only a heading", "## A\n\n## B", "<Heading of={headings} />", "import head from 'a';"])
def test_a_passage_of_headings_or_markup_has_no_best_unit(source: str) -> None:
    assert set(chosen(source, "heading", {"head": 1.0}, Model("heading"))) == {""}
