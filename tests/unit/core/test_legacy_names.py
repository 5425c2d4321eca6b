"""What earlier searches were told is understood, and this plugin's own settings win."""

from __future__ import annotations

import json

import pytest

from otterwiki_semantic.core.legacy_names import PAGES
from otterwiki_semantic.core.settings import legacy_notices, read_settings

WIKI = {"REPOSITORY": "/wiki/repository"}


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"CHROMADB_MODE": "server"}, "http://localhost:8000"),
        ({"CHROMADB_MODE": "server", "CHROMADB_HOST": "chroma", "CHROMADB_PORT": "8100"}, "http://chroma:8100"),
        ({"CHROMADB_MODE": "Server", "CHROMADB_HOST": "chroma"}, "http://chroma:8000"),
        ({"CHROMADB_HOST": "chroma"}, "http://chroma:8000"),
        ({"CHROMADB_MODE": "server", "CHROMADB_HOST": "::1"}, "http://[::1]:8000"),
        ({"CHROMADB_PORT": "8100"}, None),
        ({"CHROMADB_MODE": "local", "CHROMADB_HOST": "chroma", "CHROMADB_PATH": "/app-data/chroma"}, None),
        ({"CHROMADB_MODE": "cloud", "CHROMADB_HOST": "chroma"}, None),
        ({"VECTOR_BACKEND": "faiss", "CHROMADB_HOST": "chroma", "FAISS_INDEX_DIR": "/app-data/faiss"}, None),
        ({"CHROMADB_HOST": "me:hunter2@chroma"}, None),
        ({"CHROMADB_HOST": "chroma", "CHROMADB_PORT": "http"}, None),
    ],
)
def test_a_chroma_server_is_taken_if_it_was_asked_for(environment: dict[str, str], url: str | None) -> None:
    assert read_settings(WIKI, environment).chroma_url == url
    notices = "\n".join(legacy_notices(WIKI, environment))
    assert [name for name in environment if name not in notices] == []
    assert ("SEMANTIC_CHROMA_URL=" in notices) is (url is not None)
    assert "hunter2" not in notices


@pytest.mark.parametrize(
    ("environment", "model"),
    [
        ({"VECTOR_BACKEND": "FAISS"}, "minilm"),
        ({"VECTOR_BACKEND": "faiss", "SENTENCE_TRANSFORMER_MODEL": "sentence-transformers/all-MiniLM-L6-v2"}, "minilm"),
        ({"VECTOR_BACKEND": "faiss", "SENTENCE_TRANSFORMER_MODEL": "org/e5"}, "sentence-transformers:org/e5"),
        ({"VECTOR_BACKEND": "faiss", "EMBEDDING_MODEL": "onnx", "SENTENCE_TRANSFORMER_MODEL": "org/e5"}, "minilm"),
        ({"VECTOR_BACKEND": "faiss", "EMBEDDING_MODEL": "bedrock"}, "bedrock:amazon.titan-embed-text-v2:0"),
        ({"VECTOR_BACKEND": "faiss", "EMBEDDING_MODEL": "word2vec"}, "minilm"),
        ({"EMBEDDING_MODEL": "bedrock", "BEDROCK_EMBED_DIMENSIONS": "512"}, "minilm"),
        ({"SENTENCE_TRANSFORMER_MODEL": "org/e5"}, "minilm"),
    ],
)
def test_the_model_is_taken_if_the_earlier_plugin_looked_at_it(environment: dict[str, str], model: str) -> None:
    assert read_settings(WIKI, environment).model == model
    notices = "\n".join(legacy_notices(WIKI, environment))
    assert [name for name in environment if name not in notices] == []


def test_the_region_goes_with_the_model() -> None:
    bedrock = {"VECTOR_BACKEND": "faiss", "EMBEDDING_MODEL": "bedrock", "AWS_DEFAULT_REGION": "eu-central-1"}
    assert json.loads(read_settings(WIKI, bedrock).model_options) == {"region": "eu-central-1"}
    assert read_settings(WIKI, bedrock | {"SEMANTIC_MODEL": "minilm"}).model_options == "{}"


@pytest.mark.parametrize(("value", "seconds"), [("30", 30), ("0", 60), ("often", 60), ("", 60)])
def test_an_interval_that_makes_no_sense_stops_no_start(value: str, seconds: float) -> None:
    environment = {"CHROMA_SYNC_INTERVAL": value}
    assert read_settings(WIKI, environment).sync_interval == seconds
    assert len(legacy_notices(WIKI, environment)) == bool(value)


@pytest.mark.parametrize(
    ("environment", "chunks"),
    [
        ({"DOCUMENT_CHUNK_SIZE": "1000", "DOCUMENT_CHUNK_OVERLAP": "200"}, "sections:target=1000,overlap=200"),
        ({"DOCUMENT_CHUNK_SIZE": "2500"}, "sections:target=2500"),
        ({"DOCUMENT_CHUNK_OVERLAP": "0"}, "sections:overlap=0"),
        ({"DOCUMENT_CHUNK_SIZE": "1000", "DOCUMENT_CHUNK_OVERLAP": "1000"}, "auto"),
        ({"DOCUMENT_CHUNK_SIZE": "large"}, "auto"),
        ({"DOCUMENT_CHUNK_SIZE": "10"}, "auto"),
    ],
)
def test_chunk_sizes_of_other_searches_are_taken(environment: dict[str, str], chunks: str) -> None:
    assert read_settings(WIKI, environment).chunks == chunks
    (notice,) = legacy_notices(WIKI, environment)
    said = "ignored, because it makes no SEMANTIC_CHUNKS" if chunks == "auto" else f"used as SEMANTIC_CHUNKS={chunks}; set that"
    assert f"{', '.join(environment)} (of another search): {said}" in notice


