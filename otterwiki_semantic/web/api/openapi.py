"""The OpenAPI document of the API, with JSON Schemas of requests and examples. Public, without data of the wiki."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from msgspec import to_builtins

from otterwiki_semantic import __version__
from otterwiki_semantic.core.parameter_parsing import Parameter, Request, parameters_of
from otterwiki_semantic.core.records import Answer, Freshness, Hit, Mode, QueryRequest, TotalHits
from otterwiki_semantic.core.serialization import Schema, json_schemas
from otterwiki_semantic.web.answer_stream import EVENTS_TYPE
from otterwiki_semantic.web.api.answers import ChromaStatus
from otterwiki_semantic.web.api.operations import MAX_BODY_BYTES, MAX_QUERY_STRING_BYTES, OPERATIONS, Access, Operation
from otterwiki_semantic.web.errors import (
    ERRORS,
    JSON_TYPE,
    PROBLEM_TYPE,
    REQUEST_ID_HEADER,
    REQUEST_ID_PATTERN,
    ErrorAnswer,
    ProblemDetails,
    error_facts,
)

_COMMIT = "dbf15600c1d24b0e9c1a5f7d3e8b2a4f6c9d0e1b"
_FIELDS = ("path", "title", "url", "score")

_PARAMETERS = {
    "q": "sprinkler schedule for vegetables",
    "limit": 10,
    "offset": 10,
    "fields": [*_FIELDS],
    "filter": "tag:garden AND NOT path:archive/",
    "highlight": "html",
    "crop": 30,
}
"""Examples of query string parameters, by name."""
_QUERIES = ["burst pipe", {"query": "frost", "limit": 10, "filter": "tag:garden"}]
BODIES: Mapping[str, Any] = MappingProxyType(
    {
        "one query": {"query": "sprinkler schedule for vegetables", "limit": 10, "offset": 10, "tag": ["garden"]},
        "several queries": {"queries": _QUERIES, "limit": 3, "fields": [*_FIELDS]},
    }
)
"""Examples of search bodies, by purpose."""

_HIT = Hit(
    path="garden/irrigation",
    title="Irrigation",
    section="Winter",
    breadcrumb="Irrigation > Winter",
    url="/garden/irrigation#winter",
    score=13.558462,
    relevant=True,
    similarity=0.542338,
    distance=0.457662,
    excerpt="Before the first frost: close both valves.",
    excerpt_html="Before the first <mark>frost</mark>: close both valves.",
    text="[Irrigation > Winter] Before the first frost: close both valves.",
    text_start_line=17,
    text_end_line=19,
    snippet="[Irrigation > Winter] Before the first frost: close both valves.",
    prefix_length=22,
    overlap_length=0,
    highlights=((39, 44),),
    category="garden",
    tags=("garden", "zigbee"),
    updated="2026-11-21T09:30:00+00:00",
    also_on=(),
    name="irrigation",
    section_path=("Irrigation", "Winter"),
    headings=("Winter",),
    anchor="winter",
    start_line=17,
    end_line=19,
    chunk_index=1,
    total_chunks=2,
    page_word_count=103,
)
_WHOLE: dict[str, Any] = to_builtins(
    Answer(
        query="frost",
        total=1,
        total_hits=TotalHits(20, "gte"),
        confident=True,
        processing_ms=3.1,
        index=Freshness(_COMMIT, _COMMIT, 0),
        results=(_HIT,),
    )
)
_CHOSEN: dict[str, Any] = _WHOLE | {"results": [{name: _WHOLE["results"][0][name] for name in _FIELDS}]}

ANSWER: Mapping[str, Any] = MappingProxyType({"whole": _WHOLE, "chosen fields": _CHOSEN})
"""Examples of answers to one query, by content."""
ANSWERS: Mapping[str, Any] = MappingProxyType({"several queries": {"answers": [_WHOLE]}, "one query": _WHOLE})
"""Examples of answers to a POST, by request."""


def _in_query(each: Parameter) -> Schema:
    is_joined = "enum" in each.values.get("items", {})
    return {
        "name": each.name,
        "in": "query",
        "required": each.is_required,
        "description": each.help,
        "schema": each.schema | ({"minItems": 1} if is_joined else {}),
        **({"explode": False} if is_joined else {}),
        **({"example": _PARAMETERS[each.name]} if each.name in _PARAMETERS else {}),
    }


def _body_schema(record: type[Request]) -> Schema:
    """Return the schema of a body with the parameters of a record. Null equals a missing parameter."""
    parameters = parameters_of(record)
    properties = {each.name: _in_body(each) for each in parameters}
    return {
        "type": "object",
        "properties": properties,
        "required": [each.name for each in parameters if each.is_required],
        "additionalProperties": False,
        **(_SEMANTIC_RATIO_NEEDS_HYBRID if "semantic_ratio" in properties else {}),
        **({"else": _QUERY_OR_QUERIES} if "queries" in properties else {}),
    }


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
        query = _body_schema(QueryRequest)
        return schema | described | {"items": {"anyOf": [query["properties"]["query"], query]}}
    if each.repeats:
        return {"anyOf": [schema["items"], schema, {"type": "null"}]} | described
    nullable: dict[str, Any] = schema | described | {"type": [schema["type"], "null"]}
    return nullable | ({"enum": [*schema["enum"], None]} if "enum" in schema else {})


METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus's text format."""
_ABOUT = (
    "Search a wiki by meaning and keywords. Unknown parameters are rejected. HEAD is supported wherever GET is. "
    f"A query string has at most {MAX_QUERY_STRING_BYTES:,} bytes, a body at most {MAX_BODY_BYTES:,}. "
    "In a body, numbers and booleans may be given as strings. "
    "A key must be correct even where none is needed."
)
_SCHEMES = {
    "key": {"type": "http", "scheme": "bearer", "description": "The wiki's `OTTERWIKI_API_KEY`: may search and reindex."},
    "session": {"type": "apiKey", "in": "cookie", "name": "session", "description": "A login to the wiki."},
    "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRFToken", "description": "The session's token, from any form."},
}
_SECURITY: dict[Access, list[dict[str, list[str]]]] = {
    Access.ANYONE: [],
    Access.READERS: [{"key": []}, {"session": []}, {}],  # the last: anonymous users, if the wiki is public
    Access.WRITERS: [{"key": []}, {"session": []}],
    Access.ADMINISTRATORS: [{"key": []}, {"session": []}],
    Access.MONITORS: [{"key": []}, {"session": []}, {}],  # the last: programs on the wiki's machine
}
_WITH_CSRF = {Access.WRITERS, Access.ADMINISTRATORS}
"""Callers who need the session's CSRF token for changes."""
_KEY_ERRORS = {"unauthorized", "wrong_key", "no_key_configured", "forbidden"}
_PAGE: Schema = {
    "name": "path",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
    "description": "The page's path, with or without `.md`, in any case.",
}
_RETRY_AFTER = {"Retry-After": {"required": True, "description": "Seconds.", "schema": {"type": "integer"}}}
_HEADERS: dict[int, dict[str, Schema]] = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"const": "Bearer"}}},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}

