"""The OpenAPI document is true and whole: schemathesis asks a served wiki what it says can be asked, and what cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import jsonschema_rs
import pytest
import requests
import schemathesis
from flask import Flask
from hypothesis import settings
from hypothesis.strategies import sampled_from
from schemathesis import Case
from schemathesis.specs.openapi.checks import allow_header_conformance, unsupported_method
from schemathesis.specs.openapi.schemas import OpenApiSchema

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.parameter_parsing import Parameter, parameters_of
from otterwiki_semantic.core.records import SearchOptions, SearchRequest
from otterwiki_semantic.core.serialization import Schema
from otterwiki_semantic.web.errors import ERRORS
from tests.support.live_wiki import KEY, LiveWiki, eventually

ROOT = "/api/v1"
WIKI = {"SEMANTIC_PAGES": ""}
DOCUMENT = "/semantic-search/openapi.json"
_LONGEST_ADDRESS = 60_000
_LIKE_OTHERS = (
    *("POST /semantic-search", "POST /semantic-search/ask", "GET /semantic-search/suggest", "GET /semantic-search/pages"),
    *("GET /pages", "GET /pages/{path}", "GET /semantic-search", "GET /related", "DELETE /semantic-search/pages/{path}"),
)
"""What has no kind of parameter that others do not have, for which each limit is asked for, also just outside."""
_OPERATIONS = [{"include-name": name, "phases": {"coverage": {"enabled": False}}} for name in _LIKE_OTHERS]
BEARER = {"Authorization": f"Bearer {KEY}"}
_OF_NO_OPERATION = "method_not_allowed"
_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


schemathesis.openapi.format("filter-expression", sampled_from(["tag:pipes", "NOT path:house/ OR category:house"]))


@pytest.fixture(scope="module")
def document(wiki: LiveWiki) -> Schema:
    found: Schema = wiki.api("GET", DOCUMENT, key=None).json
    return found


@pytest.fixture(scope="module")
def described(wiki: LiveWiki, document: Schema) -> OpenApiSchema:
    assert document["openapi"] == "3.1.0"
    schema = schemathesis.openapi.from_dict(document, config=schemathesis.Config.from_dict({"operations": _OPERATIONS}))
    schema.validate()
    schema.config.update(base_url=wiki.url + ROOT)
    schema.config.generation.update(max_examples=max(3, settings().max_examples // 25))
    rejection = schema.config.checks.negative_data_rejection
    rejection.expected_statuses = [*rejection.expected_statuses, "413"]
    return schema


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as kept:
        kept.trust_env = False  # looking for proxies takes a tenth of the time
        yield kept


def with_texts_read(value: Any, schema: Schema) -> Any:
    """A value of a body with the numbers and truth values that its texts show."""
    if isinstance(value, dict):
        kinds = schema.get("properties", {})
        return {name: with_texts_read(each, kinds.get(name, {})) for name, each in value.items()}
    if isinstance(value, list):
        kinds = schema.get("items", {})
        return [with_texts_read(each, kinds.get("anyOf", [kinds])[-1]) for each in value]
    types = schema.get("type", ())
    if "boolean" in types:
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        return _FLAGS.get(str(whole).strip().lower(), value)
    if {"integer", "number"}.intersection([types] if isinstance(types, str) else types) and isinstance(value, str):
        with suppress(ValueError):
            return float(value)
    return value


def without_conflicts(asked: dict[str, Any]) -> None:
    """Remove what JSON Schema cannot refuse: a ratio of another mode, and more results together than are allowed."""
    entries = [each for each in asked.get("queries") or () if isinstance(each, dict)]
    for each in (asked, *entries):
        if any(one.get("mode") in ("semantic", "keyword") for one in (asked, each)):
            each.pop("semantic_ratio", None)
        each.pop("offset", None)
        if asked.get("queries") and isinstance(each.get("limit"), int | float):
            each["limit"] = min(each["limit"], 50)
    if entries:
        asked.pop("semantic_ratio", None)


def without_two_changes(asked: dict[str, Any]) -> None:
    """Leave one change of a page: what is replaced, or what is appended."""
    for name in ("revision", "old", "new"):
        asked.pop(name, None)
    asked["append"] = asked.get("append") or "text"


operations = schemathesis.pytest.from_fixture("described")


@operations.parametrize()
@settings(derandomize=True)
def test_every_operation_keeps_to_the_document(case: Case[Any], session: requests.Session) -> None:
    is_negative = case.meta is not None and case.meta.generation.mode.is_negative
    if not is_negative and case.path == "/semantic-search":
        for asked in (case.query, case.body):
            if isinstance(asked, dict):
                without_conflicts(asked)
    if not is_negative and isinstance(case.body, dict) and case.method.upper() == "PATCH":
        without_two_changes(case.body)
    # Nor can JSON Schema say which texts show a number in a range: such a text is taken for it, as the document tells.
    content = case.operation.definition.raw.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    is_read = isinstance(case.body, dict) and jsonschema_rs.is_valid(schema, with_texts_read(case.body, schema))
    # An address that long is refused by the wiki's server itself, in its own words.
    is_refused = len(case.as_transport_kwargs()["url"]) + len(urlencode(case.query or {}, doseq=True)) > _LONGEST_ADDRESS
    if not is_refused and not (is_negative and is_read):
        # Where other plugins may sit, methods that are not ours are left to them and to the wiki.
        others = [unsupported_method, allow_header_conformance] if case.path.startswith("/pages") else []
        reply = case.call_and_validate(session=session, headers=BEARER, excluded_checks=others)
        answers = case.operation.definition.raw["responses"]
        if named := answers.get(str(reply.status_code), {}).get("$ref"):
            assert reply.json()["error"]["code"] in named.rpartition("/")[2].split("-")


def test_every_route_and_method_is_documented(app: Flask, document: Schema) -> None:
    routes = {}
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith("semantic_search.") and ".no_" not in rule.endpoint:
            answer = app.test_client().options(rule.rule)
            assert answer.status_code in {200, 204}
            path = rule.rule.removeprefix(ROOT).replace("<page_path:path>", "{path}")
            allowed_methods = set(answer.headers["Allow"].split(", ")) & (rule.methods or set())
            routes[path] = allowed_methods - {"HEAD", "OPTIONS"}
    assert routes == {path: {method.upper() for method in operations} for path, operations in document["paths"].items()}


def test_every_parameter_is_documented(document: Schema) -> None:
    options = {each.name for each in parameters_of(SearchOptions)}
    path = document["paths"]["/semantic-search"]
    assert {parameter["name"] for parameter in path["get"]["parameters"]} == {"q", "fields", "compat", *options}
    body = path["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {"query", "queries", "fields", *options}
    assert set(body["properties"]["queries"]["items"]["anyOf"][1]["properties"]) == {"query", "fields", *options}
    undescribed = [
        (name, parameter["name"])
        for name, operations in document["paths"].items()
        for operation in operations.values()
        for parameter in operation.get("parameters", ())
        if not parameter["description"]
    ]
    assert undescribed == []


def test_every_error_is_documented(document: Schema) -> None:
    assert {code for name in document["components"]["responses"] for code in name.split("-")} == set(ERRORS)
    referred = {
        answer.get("$ref")
        for path in document["paths"].values()
        for operation in path.values()
        for answer in operation["responses"].values()
    } - {None}
    of_operations = set(document["components"]["responses"]) - {_OF_NO_OPERATION}
    assert referred == {f"#/components/responses/{name}" for name in of_operations}


@pytest.mark.parametrize("media_type", ["application/json", "application/problem+json"])
def test_every_error_has_an_example(document: Schema, media_type: str) -> None:
    components = document["components"]
    for name, answer in components["responses"].items():
        described = answer["content"][media_type]
        assert set(described["examples"]) == set(name.split("-"))
        whole = described["schema"] | {"components": closed(components)}
        for code, example in described["examples"].items():
            shown = example["value"]
            assert [error.message for error in jsonschema_rs.Draft202012Validator(whole).iter_errors(shown)] == []
            assert (shown.get("code") or shown["error"]["code"]) == code


def test_searches_have_examples_that_are_valid(document: Schema) -> None:
    whole = {"components": closed(document["components"])}
    path = document["paths"]["/semantic-search"]
    described = [operation["responses"]["200"]["content"]["application/json"] for operation in path.values()]
    described.append(path["post"]["requestBody"]["content"]["application/json"])
    for each in described:
        assert len(each["examples"]) == 2
        for example in each["examples"].values():
            errors = jsonschema_rs.Draft202012Validator(each["schema"] | whole).iter_errors(example["value"])
            assert [error.message for error in errors] == []
    parameters = {each["name"]: each for each in path["get"]["parameters"]}
    for name in ("q", "limit", "offset", "fields", "highlight", "crop"):
        assert jsonschema_rs.is_valid(parameters[name]["schema"], parameters[name]["example"])


def test_operations_are_named_for_generators(document: Schema) -> None:
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch("[a-z]+([A-Z][a-z]+)*", name)] == []


def closed(schema: Any) -> Any:
    """A schema with nothing allowed that it does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(part) for name, part in schema.items()}
    return inner | {"additionalProperties": False} if isinstance(schema.get("properties"), dict) and "type" in schema else inner


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/semantic-search?q=radiator&n=50&context=3&facets=true&explain=true", 200, None),
        ("GET", "/semantic-search?q=radiator&compat=true&explain=true", 200, None),
        ("POST", "/semantic-search", 200, {"queries": ["frost", "siren"], "mode": "keyword", "context": 1, "explain": True}),
        ("POST", "/semantic-search", 200, {"query": "frost", "highlight": "html"}),
        ("POST", "/semantic-search", 200, {"queries": ["frost", {"query": "siren", "limit": 1}], "fields": ["path", "score"]}),
        ("GET", "/semantic-search?q=radiator&fields=path,title&highlight=ranges&crop=20&offset=1&limit=3", 200, None),
        ("GET", "/semantic-search/suggest?q=radi&n=50", 200, None),
        ("GET", "/semantic-search/status", 200, None),
        ("GET", "/related?path=home", 200, None),
        ("GET", "/semantic-search/insight", 200, None),
        ("GET", "/semantic-search/insight/house/heating", 200, None),
        ("GET", "/semantic-search/insight/hom", 404, None),
        ("GET", "/semantic-search/map", 200, None),
        ("GET", "/semantic-search/health?kind=orphan&dismissed=true", 200, None),
        ("POST", "/semantic-search/health/dismissals", 404, {"findings": ["0123456789abcdef"]}),
        ("GET", "/pages?prefix=h&limit=1&offset=0", 200, None),
        ("GET", "/semantic-search/pages/home", 200, None),
        ("GET", "/pages/home?section=nowhere", 404, None),
        ("POST", "/reindex", 202, {"pages": ["home"]}),
        ("GET", "/related?path=nowhere", 404, None),
        ("POST", "/reindex", 202, None),
        ("GET", "/reindex/status", 200, None),
        ("GET", "/reindex/status?job=nobody", 404, None),
        ("GET", "/chroma-status", 200, None),
    ],
)
def test_every_field_of_an_answer_is_documented(
    wiki: LiveWiki, document: Schema, method: str, path: str, status: int, body: Any
) -> None:
    eventually(lambda: wiki.api("GET", "/reindex/status").json["state"] != "running")
    reply = wiki.api(method, path, json_body=body)
    assert reply.status == status
    route = path.partition("?")[0]
    described = re.sub("/(pages|insight)/.*", r"/\1/{path}", route)
    operation = document["paths"][described][method.lower()]
    answer = operation["responses"][str(status)]
    error = {"$ref": "#/components/schemas/ErrorAnswer"}
    schema = answer["content"]["application/json"]["schema"] if "content" in answer else error
    whole = schema | {"components": closed(document["components"])}
    assert [error.message for error in jsonschema_rs.Draft202012Validator(whole).iter_errors(reply.json)] == []


