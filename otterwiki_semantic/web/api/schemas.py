"""JSON Schemas of requests, generated from their records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from otterwiki_semantic.core.parameters import Parameter, Request, parameters_of
from otterwiki_semantic.core.records import Mode, QueryRequest
from otterwiki_semantic.core.serialization import Schema
from otterwiki_semantic.web.api.examples import PARAMETERS


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
