"""Answers that only the API has, and JSON Schemas of requests, generated from their records."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from otterwiki_semantic.core.parameters import Parameter, Schema, parameters_of
from otterwiki_semantic.core.records import Answer, Mode


class Answers(Struct, frozen=True):
    """The answers to several queries, in their order."""

    answers: tuple[Answer, ...]


class ChromaStatus(Struct, frozen=True):
    """The state of the vector store, as the earlier plugin shows it."""

    status: Literal["ok", "error"]
    collection: str | None
    document_count: int
    backend_type: Literal["chroma"] = "chroma"


class OpenApi(Struct, frozen=True):
    """An OpenAPI document."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]


def query_parameters(record: type, only: tuple[str, ...] = ()) -> list[Schema]:
    """Return the parameters of a record for a query string; if any are named, `only` those."""
    return [
        {"name": each.name, "in": "query", "required": each.is_required, "description": each.help, "schema": each.schema}
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
        "additionalProperties": False,
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
