"""The OpenAPI document of the API.

Anyone may read it, without key or login: it tells of the plugin what its source code tells, and nothing of the wiki.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from otterwiki_semantic import __version__
from otterwiki_semantic.daemon import METRICS_TYPE
from otterwiki_semantic.web.api.answer_schemas import Schema, answer_schemas, reference
from otterwiki_semantic.web.api.request_body import MAX_BODY_BYTES, MAX_QUERY_STRING_BYTES
from otterwiki_semantic.web.api.request_schemas import (
    batch_schema,
    listing_parameters,
    page_parameters,
    query_parameters,
    reindex_parameters,
    reindex_schema,
    related_parameters,
    seen_page_parameters,
)
from otterwiki_semantic.web.errors import ERRORS

_OPENAPI = "3.1.0"
_ABOUT = (
    "Finds passages of a wiki by meaning and by words. Parameters that are not listed are ignored. GET takes HEAD, too. "
    f"A query string has at most {MAX_QUERY_STRING_BYTES:,} bytes, a body at most {MAX_BODY_BYTES:,}. "
    "In a body, text is taken for the number or truth value it shows. "
    "A key that is sent has to be right, even where none is needed."
)
_SCHEMES = {
    "key": {"type": "http", "scheme": "bearer", "description": "The wiki's `OTTERWIKI_API_KEY`: may search and reindex."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "session",
        "description": "A login to the wiki; may what the wiki lets the account do.",
    },
    "csrf": {
        "type": "apiKey",
        "in": "header",
        "name": "X-CSRFToken",
        "description": "The token of the session, from any form of the wiki.",
    },
}
_READERS: list[dict[str, list[str]]] = [{"key": []}, {"session": []}, {}]
"""The last one is nobody, who may read if the wiki is open to read."""
_READING_ADMINISTRATORS: list[dict[str, list[str]]] = [{"key": []}, {"session": []}]
_ADMINISTRATORS: list[dict[str, list[str]]] = [{"key": []}, {"session": [], "csrf": []}]
_MONITORS: list[dict[str, list[str]]] = [{"key": []}, {"session": []}, {}]
"""The last one is a program on the machine that the wiki runs on."""
_EVERYONE: list[dict[str, list[str]]] = []
_OF_ALL = ("uri_too_long", "internal_error")
_OF_READERS = ("unauthorized", "wrong_key", "no_key_configured", "forbidden", "index_unavailable", *_OF_ALL)
_OF_SEARCH = (*_OF_READERS, "invalid_parameter")
_OF_BATCH = (*_OF_SEARCH, "bad_request", "too_large")
_OF_RELATED = (*_OF_SEARCH, "page_unknown")
_OF_SEEN = (*_OF_READERS, "page_unknown")
_OF_PAGE = (*_OF_SEARCH, "page_unknown", "revision_unknown", "section_unknown", "section_ambiguous")
_OF_METRICS = ("unauthorized", "wrong_key", "no_key_configured", "forbidden", "not_found", "package_missing", *_OF_ALL)
_OF_REINDEX = (*_OF_BATCH, "page_unknown", "csrf_failed", "reindex_running", "disk_full")
_HEADERS: dict[int, dict[str, Schema]] = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"const": "Bearer"}}},
    503: {"Retry-After": {"required": True, "description": "Seconds.", "schema": {"type": "integer"}}},
}


def openapi_document(root: str) -> dict[str, Any]:
    """Give the document of a wiki whose addresses begin with `root`, which is empty unless it is served below a path."""
    return {**_document(), "servers": [{"url": f"{root}/api/v1"}]}


@cache
def _document() -> dict[str, Any]:
    return {
        "openapi": _OPENAPI,
        "info": {
            "title": "otterwiki-semantic",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": _paths(),
        "components": {"schemas": answer_schemas(), "responses": _refusals(), "securitySchemes": _SCHEMES},
    }


def _paths() -> dict[str, Any]:
    return {
        "/semantic-search": {
            "get": _operation("search", "Search", "Answer", _OF_SEARCH, _READERS, parameters=query_parameters()),
            "post": _operation(
                "searchMany",
                "Search for several queries at once",
                "Answers",
                _OF_BATCH,
                _READERS,
                requestBody={"required": True, "content": _json(batch_schema())},
            ),
        },
        "/semantic-search/status": {
            "get": _operation("status", "What the index holds and how it is", "IndexStatus", _OF_READERS, _READERS)
        },
        "/semantic-search/map": {
            "get": _operation("map", "The place of every page on the map of the wiki", "WikiMap", _OF_READERS, _READERS)
        },
        "/semantic-search/metrics": {"get": _metrics()},
        "/semantic-search/openapi.json": {
            "get": _operation("openapi", "This document", "OpenApi", _OF_ALL, _EVERYONE),
        },
        "/related": {
            "get": _operation(
                "related",
                "Pages near in meaning to one",
                "RelatedPages",
                _OF_RELATED,
                _READERS,
                parameters=related_parameters(),
            )
        },
        "/semantic-search/pages": {"get": _pages("pages")},
        "/semantic-search/pages/{path}": {"get": _page("page")},
        "/pages": {"get": _pages("pagesToo")},
        "/pages/{path}": {"get": _page("pageToo")},
        "/semantic-search/insight": {
            "get": _operation("insight", "How the index works", "Insight", _OF_READERS, _READING_ADMINISTRATORS)
        },
        "/semantic-search/insight/{path}": {
            "get": _operation(
                "seenPage",
                "A page as search sees it",
                "PageInspection",
                _OF_SEEN,
                _READING_ADMINISTRATORS,
                parameters=seen_page_parameters(),
            )
        },
        "/reindex": {
            "post": _operation(
                "reindex",
                "Build a new index beside the serving one",
                "Started",
                _OF_REINDEX,
                _ADMINISTRATORS,
                status=202,
                parameters=reindex_parameters(),
                requestBody={"required": False, "content": _json(reindex_schema())},
            )
        },
        "/reindex/status": {
            "get": _operation("reindexStatus", "How far the last rebuild is", "ReindexStatus", _OF_READERS, _READERS)
        },
        "/chroma-status": {"get": _chroma_status()},
    }


def _pages(name: str) -> dict[str, Any]:
    return _operation(name, "List pages", "PageList", _OF_SEARCH, _READERS, parameters=listing_parameters())


def _page(name: str) -> dict[str, Any]:
    what = "Read a page, or sections or lines of it"
    return _operation(name, what, "PageView", _OF_PAGE, _READERS, parameters=page_parameters())


def _metrics() -> dict[str, Any]:
    operation = _operation("metrics", "Figures for Prometheus", "Metrics", _OF_METRICS, _MONITORS)
    operation["responses"]["200"]["content"] = {METRICS_TYPE: {"schema": {"type": "string"}}}
    return operation


def _chroma_status() -> dict[str, Any]:
    operation = _operation("chromaStatus", "As the earlier plugin answers", "ChromaStatus", _OF_ALL, _EVERYONE)
    operation["responses"]["503"] = {**operation["responses"]["200"], "description": "The index cannot answer now"}
    return operation


def _operation(
    name: str,
    summary: str,
    answer: str,
    codes: Iterable[str],
    security: list[dict[str, list[str]]],
    *,
    status: int = 200,
    **request: Any,
) -> dict[str, Any]:
    """Give an operation: what it answers with `status`, and with the errors of the `codes`."""
    success = {"description": summary, "content": _json(reference(answer))}
    refusals = {
        str(refused): {"$ref": f"#/components/responses/{_name(of_it)}"} for refused, of_it in _by_status(codes).items()
    }
    return {
        "operationId": name,
        "summary": summary,
        "security": security,
        **request,
        "responses": {str(status): success, **refusals},
    }


def _by_status(codes: Iterable[str]) -> dict[int, list[str]]:
    grouped: dict[int, list[str]] = {}
    for code, (status, _) in ERRORS.items():
        if code in codes:
            grouped.setdefault(status, []).append(code)
    return grouped


def _name(codes: list[str]) -> str:
    return "-".join(codes)


def _refusals() -> dict[str, Any]:
    """Give every answer of the operations that is an error, by the codes it can have."""
    found = {}
    for of_operation in (_OF_SEARCH, _OF_BATCH, _OF_RELATED, _OF_SEEN, _OF_PAGE, _OF_METRICS, _OF_REINDEX):
        for status, codes in _by_status(of_operation).items():
            found[_name(codes)] = _refusal(status, codes)
    return found


def _refusal(status: int, codes: list[str]) -> dict[str, Any]:
    one_of = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
    return {
        "description": "; ".join(f"`{code}`: {ERRORS[code][1]}" for code in codes),
        "content": _json({"allOf": [reference("Error"), one_of]}),
        **({"headers": _HEADERS[status]} if status in _HEADERS else {}),
    }


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
