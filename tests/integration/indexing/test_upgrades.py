"""An index of another version: used if it can be, else kept until another one is whole."""

from __future__ import annotations

import logging
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from otterwiki_semantic.core.records import Answer, Mode, RebuildState, SearchOptions, SuggestRequest
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.live_wiki import eventually, head_of, is_settled
from tests.support.paths import DATA

QUESTION = "a gurgling radiator"
Open = Callable[[str], IndexEngine]


@pytest.fixture
def opened(settings: Settings, opened: Callable[[Settings], IndexEngine]) -> Open:
    """Opens the index of an archive, for a wiki with the same pages; with an empty name, what is there."""

    def start(archive: str) -> IndexEngine:
        if archive:
            unpack(archive, settings)
        return opened(settings)

    return start


def unpack(archive: str, settings: Settings) -> None:
    with tarfile.open(DATA / archive) as files:
        if hasattr(tarfile, "data_filter"):  # since Python 3.11.4, which warns without it
            files.extraction_filter = tarfile.data_filter
        files.extractall(settings.data_dir.parent)
    with closing(sqlite3.connect(catalog_of(settings))) as connection, connection:  # as if it were of this very repository
        connection.execute("UPDATE meta SET value = ? WHERE name = 'commit'", (head_of(settings.repository),))


def catalog_of(settings: Settings) -> Path:
    return settings.data_dir / "generations" / serving(settings) / "catalog.sqlite3"


def texts_of(settings: Settings) -> set[str]:
    with closing(sqlite3.connect(catalog_of(settings))) as connection:
        return {text for (text,) in connection.execute("SELECT text FROM chunks")}


def serving(settings: Settings) -> str:
    return (settings.data_dir / "current").read_text().strip()


def generations(settings: Settings) -> set[str]:
    return {path.name for path in (settings.data_dir / "generations").iterdir()}


def ask(index: IndexEngine) -> Answer:
    return index.search([QUESTION], SearchOptions(1, 1, Mode.SEMANTIC))[0]


def is_whole(index: IndexEngine) -> bool:
    status = index.status()
    return is_settled(status) and status.index.pending_pages == 0 and status.rebuild.state is not RebuildState.RUNNING


def test_an_index_of_this_way_is_used_as_it_is(settings: Settings, opened: Open) -> None:
    index = opened("index-schema-11.tar.xz")
    old = serving(settings)
    assert ask(index).results[0].path == "house/heating", "at once"
    eventually(lambda: is_whole(index))
    status = index.status()
    assert (status.generation, status.embedded_texts, status.rebuild.state) == (old, 0, RebuildState.IDLE)
    eventually(lambda: index.suggest(SuggestRequest("heating")).suggestions)
    assert generations(settings) == {serving(settings)} == {old}


@pytest.mark.parametrize(("version", "embedded"), [(4, 1), (5, 1), (7, 1), (8, 1), (9, 1), (10, 0)])
def test_an_index_of_0_1_answers_until_another_is_whole_and_its_vectors_are_kept(
    settings: Settings, opened: Open, version: int, embedded: int
) -> None:
    index = opened(f"index-schema-{version}.tar.xz")
    old, known = serving(settings), texts_of(settings)
    assert ask(index).results[0].path == "house/heating", "at once"
    eventually(lambda: is_whole(index) and index.status().generation != old)
    assert ask(index).results[0].path == "house/heating"
    assert index.status().embedded_texts == len(texts_of(settings) - known) == embedded, "one passage of 0.1 is named otherwise"
    eventually(lambda: generations(settings) == {serving(settings)})


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """What holds the model back from embedding passages until it is set."""
    gate = Event()
    embed = BundledModel.embed
    monkeypatch.setattr(BundledModel, "embed", lambda model, texts: gate.wait(60) and embed(model, texts))
    yield gate
    gate.set()


def newer(settings: Settings) -> None:
    """Let the index be one of a version to come, whose tables this one does not know."""
    unpack("index-schema-11.tar.xz", settings)
    with closing(sqlite3.connect(catalog_of(settings))) as connection, connection:
        connection.execute("UPDATE meta SET value = '12' WHERE name = 'schema'")
        connection.execute("UPDATE meta SET value = 'to come' WHERE name = 'fingerprint'")
        connection.execute("ALTER TABLE chunks RENAME TO passages")


@pytest.mark.parametrize(
    "prepare",
    [lambda settings: unpack("index-schema-1.tar.xz", settings), newer],
    ids=["the first version", "a version to come"],
)
def test_an_index_that_cannot_be_asked_is_kept_until_another_is_whole(
    settings: Settings, opened: Open, gate: Event, caplog: pytest.LogCaptureFixture, prepare: Callable[[Settings], None]
) -> None:
    prepare(settings)
    old = serving(settings)
    with caplog.at_level(logging.WARNING):
        first = opened("")
        eventually(lambda: first.status().generation not in {None, old})
        assert "it cannot be searched, and is kept until another one is complete" in caplog.text
    answer = ask(first)
    assert (answer.results, answer.index.commit, answer.index.pending_pages) == ((), None, 5), "the index is still being built"
    assert old in generations(settings)
    first.close()

    second = opened("")
    assert old in generations(settings), "it was not whole when it was stopped"
    gate.set()
    eventually(lambda: is_whole(second) and old not in generations(settings))
    assert ask(second).results[0].path == "house/heating"
    assert generations(settings) == {serving(settings)} == {second.status().generation}
    assert second.status().embedded_texts == second.status().chunks == 6, "the model was another, or none could be read"
