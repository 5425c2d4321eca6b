"""The collection as other programs see it, opened with chromadb alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import RebuildState
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.storage import export_collection
from tests.support.engines import opened
from tests.support.live_wiki import commit, eventually, head_of, make_repository
from tests.support.running_chroma import RunningChroma

if TYPE_CHECKING:
    import chromadb
    from chromadb.api import ClientAPI

pytestmark = pytest.mark.real_parts

PAGES: dict[str, str | bytes] = {
    "house/heating.md": "---\ntitle: Heating\ncategory: house\ntags: [boiler, winter]\n---\n"
    "# Heating\n\nThe boiler is in the cellar, behind the door that sticks in wet weather.\n\n"
    "## Venting\n\nOpen each valve until water comes out of the radiator.\n",
    "garden.md": "# Garden\n\nTomatoes are planted in May, behind the hedge.\n",
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[IndexEngine]:
    made = opened(Settings(make_repository(tmp_path / "repository", PAGES), tmp_path / "index", sync_interval=1, pages=()))
    yield made
    made.close()


def exported(tmp_path: Path, name: str = "otterwiki") -> chromadb.Collection:
    """Return a copy of the collection as it is now."""
    (catalog,) = (tmp_path / "index").glob("generations/*/catalog.sqlite3")
    directory = tmp_path / f"copy {len(list(tmp_path.glob('copy *')))}"
    export_collection(catalog, directory, name)
    return client_of(directory).get_collection(name)


def client_of(directory: Path) -> ClientAPI:
    """Return a client with the settings of the index: a process opens a directory with the same ones everywhere."""
    import chromadb

    import otterwiki_semantic.chroma  # noqa: F401 - registers the embedding function

    settings = chromadb.config.Settings(anonymized_telemetry=False, chroma_otel_collection_endpoint="")
    return chromadb.PersistentClient(str(directory), settings)


def records(collection: chromadb.Collection) -> dict[str, dict[str, Any]]:
    found = collection.get(include=["metadatas", "documents"])
    assert found["metadatas"] is not None
    assert found["documents"] is not None
    return {
        str(record["anchor"]): {**record, "text": text}
        for record, text in zip(found["metadatas"], found["documents"], strict=True)
    }


def is_whole(index: IndexEngine, repository: Path) -> bool:
    fill = index.status().chroma
    return fill is not None and fill.complete_commit == head_of(repository) and not (fill.pending or fill.outdated)


def live(tmp_path: Path, index: IndexEngine) -> chromadb.Collection:
    """Return the wiki's own collection once it is whole; nothing writes to it while the test reads."""
    eventually(lambda: is_whole(index, tmp_path / "repository"))
    return client_of((tmp_path / "index" / "chroma").resolve()).get_collection("otterwiki")


@pytest.mark.usefixtures("index")
def test_a_question_in_words_finds_the_section_with_text_and_metadata(tmp_path: Path) -> None:
    collection = exported(tmp_path)
    found = collection.query(query_texts=["how do I bleed the radiators"], n_results=1, where={"category": "house"})
    assert found["documents"] is not None
    assert found["metadatas"] is not None
    assert found["documents"][0][0].endswith("Open each valve until water comes out of the radiator.")
    record = dict(found["metadatas"][0][0])
    commit_id = head_of(tmp_path / "repository")
    assert str(record.pop("updated"))[:2] == "20"
    assert record == {
        "page_path": "house/heating",
        "title": "Heating",
        "section": "Heating",
        "section_path": ["Heating"],
        "anchor": "heating",
        "chunk_index": 0,
        "total_chunks": 1,
        "page_word_count": 26,
        "category": "house",
        "tags": ["boiler", "winter"],
        "start_line": 6,
        "end_line": 12,
        "url": "/house/heating#heating",
        "commit": commit_id,
    }
    assert collection.metadata == {"model": "minilm", "dimension": 384, "commit": commit_id}


def test_the_wikis_own_collection_has_the_same_name_and_is_in_a_stable_place_and_overwrites_nothing(
    index: IndexEngine, tmp_path: Path
) -> None:
    collection = live(tmp_path, index)
    assert records(collection) == records(exported(tmp_path))
    found = collection.query(query_texts=["vegetables"], n_results=1)
    assert found["metadatas"] is not None
    assert found["metadatas"][0][0]["page_path"] == "garden"
    (catalog,) = (tmp_path / "index").glob("generations/*/catalog.sqlite3")
    with pytest.raises(SemanticError, match="is not empty: name a new directory"):
        export_collection(catalog, tmp_path, "otterwiki")
    assert not (tmp_path.parent / f"{tmp_path.name}.part").exists()


def test_new_tags_and_a_new_name_change_metadata_and_embed_nothing(index: IndexEngine, tmp_path: Path) -> None:
    before = live(tmp_path, index).get(include=["embeddings"])
    embedded = index.status().embedded_texts
    text = str(PAGES["house/heating.md"]).replace("boiler, winter", "boiler, summer")
    commit(tmp_path / "repository", {"house/heating.md": None, "cellar/heating.md": text})
    collection = live(tmp_path, index)
    record = records(collection)["heating"]
    assert (record["page_path"], record["tags"]) == ("cellar/heating", ["boiler", "summer"])
    assert record["commit"] == head_of(tmp_path / "repository")
    assert records(collection)["garden"]["commit"] != record["commit"]
    after = collection.get(include=["embeddings"])
    assert index.status().embedded_texts == embedded
    assert sorted(before["ids"]) == sorted(after["ids"])
    assert records(collection) == records(exported(tmp_path))


