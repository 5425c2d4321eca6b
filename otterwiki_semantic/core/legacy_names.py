"""The names of searches that this plugin replaces, of settings and of MCP tools, and what they are here.

The variables of the earlier plugin for this wiki, otterwiki-semantic-search, are the ones of its README and of its newest code,
which could also keep vectors in FAISS and use other models. Other searches name sizes of chunks, and a model of an Ollama
server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

EARLIER_PACKAGE = "otterwiki_semantic_search"
EARLIER_DISTRIBUTION = "otterwiki-semantic-search"
_SAME_MODEL = "all-MiniLM-L6-v2"
"""The model that is bundled here, as the earlier plugin called it."""
_TITAN = "bedrock:amazon.titan-embed-text-v2:0"
_NO_MODEL = "it was ignored in combination with the other variables"
_NO_FILES = "the index is rebuilt from git; delete the old files once you do not want to go back"
_NOT_NEEDED = {
    "VECTOR_BACKEND": "vectors are compared in memory, and kept in ChromaDB",
    "CHROMADB_MODE": "ChromaDB runs in the index daemon unless SEMANTIC_CHROMA_URL names a server",
    "CHROMADB_HOST": "ChromaDB runs in the index daemon unless SEMANTIC_CHROMA_URL names a server",
    "CHROMADB_PORT": "ChromaDB runs in the index daemon unless SEMANTIC_CHROMA_URL names a server",
    "CHROMADB_PATH": _NO_FILES,
    "CHROMA_COLLECTION": "each index names its own collection",
    "FAISS_INDEX_DIR": _NO_FILES,
    "EMBEDDING_MODEL": _NO_MODEL,
    "SENTENCE_TRANSFORMER_MODEL": _NO_MODEL,
    "BEDROCK_EMBED_DIMENSIONS": "the model's own number of dimensions is used",
}
"""Variables of the earlier plugin, and why one that becomes no setting is not needed."""
_CHUNK_SIZES = {"DOCUMENT_CHUNK_SIZE": "target", "DOCUMENT_CHUNK_OVERLAP": "overlap"}
"""Variables of other searches, in characters, and the sizes of a chunk profile that they are."""
_OLLAMA_MODEL = "OLLAMA_EMBEDDING_MODEL"
_OF_OTHER_SEARCHES = (*_CHUNK_SIZES, _OLLAMA_MODEL)
_VARIABLES = (*_NOT_NEEDED, "CHROMA_SYNC_INTERVAL", *_OF_OTHER_SEARCHES)


@dataclass(frozen=True, slots=True)
class LegacyTool:
    """A tool under the name that MCP servers for Markdown files have for it."""

    tool: str
    arguments: Mapping[str, str]
    """Its own arguments by their names there; others are not taken."""
    about: str
    required: tuple[str, ...] = ()
    """Arguments that have to be given, though the tool can do without."""


LEGACY_TOOLS: Mapping[str, LegacyTool] = MappingProxyType(
    {
        "search_markdown": LegacyTool(
            "semantic_search",
            {"query": "query", "num_results": "n", "max_tokens": "max_tokens"},
            "Find passages of the wiki's Markdown pages that answer a question, best first.",
        ),
        "reindex_documents": LegacyTool("reindex", {}, "Build a new index next to the serving one, and wait until it is done."),
        "update_files": LegacyTool("reindex", {"file_paths": "pages"}, "Index some files again, and wait.", ("file_paths",)),
    }
)


@dataclass(frozen=True, slots=True)
class LegacySettings:
    """The variables of earlier searches as settings, by name, and a line about each for the log."""

    settings: dict[str, str]
    notices: tuple[str, ...]


_Meaning = tuple[tuple[str, ...], dict[str, str]]
"""Some variables, and what they mean: settings with their values, the most important one first."""


def from_legacy_variables(
    environment: Mapping[str, str], configured: Mapping[str, str], accepts: Callable[[str, str], bool]
) -> LegacySettings:
    """Return what the variables of earlier searches mean here, and what to say of each.

    A setting that is `configured` wins, then the earlier plugin's variables. `accepts` returns whether a setting takes
    a value; others are ignored with a notice.
    """
    given = {name: value for name in _VARIABLES if (value := environment.get(name, "").strip())}
    settings: dict[str, str] = {}
    notices: dict[tuple[str, ...], str] = {}
    for variables, meant in _meanings(given, environment):
        name = next(iter(meant))
        if configured.get(name) or name in settings:
            by = "set" if configured.get(name) else f"that of {EARLIER_DISTRIBUTION}"
            notices[variables] = f"ignored, because {name} is {by}"
        elif not all(accepts(*each) for each in meant.items()):
            notices[variables] = f"ignored, because it makes no {name}"
        else:
            settings |= meant
            shown = ", ".join(f"{each}={value}" for each, value in meant.items())
            notices[variables] = f"used as {shown}; set that instead"
    explained = {name for names in notices for name in names}
    notices |= {(name,): f"not needed: {_NOT_NEEDED[name]}" for name in given if name not in explained}
    return LegacySettings(settings, tuple(f"{', '.join(names)} ({_origin(names)}): {what}" for names, what in notices.items()))


def _origin(names: Sequence[str]) -> str:
    return "of another search" if names[0] in _OF_OTHER_SEARCHES else f"of {EARLIER_DISTRIBUTION}"


def _meanings(given: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[_Meaning]:
    yield from _server(given)
    if seconds := given.get("CHROMA_SYNC_INTERVAL"):
        yield ("CHROMA_SYNC_INTERVAL",), {"SEMANTIC_SYNC_INTERVAL": seconds}
    if _keeps_in_faiss(given):
        yield from _model(given, environment)
    if variables := tuple(name for name in _CHUNK_SIZES if name in given):
        sizes = ",".join(f"{_CHUNK_SIZES[name]}={given[name]}" for name in variables)
        yield variables, {"SEMANTIC_CHUNKS": f"sections:{sizes}"}
    if model := given.get(_OLLAMA_MODEL):
        yield (_OLLAMA_MODEL,), {"SEMANTIC_MODEL": f"ollama:{model}"}


def _server(given: Mapping[str, str]) -> Iterator[_Meaning]:
    """Return the address of the ChromaDB server, if one was asked for by name: it was also the earlier plugin's default."""
    variables = tuple(name for name in ("CHROMADB_MODE", "CHROMADB_HOST", "CHROMADB_PORT") if name in given)
    mode = given.get("CHROMADB_MODE", "server" if "CHROMADB_HOST" in given else "local").lower()
    if mode == "server" and not _keeps_in_faiss(given):
        host = given.get("CHROMADB_HOST", "localhost")
        name = f"[{host}]" if ":" in host else host
        yield variables, {"SEMANTIC_CHROMA_URL": f"http://{name}:{given.get('CHROMADB_PORT', '8000')}"}


def _model(given: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[_Meaning]:
    """Return the model that the earlier plugin used with FAISS; with ChromaDB it had the one that is bundled here."""
    kind = given.get("EMBEDDING_MODEL", "local").lower()
    if kind == "bedrock":
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
        options = {"SEMANTIC_MODEL_OPTIONS": json.dumps({"region": region})} if region else {}
        yield ("EMBEDDING_MODEL",), {"SEMANTIC_MODEL": _TITAN, **options}
    elif kind != "local":
        yield ("EMBEDDING_MODEL",), {"SEMANTIC_MODEL": "minilm" if kind == "onnx" else kind}
    elif variables := tuple(name for name in ("EMBEDDING_MODEL", "SENTENCE_TRANSFORMER_MODEL") if name in given):
        name = given.get("SENTENCE_TRANSFORMER_MODEL", _SAME_MODEL)
        is_bundled = name.removeprefix("sentence-transformers/") == _SAME_MODEL
        yield variables, {"SEMANTIC_MODEL": "minilm" if is_bundled else f"sentence-transformers:{name}"}


def _keeps_in_faiss(given: Mapping[str, str]) -> bool:
    return given.get("VECTOR_BACKEND", "").lower() == "faiss"