def test_the_model_of_ollama_is_taken_unless_another_one_is_named() -> None:
    ollama = {"OLLAMA_EMBEDDING_MODEL": "nomic-embed-text"}
    assert read_settings(WIKI, ollama).model == "ollama:nomic-embed-text"
    (notice,) = legacy_notices(WIKI, ollama)
    assert notice.endswith("(of another search): used as SEMANTIC_MODEL=ollama:nomic-embed-text; set that instead")
    assert read_settings(WIKI, ollama | {"SEMANTIC_MODEL": "minilm"}).model == "minilm"
    both = {"VECTOR_BACKEND": "faiss", "EMBEDDING_MODEL": "onnx", **ollama}
    assert read_settings(WIKI, both).model == "minilm"
    notices = "\n".join(legacy_notices(WIKI, both))
    assert "OLLAMA_EMBEDDING_MODEL (of another search): ignored, because SEMANTIC_MODEL is that of otterwiki" in notices


def test_this_plugins_own_settings_win() -> None:
    earlier = {"CHROMADB_HOST": "old", "CHROMA_SYNC_INTERVAL": "30", "DOCUMENT_CHUNK_SIZE": "1000"}
    wiki = {**WIKI, "SEMANTIC_CHROMA_URL": "http://new:8000", "SEMANTIC_CHUNKS": "long"}
    settings = read_settings(wiki, earlier | {"SEMANTIC_SYNC_INTERVAL": "45"})
    assert (settings.chroma_url, settings.sync_interval, settings.chunks) == ("http://new:8000", 45, "long")
    server, interval, sizes = legacy_notices(wiki, earlier)
    assert "CHROMADB_HOST" in server
    assert "ignored, because SEMANTIC_CHROMA_URL is set" in server
    assert "used as SEMANTIC_SYNC_INTERVAL=30" in interval
    assert "ignored, because SEMANTIC_CHUNKS is set" in sizes


@pytest.mark.parametrize(
    ("given", "pages"),
    [
        ({"SEMANTIC_MAP": False, "SEMANTIC_PALETTE": "off"}, ("related", "health", "editor", "metrics")),
        ({"SEMANTIC_LINK_SUGGESTIONS": "false", "SEMANTIC_RELATED": "1"}, ("palette", "related", "map", "health", "metrics")),
        ({"SEMANTIC_MAP": "true"}, PAGES),
        ({"SEMANTIC_RELATED": "false", "SEMANTIC_PAGES": "related"}, ("related",)),
    ],
)
def test_removed_switches_are_pages_left_out(given: dict[str, object], pages: tuple[str, ...]) -> None:
    for wiki, environment in (({**WIKI, **given}, {}), (WIKI, {name: str(value) for name, value in given.items()})):
        assert read_settings(wiki, environment).pages == pages
        (notice,) = legacy_notices(wiki, environment)
        assert next(iter(given)) in notice
        assert "(removed, and not known to the next version)" in notice
        assert (f"used as SEMANTIC_PAGES={','.join(pages)}; set that instead" in notice) is (
            pages != PAGES and "SEMANTIC_PAGES" not in given
        )


@pytest.mark.parametrize(
    ("given", "database"),
    [
        ({"SEMANTIC_CHROMA_TENANT": "acme"}, "acme/default_database"),
        ({"SEMANTIC_CHROMA_TENANT": "acme", "SEMANTIC_CHROMA_DATABASE": "wiki"}, "acme/wiki"),
        ({"SEMANTIC_CHROMA_TENANT": "acme", "SEMANTIC_CHROMA_DATABASE": "other/wiki"}, "other/wiki"),
        ({"SEMANTIC_CHROMA_TENANT": "a"}, "default_tenant/default_database"),
    ],
)
def test_a_removed_tenant_is_part_of_the_database(given: dict[str, str], database: str) -> None:
    assert read_settings(WIKI, given).chroma_database == database
    (notice,) = legacy_notices(WIKI, given)
    assert (f"used as SEMANTIC_CHROMA_DATABASE={database}" in notice) is database.startswith("acme/")


@pytest.mark.parametrize(
    "name", ["SEMANTIC_SLOW_SEARCH", "SEMANTIC_MAX_PAGE_BYTES", "SEMANTIC_SHADOW_MODEL", "SEMANTIC_SHADOW_KEY"]
)
def test_a_removed_setting_stops_no_start(name: str) -> None:
    for wiki, environment in (({**WIKI, name: 0}, {}), (WIKI, {name: "false"})):
        assert read_settings(wiki, environment) == read_settings(WIKI, {})
        (notice,) = legacy_notices(wiki, environment)
        assert notice.startswith(f"{name} (removed, and not known to the next version): not needed: ")


def test_what_was_never_told_is_not_spoken_of() -> None:
    assert legacy_notices(WIKI, {"AWS_DEFAULT_REGION": "x", "OTTERWIKI_API_KEY": "key", "SEMANTIC_THREADS": "1"}) == ()
