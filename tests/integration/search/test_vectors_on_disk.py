"""Searches of an index whose vectors are not in memory: ChromaDB compares them, and what it lacks is read from the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import ConfigError, VectorStoreUnreachableError
from otterwiki_semantic.core.records import Answer, Filters, Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings, read_settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.storage.chroma.mirror import VectorMirror
from tests.support.engines import generation_of, opened
from tests.support.live_wiki import commit, eventually, is_settled, make_repository

QUERIES = ("vegetables", "insects that make honey", "how do I repair the roof", "heating in winter")


@pytest.fixture
def pages(handbook: dict[str, str | bytes]) -> dict[str, str | bytes]:
    return handbook | {f"notes/p{number}.md": f"# Note {number}\n\nThe meeting of week {number}.\n" for number in range(30)}


@pytest.fixture
def settings(tmp_path: Path, pages: dict[str, str | bytes]) -> Settings:
    repository = make_repository(tmp_path / "repository", pages)
    return Settings(repository, tmp_path / "index", vectors="disk", pages=(), sync_interval=3600)


@pytest.fixture
def index(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexEngine]:
    monkeypatch.setattr("otterwiki_semantic.storage.generation.READ_FOR_SEARCH", 3)
    monkeypatch.setattr("otterwiki_semantic.storage.generation._READ_FOR_NEIGHBOUR", 0)
    made = opened(settings)
    eventually(lambda: is_settled(made.status()))
    yield made
    made.close()


def ask(index: IndexEngine, query: str, **options: object) -> Answer:
    return index.search([query], SearchOptions(5, 1, **options))[0]  # type: ignore[arg-type]


def unreachable(*_: object, **__: object) -> None:
    raise VectorStoreUnreachableError("the server is down")


def test_no_vector_is_in_memory_and_the_answers_are_the_same(index: IndexEngine, settings: Settings, tmp_path: Path) -> None:
    assert generation_of(index).catalog.reader.exact_index().in_memory is None
    in_memory = opened(Settings(settings.repository, tmp_path / "other", pages=()))
    filters = Filters(path="notes/")
    for query in QUERIES:
        for options in ({}, {"mode": Mode.SEMANTIC}, {"filters": filters}, {"diversity": 0.5}):
            found, expected = ask(index, query, **options), ask(in_memory, query, **options)
            assert found.degraded is None
            assert [hit.path for hit in found.results] == [hit.path for hit in expected.results]
            for mine, theirs in zip(found.results, expected.results, strict=True):
                assert mine.similarity == pytest.approx(theirs.similarity, abs=1e-5)
    in_memory.close()


def test_what_chroma_lacks_is_read(index: IndexEngine, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VectorMirror, "push", lambda *_, **__: None)
    head = commit(settings.repository, {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    index.notify()
    eventually(lambda: index.status().index.commit == head)
    assert generation_of(index).catalog.outbox.upserts(1, documents=False)
    found = ask(index, "insects that make honey", mode=Mode.SEMANTIC)
    assert (found.results[0].path, found.degraded) == ("bees", None)


def test_while_much_is_lacking_answers_say_so(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.storage.generation.READ_FOR_SEARCH", 0)
    generation_of(index).catalog.outbox.refill()
    found = ask(index, "vegetables")
    assert found.results[0].path == "garden"
    assert "being filled" in (found.degraded or "")


def test_without_chroma_words_answer_and_say_so(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(index, "vegetables").results[0].path == "garden"
    monkeypatch.setattr(type(generation_of(index).mirror.store), "query", unreachable)
    assert "the server is down" in (ask(index, "vegetables").degraded or "")
    found = ask(index, "meeting of week 7")
    assert found.results[0].path == "notes/p7"
    assert found.results[0].similarity is not None, "what words find is compared, too"
    assert "the server is down" in (found.degraded or "")


def test_without_chroma_a_small_wiki_is_read(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    index = opened(settings)
    eventually(lambda: is_settled(index.status()))
    monkeypatch.setattr(type(generation_of(index).mirror.store), "query", unreachable)
    found = ask(index, "vegetables")
    assert (found.results[0].path, found.degraded) == ("garden", None)
    index.close()


def test_a_page_is_inspected(index: IndexEngine) -> None:
    page = index.inspect_page("garden")
    assert page is not None
    assert all(len(chunk.neighbours) == 3 for chunk in page.chunks)
    assert all(each.path != "garden" for chunk in page.chunks for each in chunk.neighbours)


def test_exact_search_needs_vectors_in_memory(tmp_path: Path) -> None:
    given = {"REPOSITORY": str(tmp_path), "SEMANTIC_VECTORS": "disk", "SEMANTIC_VECTOR_SEARCH": "exact"}
    with pytest.raises(ConfigError, match="exclude each other"):
        read_settings(given, {})
