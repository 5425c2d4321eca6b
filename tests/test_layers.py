"""A module imports only from layers below its own."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "otterwiki_semantic"
LAYERS = (
    {"config", "errors", "insight_records", "logfmt", "map_records", "moving_in", "page_records", "records"},
    {"chunking", "frontmatter", "links", "markdown", "outline", "packing", "pages", "pieces", "plaintext"}
    | {"profiles", "spelling", "terms", "wikisyntax"},
    {"drafting", "evaluation", "fusion", "neighbours", "problems", "projecting", "query", "relevance"} | {"resemblance"},
    {"catalog", "chroma_server", "claims", "database", "directory", "flat", "lookup", "map_file", "quoting", "repository"}
    | {"server_vectors", "upkeep", "vectors"}
    | {"embedding", "embedding.answers", "embedding.asking", "embedding.chroma_quirks", "embedding.chroma_service"}
    | {"embedding.estimating", "embedding.facts", "embedding.files_digest", "embedding.http_server"}
    | {"embedding.inference", "embedding.local_model", "embedding.minilm_model", "embedding.ollama_api"}
    | {"embedding.onnx_directory", "embedding.onnx_model", "embedding.openai_api", "embedding.opening"}
    | {"embedding.options", "embedding.passages", "embedding.sentence_transformer_model", "embedding.served"}
    | {"embedding.whole", "embedding.windows"}
    | {"reranking", "reranking.bounded", "reranking.cohere", "reranking.cross_encoder"},
    {"acceptance", "candidates", "diversity", "generation", "generations", "indexer", "insight", "jobs", "joining"}
    | {"finishing", "keeper", "map_process", "mapping", "metrics", "monitoring", "progress", "query_vectors"}
    | {"rebuilding", "related", "rereading", "search_log", "searcher", "seeing", "similarity_scale"}
    | {"slow_searches", "sync_log", "watching", "way"},
    {"comparing", "detached", "local_index", "measuring", "owner", "parameters", "presentation", "protocol"}
    | {"reading", "remote_index", "running_owner", "service"}
    | {"doctor", "doctor.asking", "doctor.case", "doctor.configuration", "doctor.data_directory"}
    | {"doctor.examination", "doctor.finding", "doctor.git", "doctor.index", "doctor.installation", "doctor.model"}
    | {"doctor.packages", "doctor.patience", "doctor.room", "doctor.running_wiki", "doctor.serving", "doctor.vector_store"},
    {"cli", "cli_doctor", "cli_eval", "cli_index", "cli_mcp", "plugin"}
    | {"mcp_server", "mcp_server.answer", "mcp_server.arguments", "mcp_server.guidance", "mcp_server.http_access"}
    | {"mcp_server.local_wiki", "mcp_server.marking", "mcp_server.note_answer", "mcp_server.pages_answer"}
    | {"mcp_server.reindexing", "mcp_server.related_answer", "mcp_server.resources", "mcp_server.rest_wiki"}
    | {"mcp_server.search_answer", "mcp_server.sections_answer", "mcp_server.server", "mcp_server.serving"}
    | {"mcp_server.status_answer", "mcp_server.tokens", "mcp_server.tool_errors", "mcp_server.tools"}
    | {"mcp_server.wiki"}
    | {"web", "web.access", "web.admin", "web.answer_schemas", "web.api", "web.bounds", "web.charts", "web.errors"}
    | {"web.excerpts", "web.found", "web.frame", "web.injections", "web.map_page", "web.near", "web.openapi"}
    | {"web.pages", "web.request_schemas", "web.text_fragments"},
)
ROOT_NAME = "otterwiki_semantic"


def modules() -> dict[str, Path]:
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            names[name] = path
    return names


def imports(path: Path) -> set[str]:
    """Every module of this package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == ROOT_NAME:
            base = node.module.removeprefix(ROOT_NAME).strip(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".strip(".")
                found.add(full if full in modules() else base)
    return found - {""}


def test_every_module_has_a_layer() -> None:
    assert set(modules()) == set().union(*LAYERS)


def test_imports_point_down_or_stay_in_their_layer() -> None:
    layer_of = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    upward = [
        (name, target) for name, path in modules().items() for target in imports(path) if layer_of[target] > layer_of[name]
    ]
    assert upward == []


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {name: imports(path) for name, path in modules().items()}

    def reaches(start: str, goal: str, seen: set[str]) -> bool:
        return any(
            target == goal or (target not in seen and not seen.add(target) and reaches(target, goal, seen))  # type: ignore[func-returns-value]
            for target in graph[start]
        )

    assert [name for name in graph if reaches(name, name, set())] == []


def test_only_the_edges_know_flask_and_the_wiki() -> None:
    inner = set().union(*LAYERS[:-1])
    offenders = []
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            targets = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            targets += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            offenders += [
                (name, target) for target in targets if target.split(".")[0] in {"flask", "otterwiki"} and name in inner
            ]
    assert offenders == []


def test_no_module_holds_more_than_one_idea() -> None:
    assert [name for name, path in modules().items() if len(path.read_text().splitlines()) > 400] == []