_NAMED: dict[str, Schema] = {
    REQUEST_ID_HEADER: {
        "required": True,
        "description": "The request's header of this name if that is valid, else a new id.",
        "schema": {"type": "string", "pattern": f"^{REQUEST_ID_PATTERN}$"},
    }
}


def openapi_document(root: str) -> dict[str, Any]:
    """Return the document of all operations; `root` is the path below which the wiki is served, or empty."""
    return {**_document(), "servers": [{"url": f"{root}/api/v1"}]}


@cache
def _document() -> dict[str, Any]:
    operations = [made for made, _ in OPERATIONS]
    paths: dict[str, dict[str, Any]] = {}
    for made in operations:
        paths.setdefault(made.path, {})[made.method.lower()] = _operation(made)
    groups = [*map(_by_status, operations), {405: ["method_not_allowed"]}]  # the last: for methods that are not in the document
    errors = {"-".join(codes): _error_response(status, codes) for grouped in groups for status, codes in grouped.items()}
    schemas = json_schemas({ErrorAnswer, ProblemDetails, *(record for made in operations for record in _answers(made))})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "otterwiki-semantic",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas, "responses": errors, "securitySchemes": _SCHEMES},
    }


def _operation(made: Operation) -> dict[str, Any]:
    security = _SECURITY[made.access]
    if made.method != "GET" and made.access in _WITH_CSRF:
        security = [{"key": []}, {"session": [], "csrf": []}]
    success = {"description": made.summary, "headers": _NAMED, "content": _content(made)}
    # For users of the earlier plugin, /chroma-status has no error body.
    without_error = {"503": success | {"description": "The index cannot answer now"}} if made.answer is ChromaStatus else {}
    refused = {str(status): {"$ref": "#/components/responses/" + "-".join(codes)} for status, codes in _by_status(made).items()}
    return {
        "operationId": made.name,
        "summary": made.summary,
        "security": security,
        **_request(made),
        "responses": {str(made.status): success, **refused, **without_error},
    }


