"""The collection in LangChain and LlamaIndex, where they are installed: `pip install -r benchmarks/requirements.txt`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.storage import export_collection
from tests.support.engines import opened
from tests.support.live_wiki import make_repository

pytestmark = pytest.mark.real_parts


@pytest.fixture
def client(tmp_path: Path, handbook: dict[str, str | bytes]) -> Any:
    import chromadb

    import otterwiki_semantic.chroma  # noqa: F401 - registers the embedding function

    opened(Settings(make_repository(tmp_path / "repository", handbook), tmp_path / "index", pages=())).close()
    (catalog,) = (tmp_path / "index").glob("generations/*/catalog.sqlite3")
    export_collection(catalog, tmp_path / "copy", "otterwiki")
    return chromadb.PersistentClient(str(tmp_path / "copy"))


@pytest.mark.skipif(find_spec("langchain_chroma") is None, reason="langchain_chroma is not installed")
def test_langchain_finds_the_section(client: Any) -> None:
    langchain = import_module("langchain_chroma")

    (found,) = langchain.Chroma(client=client, collection_name="otterwiki").similarity_search("vegetables", k=1)
    assert found.metadata["page_path"] == "garden"
    assert found.page_content.startswith("[Garden")


@pytest.mark.skipif(find_spec("llama_index") is None, reason="llama_index is not installed")
def test_llama_index_finds_the_section(client: Any) -> None:
    query = import_module("llama_index.core.vector_stores").VectorStoreQuery
    llama_index = import_module("llama_index.vector_stores.chroma")

    collection = client.get_collection("otterwiki")
    vector = collection._embed(["vegetables"], is_query=True)[0]
    store = llama_index.ChromaVectorStore(chroma_collection=collection)
    found = store.query(query(query_embedding=list(map(float, vector)), similarity_top_k=1))
    assert [node.metadata["page_path"] for node in found.nodes] == ["garden"]
