"""Former names of settings and MCP tools, and names from other search tools that this plugin replaces.

The variables of this wiki's earlier plugin, otterwiki-semantic-search, come from its README and its latest code, which also
supported FAISS and other models. Other search tools have settings for chunk sizes and for a model on an Ollama server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

EARLIER_PACKAGE = "otterwiki_semantic_search"
EARLIER_DISTRIBUTION = "otterwiki-semantic-search"
_SAME_MODEL = "all-MiniLM-L6-v2"
_TITAN = "bedrock:amazon.titan-embed-text-v2:0"
_NO_MODEL = "it was ignored in combination with the other variables"
PAGES = ("palette", "related", "map", "health", "editor", "metrics")
_PAGE_SWITCHES = {
    "SEMANTIC_PALETTE": "palette",
    "SEMANTIC_RELATED": "related",
    "SEMANTIC_MAP": "map",
    "SEMANTIC_LINK_SUGGESTIONS": "editor",
    "SEMANTIC_METRICS": "metrics",
}
_OFF = ("false", "0", "no", "off")
_NO_FILES = "the index is rebuilt from git; delete the old files once you do not want to go back"
_SERVER = ("CHROMADB_MODE", "CHROMADB_HOST", "CHROMADB_PORT")
_TWO_MODELS = "two models are compared by otterwiki-semantic eval --model A --model B"
_NOT_NEEDED = {
    "VECTOR_BACKEND": "vectors are compared in memory, and kept in ChromaDB",
    **dict.fromkeys(_SERVER, "ChromaDB runs in the index daemon unless SEMANTIC_CHROMA_URL names a server"),
    "CHROMADB_PATH": _NO_FILES,
    "CHROMA_COLLECTION": "each index names its own collection",
    "FAISS_INDEX_DIR": _NO_FILES,
    "EMBEDDING_MODEL": _NO_MODEL,
    "SENTENCE_TRANSFORMER_MODEL": _NO_MODEL,
    "BEDROCK_EMBED_DIMENSIONS": "the model's own number of dimensions is used",
    **dict.fromkeys(_PAGE_SWITCHES, "everything is shown unless SEMANTIC_PAGES leaves it out"),
    "SEMANTIC_CHROMA_TENANT": "SEMANTIC_CHROMA_DATABASE names it, too",
    "SEMANTIC_MAX_PAGE_BYTES": "the first 2,000,000 bytes of each page are indexed",
    "SEMANTIC_SLOW_SEARCH": "searches that take a second or longer are logged",
    **{f"SEMANTIC_SHADOW_{each}": _TWO_MODELS for each in ("MODEL", "KEY", "URL", "OPTIONS", "SHARE")},
}
"""Variables of the earlier plugin and removed settings, and why they are not needed if they map to no setting."""
REMOVED = frozenset(name for name in _NOT_NEEDED if name.startswith("SEMANTIC_"))
"""Settings of 0.1 that only this version still accepts."""


@dataclass(frozen=True, slots=True)
class LegacyTool:
    """A tool under its name in MCP servers for Markdown files."""

    tool: str
    arguments: Mapping[str, str]
    """This plugin's arguments by their names there; others are not accepted."""
    about: str
    required: tuple[str, ...] = ()
    """Arguments that are required there, though the tool itself has defaults for them."""


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