def test_the_fields_of_the_earlier_plugins_types_are_described_anew(document: Schema) -> None:
    plain, compat = (document["components"]["schemas"][name]["properties"] for name in ("Hit", "CompatHit"))
    assert set(plain) == set(compat)
    assert {name for name in plain if plain[name] != compat[name]} == {"distance", "section_path"}
    assert (compat["distance"]["type"], compat["section_path"]["type"]) == ("number", "string")
    assert "`Page > Heading`" in compat["section_path"]["description"]


def test_results_of_a_full_search_have_every_documented_field(wiki: LiveWiki, document: Schema) -> None:
    unneeded = {"not_shown", "kind", "attached_to", "attached_to_title", "page_number"}  # these pages are shown, and no files
    expected = set(document["components"]["schemas"]["Hit"]["properties"]) - unneeded

    def missing() -> set[str]:
        found = wiki.search(
            "bleeding a radiator",
            n=50,
            max_chunks_per_page=5,
            context=3,
            units=3,
            explain="true",
            best_sentence="true",
            markdown="true",
        )
        found += [hit for highlight in ("html", "ranges") for hit in wiki.search("radiator", highlight=highlight)]
        return expected ^ set().union(*found)

    eventually(lambda: not missing(), why="a rebuild that another test has asked for may still run")