def test_a_text_on_several_pages_is_one_record_that_names_them(index: IndexEngine, tmp_path: Path) -> None:
    text = PAGES["garden.md"]
    commit(tmp_path / "repository", {"old/garden.md": f"# Garden\n\n{str(text).partition('# Garden')[2].strip()}\n"})
    record = records(live(tmp_path, index))["garden"]
    assert (record["page_path"], record["other_pages"]) == ("garden", ["old/garden"])
    commit(tmp_path / "repository", {"garden.md": None})
    record = records(live(tmp_path, index))["garden"]
    assert record["page_path"] == "old/garden"
    assert "other_pages" not in record


def test_the_stable_place_always_has_a_whole_collection_during_a_reindex(index: IndexEngine, tmp_path: Path) -> None:
    eventually(lambda: is_whole(index, tmp_path / "repository"))
    link = tmp_path / "index" / "chroma"
    before, seen = link.resolve(), set()
    index.reindex(full=True)

    def is_replaced() -> bool:
        place = link.resolve()
        assert (place / "chroma.sqlite3").exists()
        seen.add(place)
        return index.status().rebuild.state is RebuildState.DONE and place != before

    eventually(is_replaced)
    assert len(seen) == 2
    assert records(live(tmp_path, index)).keys() == {"heating", "garden"}
    eventually(lambda: not before.exists())


def test_ids_and_vectors_alone_are_stored_if_so_configured(index: IndexEngine, tmp_path: Path) -> None:
    settings = Settings(tmp_path / "repository", tmp_path / "index", pages=(), chroma_documents=False, collection="our-wiki")
    eventually(lambda: is_whole(index, tmp_path / "repository"))
    public = tmp_path / "index" / "chroma"
    before = public.resolve()
    index.close()
    with closing(opened(settings)) as again:
        eventually(lambda: public.resolve() != before, why="the collection is replaced, as its name differs")
        client = client_of(public.resolve())
        found = client.get_collection("our-wiki").get(include=["metadatas", "documents", "embeddings"])
        assert len(found["ids"]) == again.status().vectors == 2
        assert not any(found["documents"] or ())
        assert not any(found["metadatas"] or ())
        assert again.status().embedded_texts == 0


@pytest.fixture
def served(tmp_path: Path, chroma: RunningChroma) -> Iterator[Callable[[str], IndexEngine]]:
    engines: list[IndexEngine] = []

    def serve(name: str) -> IndexEngine:
        repository = make_repository(tmp_path / name / "repository", PAGES)
        engines.append(opened(Settings(repository, tmp_path / name / "index", chroma_url=chroma.url, pages=())))
        return engines[-1]

    yield serve
    for each in engines:
        each.close()


def test_a_server_has_it_by_the_same_name(served: Callable[[str], IndexEngine], chroma: RunningChroma, tmp_path: Path) -> None:
    index = served("one")
    eventually(lambda: is_whole(index, tmp_path / "one" / "repository"))
    import chromadb

    import otterwiki_semantic.chroma  # noqa: F401 - registers the embedding function

    collection = chromadb.HttpClient(port=chroma.port).get_collection("otterwiki")
    found = collection.query(query_texts=["how do I bleed the radiators"], n_results=1)
    assert found["metadatas"] is not None
    assert found["metadatas"][0][0]["page_path"] == "house/heating"
    assert collection.metadata["commit"] == head_of(tmp_path / "one" / "repository")
    index.reindex(full=True)
    eventually(lambda: index.status().rebuild.state is RebuildState.DONE)
    eventually(lambda: is_whole(index, tmp_path / "one" / "repository"))
    fill = index.status().chroma
    assert fill is not None
    assert (chroma.collections(), fill.collection, fill.count) == (["otterwiki"], "otterwiki", 2)


def test_a_second_wiki_does_not_take_the_name_of_the_first(
    served: Callable[[str], IndexEngine], chroma: RunningChroma, tmp_path: Path
) -> None:
    first = served("one")
    eventually(lambda: is_whole(first, tmp_path / "one" / "repository"))
    second = served("two")
    (problem,) = eventually(lambda: second.status().problems) or ()
    assert "set SEMANTIC_COLLECTION to another name" in problem.message
    assert chroma.collections()[0] == "otterwiki" == first.status().collection
    assert chroma.collections()[1] == second.status().collection
    assert second.status().status == "ready"


def test_the_embedding_function_tells_nobody_a_key_and_takes_no_address_from_a_collection() -> None:
    from otterwiki_semantic.chroma import WikiEmbeddingFunction

    function = WikiEmbeddingFunction(model="openai:text-embedding-3-small")
    assert json.loads(json.dumps(function.get_config())) == {"model": "openai:text-embedding-3-small"}
    config = {"model": "openai:text-embedding-3-small", "model_url": "http://127.0.0.1:9"}
    with pytest.raises(SemanticError, match="model_url"):
        WikiEmbeddingFunction.build_from_config(config)
