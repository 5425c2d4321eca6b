"""Answers that only the API has, and JSON Schemas of requests, generated from their records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from msgspec import Struct

from otterwiki_semantic.core.parameters import Parameter, Request, parameters_of
from otterwiki_semantic.core.records import Answer, ChromaFill, ChromaState, Mode, QueryRequest
from otterwiki_semantic.core.serialization import Schema
from otterwiki_semantic.web.api.examples import PARAMETERS


class Answers(Struct, frozen=True):
    """The answers to several queries, in their order."""

    answers: tuple[Answer, ...]


class ChromaStatus(Struct, frozen=True):
    """The state of the vector store, as the earlier plugin shows it."""

    status: Literal["ok", "error"]
    collection: str | None
    document_count: int
    """What the collection holds, as counted after the last write."""
    backend_type: Literal["chroma"] = "chroma"
    pending: int = 0
    """Texts of the index that the collection lacks."""
    outdated: int = 0
    """Texts whose metadata in the collection is not up to date."""
    complete_at: str | None = None
    """When the collection last held exactly what the index has (ISO 8601, UTC)."""
    complete_commit: str | None = None
    """The commit that it equalled then."""

    @classmethod
    def of(cls, fill: ChromaFill | None) -> ChromaStatus:
        """Return the state of a collection; None stands for no index."""
        if fill is None or fill.state is ChromaState.RESTING:
            return cls("error", fill.collection if fill else None, 0)
        return cls(
            status="ok",
            collection=fill.collection,
            document_count=fill.count or 0,
            pending=fill.pending,
            outdated=fill.outdated,
            complete_at=fill.complete_at,
            complete_commit=fill.complete_commit,
        )


class OpenApi(Struct, frozen=True):
    """An OpenAPI document."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]


def query_parameters(record: type[Request], only: tuple[str, ...] = ()) -> list[Schema]:
    """Return the parameters of a record for a query string; if any are named, `only` those."""
    return [_in_query(each) for each in parameters_of(record) if not only or each.name in only]


def _in_query(each: Parameter) -> Schema:
    is_joined = "enum" in each.values.get("items", {})
    return {
        "name": each.name,
        "in": "query",
        "required": each.is_required,
        "description": each.help,
        "schema": each.schema | ({"minItems": 1} if is_joined else {}),
        **({"explode": False} if is_joined else {}),
        **({"example": PARAMETERS[each.name]} if each.name in PARAMETERS else {}),
    }


def body_schema(record: type[Request]) -> Schema:
    """Return the schema of a body with the parameters of a record. Null stands for a missing parameter."""
    parameters = parameters_of(record)
    names = {each.name for each in parameters}
    return {
        "type": "object",
        "properties": {each.name: _in_body(each) for each in parameters},
        "required": [each.name for each in parameters if each.is_required],
        "additionalProperties": False,
        **_conditions(names),
    }


def _conditions(names: Collection[str]) -> Schema:
    """Return which parameters go together."""
    either = _QUERY_OR_QUERIES if "queries" in names else {}
    return {**_SEMANTIC_RATIO_NEEDS_HYBRID, **({"else": either} if either else {})} if "semantic_ratio" in names else {}


_QUERY_OR_QUERIES: Schema = {
    "if": {"properties": {"queries": {"type": "array"}}, "required": ["queries"]},
    "then": {"properties": {"query": {"type": "null"}}},
    "else": {"properties": {"query": {"type": "string"}}, "required": ["query"]},
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
    if each.name == "queries":
        query = body_schema(QueryRequest)
        return schema | described | {"items": {"anyOf": [query["properties"]["query"], query]}}
    if each.repeats:
        return {"anyOf": [schema["items"], schema, {"type": "null"}]} | described
    nullable: dict[str, Any] = schema | described | {"type": [schema["type"], "null"]}
    return nullable | ({"enum": [*schema["enum"], None]} if "enum" in schema else {})