def test_every_value_of_a_search_is_documented_as_it_is_checked(document: Schema) -> None:
    parsed = {each.name: each for each in parameters_of(SearchRequest)}
    for parameter in document["paths"]["/semantic-search"]["get"]["parameters"]:
        name, schema = parameter["name"], parameter["schema"]
        tried = values_of(schema)
        wanted = [value for value in tried if jsonschema_rs.is_valid(schema, value, validate_formats=True)]
        assert 0 < len(wanted) < len(tried)
        assert [value for value in tried if is_parsed(parsed[name], value)] == wanted, name


def is_parsed(parameter: Parameter, value: object) -> bool:
    try:
        parameter.parse(value)
    except ParameterError:
        return False
    return True


def values_of(schema: Schema) -> list[Any]:
    """Return values at the limits of a schema and beyond them, and of another type."""
    others: list[Any] = [{}, [{}], None, "\x1b"]
    match schema:
        case {"format": "filter-expression", "maxLength": most}:
            return [{}, [{}], None, "tag:pipes", f"tag:{'x' * most}"]
        case {"enum": choices}:
            return [*others, *choices]
        case {"minimum": least, "maximum": most}:
            return [*others, least - 1, least, most, most + 1]
        case {"type": "array", "items": items, "maxItems": most}:
            each = values_of(items)
            good = next(value for value in each if jsonschema_rs.is_valid(items, value))
            return [*others, [good] * most, [good] * (most + 1), *([value] for value in each)]
        case {"maxLength": most}:
            return [*others, "", "x" * most, "x" * (most + 1)]
        case {"type": "boolean"}:
            return [*others, True, False, "maybe", 2]
    return [*others, "2026-01-31", "2026-01-31T12:00:00Z", "2026-02-31", "tomorrow"]


@pytest.mark.parametrize("name", ["q", "category"])
def test_texts_are_documented_as_they_are_checked(document: Schema, name: str) -> None:
    parameters = document["paths"]["/semantic-search"]["get"]["parameters"]
    pattern = jsonschema_rs.validator_for(next(each["schema"] for each in parameters if each["name"] == name))
    parsed = next(each for each in parameters_of(SearchRequest) if each.name == name)
    characters = [chr(number) for number in range(0x3100) if chr(number) != "\ufeff"]
    texts = (text for one in characters for text in (one, f"x{one}"))
    assert [text for text in texts if pattern.is_valid(text) != is_parsed(parsed, text)] == []


def test_the_document_names_the_path_the_wiki_is_served_below(app: Flask) -> None:
    client = app.test_client()
    assert client.get(ROOT + DOCUMENT).get_json()["servers"] == [{"url": "/api/v1"}]
    below = client.get(ROOT + DOCUMENT, environ_overrides={"SCRIPT_NAME": "/wiki"}).get_json()
    assert below["servers"] == [{"url": "/wiki/api/v1"}]
