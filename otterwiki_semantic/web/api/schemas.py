"""JSON Schemas of requests and answers, generated from the records."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from otterwiki_semantic.core.parameters import Parameter, Schema, parameters_of
from otterwiki_semantic.core.records import (
    Answer,
    IndexStatus,
    Insight,
    Mode,
    PageInspection,
    PageList,
    PageView,
    Progress,
    RebuildStatus,
    ReindexStarted,
    RelatedPages,
    WikiMap,
)
from otterwiki_semantic.core.serialization import json_schemas
from otterwiki_semantic.web.errors import ErrorAnswer


class Answers(Struct, frozen=True):
    """The answers to several queries, in their order."""

    answers: tuple[Answer, ...]


class ChromaStatus(Struct, frozen=True):
    """The state of the vector store, as the earlier plugin shows it."""

    status: Literal["ok", "error"]
    collection: str | None
    document_count: int
    backend_type: Literal["chroma"] = "chroma"


_ANSWERS = (
    Answer,
    Answers,
    ChromaStatus,
    ErrorAnswer,
    IndexStatus,
    Insight,
    PageInspection,
    PageList,
    PageView,
    RebuildStatus,
    ReindexStarted,
    RelatedPages,
    WikiMap,
)
_EARLIER_NAMES = {
    "started_at": "started",
    "completed_at": "finished",
    "pages_indexed": "pages_done",
    "chunks_created": "chunks_done",
    "error_message": "error",
}
"""Fields of a rebuild's status that exist twice, for programs written for the earlier plugin."""


def answer_schemas() -> dict[str, Schema]:
    """Return the schema of every answer, by its name."""
    found = json_schemas(_ANSWERS)
    found["OpenApi"] = _object({"openapi": {"type": "string"}, "info": {"type": "object"}, "paths": {"type": "object"}})
    status, rebuild = found["IndexStatus"], found["RebuildStatus"]
    _remove(status, "index")
    commit: Schema = {"type": ["string", "null"]}
    _add(status, indexed_commit=commit, head_commit=commit, pending_pages={"type": "integer", "minimum": 0})
    status["properties"]["status"] = {"type": "string", "enum": ["ready", "indexing", "error"]}
    _remove(rebuild, "progress")
    _add(rebuild, **found[Progress.__name__]["properties"])
    reindex = found["ReindexStatus"] = _object(rebuild["properties"])
    earlier = {name: rebuild["properties"][theirs] for name, theirs in _EARLIER_NAMES.items()}
    _add(reindex, status={"enum": ["idle", "in_progress", "complete", "error"]}, **earlier)
    return found


def reference(name: str) -> Schema:
    """Return a reference to a named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def query_parameters(record: type, only: tuple[str, ...] = ()) -> list[Schema]:
    """Return the parameters of a record for a query string; if any are named, `only` those."""
    return [
        {
            "name": each.name,
            "in": "query",
            "required": each.is_required,
            "description": each.help,
            "schema": each.schema,
        }
        for each in parameters_of(record)
        if not only or each.name in only
    ]


def body_schema(record: type) -> Schema:
    """Return the schema of a body with the parameters of a record. Null stands for a missing parameter."""
    parameters = parameters_of(record)
    names = {each.name for each in parameters}
    return {
        "type": "object",
        "properties": {each.name: _in_body(each) for each in parameters},
        "required": [each.name for each in parameters if each.is_required],
        **(_SEMANTIC_RATIO_NEEDS_HYBRID if "semantic_ratio" in names else {}),
    }


_SEMANTIC_RATIO_NEEDS_HYBRID = {
    "if": {
        "properties": {"semantic_ratio": {"type": "number"}, "mode": {"enum": [Mode.SEMANTIC.value, Mode.KEYWORD.value]}},
        "required": ["semantic_ratio", "mode"],
    },
    "then": False,
}


def _in_body(each: Parameter) -> Schema:
    schema, described = each.schema, {"description": each.help}
    if each.is_required:
        return schema | described
    if each.type.is_list:
        return {"anyOf": [schema["items"], schema, {"type": "null"}]} | described
    nullable: dict[str, Any] = schema | described | {"type": [schema["type"], "null"]}
    return nullable | ({"enum": [*schema["enum"], None]} if "enum" in schema else {})


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _add(schema: Schema, **properties: Schema) -> None:
    schema["properties"] |= properties
    schema["required"] += properties


def _remove(schema: Schema, name: str) -> None:
    del schema["properties"][name]
    schema["required"].remove(name)