def from_legacy_variables(
    variables: Mapping[str, str], accepts: Callable[[str, str], bool]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the settings for the variables of earlier searches and for removed settings, and a notice about each variable.

    Existing settings take precedence, then the earlier plugin's variables. `accepts` returns whether a setting accepts a value;
    other values are ignored with a notice.
    """
    names = (*_NOT_NEEDED, *(name for together, _ in _MEANINGS for name in together))
    given = {name: variables[name] for name in names if variables.get(name)}
    settings: dict[str, str] = {}
    notices: dict[tuple[str, ...], str] = {}
    for together, meaning in _MEANINGS:
        used = tuple(name for name in together if name in given)
        meant = meaning(variables) if used else {}
        if not meant:
            continue
        name = next(iter(meant))
        own = variables.get(name)
        if (own and not meant[name].endswith(f"/{own}")) or name in settings:
            by = "set" if own else f"that of {EARLIER_DISTRIBUTION}"
            notices[used] = f"ignored, because {name} is {by}"
        elif not all(accepts(*each) for each in meant.items()):
            notices[used] = f"ignored, because it makes no {name}"
        else:
            settings |= {each: value for each, value in meant.items() if each == name or not variables.get(each)}
            shown = ", ".join(f"{each}={value}" for each, value in meant.items())
            notices[used] = f"used as {shown}; set that instead"
    explained = {name for used in notices for name in used}
    notices |= {(name,): f"not needed: {_NOT_NEEDED[name]}" for name in given if name not in explained}
    origins = dict.fromkeys(REMOVED, "removed, and not known to the next version")
    origins |= dict.fromkeys(_OF_OTHER_SEARCHES, "of another search")
    lines = (
        f"{', '.join(used)} ({origins.get(used[0], f'of {EARLIER_DISTRIBUTION}')}): {what}" for used, what in notices.items()
    )
    return settings, tuple(lines)


def _server(given: Mapping[str, str]) -> dict[str, str]:
    """Return the address of the ChromaDB server if one was requested. A server was also the earlier plugin's default."""
    mode = given.get("CHROMADB_MODE") or ("server" if given.get("CHROMADB_HOST") else "local")
    if mode.lower() != "server" or _keeps_in_faiss(given):
        return {}
    host = given.get("CHROMADB_HOST") or "localhost"
    name = f"[{host}]" if ":" in host else host
    return {"SEMANTIC_CHROMA_URL": f"http://{name}:{given.get('CHROMADB_PORT') or '8000'}"}


def _model(given: Mapping[str, str]) -> dict[str, str]:
    """Return the earlier plugin's model with FAISS. With ChromaDB it used the model that is bundled here."""
    kind = (given.get("EMBEDDING_MODEL") or "local").lower()
    if not _keeps_in_faiss(given):
        return {}
    if kind == "bedrock":
        region = given.get("AWS_REGION") or given.get("AWS_DEFAULT_REGION")
        return {"SEMANTIC_MODEL": _TITAN} | ({"SEMANTIC_MODEL_OPTIONS": json.dumps({"region": region})} if region else {})
    if kind != "local":
        return {"SEMANTIC_MODEL": "minilm" if kind == "onnx" else kind}
    name = given.get("SENTENCE_TRANSFORMER_MODEL") or _SAME_MODEL
    is_bundled = name.removeprefix("sentence-transformers/") == _SAME_MODEL
    return {"SEMANTIC_MODEL": "minilm" if is_bundled else f"sentence-transformers:{name}"}


def _chunks(given: Mapping[str, str]) -> dict[str, str]:
    sizes = {"target": given.get("DOCUMENT_CHUNK_SIZE"), "overlap": given.get("DOCUMENT_CHUNK_OVERLAP")}
    return {"SEMANTIC_CHUNKS": "sections:" + ",".join(f"{name}={size}" for name, size in sizes.items() if size)}


def _database(given: Mapping[str, str]) -> dict[str, str]:
    database = given.get("SEMANTIC_CHROMA_DATABASE") or "default_database"
    return {"SEMANTIC_CHROMA_DATABASE": f"{given['SEMANTIC_CHROMA_TENANT']}/{database}"}


def _pages(given: Mapping[str, str]) -> dict[str, str]:
    hidden = {page for name, page in _PAGE_SWITCHES.items() if given.get(name, "").lower() in _OFF}
    return {"SEMANTIC_PAGES": ",".join(page for page in PAGES if page not in hidden)} if hidden else {}


def _keeps_in_faiss(given: Mapping[str, str]) -> bool:
    return given.get("VECTOR_BACKEND", "").lower() == "faiss"


_OF_OTHER_SEARCHES = ("DOCUMENT_CHUNK_SIZE", "DOCUMENT_CHUNK_OVERLAP", "OLLAMA_EMBEDDING_MODEL")
_MEANINGS: tuple[tuple[tuple[str, ...], Callable[[Mapping[str, str]], dict[str, str]]], ...] = (
    (_SERVER, _server),
    (("CHROMA_SYNC_INTERVAL",), lambda given: {"SEMANTIC_SYNC_INTERVAL": given["CHROMA_SYNC_INTERVAL"]}),
    (("EMBEDDING_MODEL", "SENTENCE_TRANSFORMER_MODEL"), _model),
    (("DOCUMENT_CHUNK_SIZE", "DOCUMENT_CHUNK_OVERLAP"), _chunks),
    (("SEMANTIC_CHROMA_TENANT",), _database),
    (tuple(_PAGE_SWITCHES), _pages),
    (("OLLAMA_EMBEDDING_MODEL",), lambda given: {"SEMANTIC_MODEL": f"ollama:{given['OLLAMA_EMBEDDING_MODEL']}"}),
)
"""Variables with the settings that they map to, most important first."""