def _request(made: Operation) -> dict[str, Any]:
    parameters = [_PAGE] if "{path}" in made.path else []
    if made.takes is not None and (made.body is None or made.in_query):
        parameters += [_in_query(each) for each in parameters_of(made.takes) if not made.in_query or each.name in made.in_query]
    found: dict[str, Any] = {"parameters": parameters} if parameters else {}
    if made.body and made.takes:
        content = _json(_body_schema(made.takes), made.body_examples)
        found["requestBody"] = {"required": made.body == "required", "content": content}
    return found


def _content(made: Operation) -> dict[str, Any]:
    if made.answer is str:
        return {METRICS_TYPE: {"schema": {"type": "string"}}}
    first, *others = map(_reference, _answers(made))
    events = {EVENTS_TYPE: {"schema": {"type": "string"}}} if made.has_events else {}
    return _json({"anyOf": [first, *others]} if others else first, made.examples) | events


def _answers(made: Operation) -> tuple[type, ...]:
    return made.answer, *made.variants


def _by_status(made: Operation) -> dict[int, list[str]]:
    codes = {"invalid_parameter", "uri_too_long", "internal_error", *made.errors}
    codes |= _KEY_ERRORS if made.access is not Access.ANYONE else set()
    codes |= {"index_unavailable"} if made.access in {Access.READERS, *_WITH_CSRF} else set()
    codes |= {"bad_request", "too_large"} if made.body else set()
    codes |= {"csrf_failed"} if made.refuses_other_sites or (made.method != "GET" and made.access in _WITH_CSRF) else set()
    grouped: dict[int, list[str]] = {}
    for code, kind in ERRORS.items():
        if code in codes:
            grouped.setdefault(kind.status, []).append(code)
    return grouped


def _error_response(status: int, codes: list[str]) -> dict[str, Any]:
    request_id = "0b5a3c6e9d1f4e7a8c2b6d4f1e3a5b7c"
    plain = {code: error_facts(code, ERRORS[code].example, request_id=request_id, **ERRORS[code].facts) for code in codes}
    details = {code: ProblemDetails.of(answer, "/api/v1/semantic-search") for code, answer in plain.items()}
    return {
        "description": "; ".join(f"`{code}`: {ERRORS[code].meaning}" for code in codes),
        "content": {
            JSON_TYPE: {"schema": _reference(ErrorAnswer), "examples": _examples(plain)},
            PROBLEM_TYPE: {"schema": _reference(ProblemDetails), "examples": _examples(details)},
        },
        "headers": _NAMED | _HEADERS.get(status, {}),
    }


def _examples(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {code: {"value": to_builtins(answer)} for code, answer in answers.items()}


def _reference(record: type) -> Schema:
    return {"$ref": f"#/components/schemas/{record.__name__}"}


def _json(schema: Schema, examples: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {JSON_TYPE: {"schema": schema} | ({"examples": _examples(examples)} if examples else {})}
