"""The routes under ``/api/v1``: search, reindex, and how the index is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NoReturn

from flask import Blueprint, Response, jsonify, request, url_for
from werkzeug.exceptions import BadRequest, MethodNotAllowed, NotFound

from otterwiki_semantic.config import Settings
from otterwiki_semantic.errors import SemanticError
from otterwiki_semantic.records import Answer, Hit, IndexStatus, RebuildState, RebuildStatus
from otterwiki_semantic.service import (
    DEFAULT_CHUNKS_PER_PAGE,
    DEFAULT_RESULTS,
    MAX_CHUNKS_PER_PAGE,
    MAX_RESULTS,
    IndexService,
    checked_number,
    checked_queries,
    checked_query,
)
from otterwiki_semantic.web.access import require_admin, require_read
from otterwiki_semantic.web.errors import ApiError, handle_errors

_MAX_BODY_BYTES = 1 << 20
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_UNDER_WAY = "the index is being built; results are incomplete until it is done"

View = Callable[[], tuple[Response, int] | Response]


def make_blueprint(service: IndexService, settings: Settings) -> Blueprint:
    """Give the routes, answered by `service`. The caller exempts it from the wiki's CSRF protection: `access` sees to it."""
    api = _Api(service, settings.api_key)
    blueprint = Blueprint("semantic_search", __name__, url_prefix="/api/v1")
    _route(blueprint, "/semantic-search", GET=api.search, POST=api.search_many)
    _route(blueprint, "/semantic-search/status", GET=api.status)
    _route(blueprint, "/reindex", POST=api.reindex)
    _route(blueprint, "/reindex/status", GET=api.reindex_status)
    _route(blueprint, "/chroma-status", GET=api.chroma_status)
    for prefix in ("semantic-search", "reindex", "chroma-status"):
        for rule in (f"/{prefix}/", f"/{prefix}/<path:rest>"):
            blueprint.add_url_rule(rule, f"no_{prefix}", _not_found, methods=_METHODS)
    handle_errors(blueprint)
    return blueprint


def _route(blueprint: Blueprint, rule: str, **views: View) -> None:
    """Add a route that refuses the methods it has no view for; the wiki's own catch-all would answer them with a page."""

    def dispatch() -> tuple[Response, int] | Response:
        view = views.get("GET" if request.method == "HEAD" else request.method)
        if view is None:
            allowed = ", ".join(views)
            raise MethodNotAllowed(list(views), f"{request.path} takes {allowed}, not {request.method}")
        return view()

    blueprint.add_url_rule(rule, rule.strip("/").replace("/", "_").replace("-", "_"), dispatch, methods=_METHODS)


def _not_found(rest: str = "") -> NoReturn:
    raise NotFound(f"the search API has nothing at {rest!r}")


class _Api:
    """The views. Each first asks who is there, then what is wanted."""

    def __init__(self, service: IndexService, api_key: str | None) -> None:
        self._service = service
        self._api_key = api_key

    def search(self) -> Response:
        require_read(self._api_key)
        query = checked_query(request.args.get("q"))
        return jsonify(_answer_json(self._service.search([query], **_limits(request.args))[0]))

    def search_many(self) -> Response:
        require_read(self._api_key)
        body = _json_body()
        queries = checked_queries(body.get("queries"))
        answers = self._service.search(queries, **_limits(body))
        return jsonify({"answers": [_answer_json(answer) for answer in answers]})

    def status(self) -> Response:
        require_read(self._api_key)
        return jsonify(_status_json(self._service.status()))

    def reindex(self) -> tuple[Response, int]:
        require_admin(self._api_key)
        self._service.reindex()
        return jsonify({"status": "started"}), 202

    def reindex_status(self) -> Response:
        require_read(self._api_key)
        return jsonify(rebuild_json(self._service.status().rebuild))

    def chroma_status(self) -> tuple[Response, int]:
        """What users of the earlier plugin know: open to all, and nothing private in it."""
        try:
            status = self._service.status()
        except SemanticError:
            return jsonify({"status": "error", "collection": None, "document_count": 0}), 503
        return jsonify({"status": "ok", "collection": status.collection, "document_count": status.chunks}), 200


def _limits(values: Any) -> dict[str, int]:
    return {
        "n": checked_number(values.get("n"), "n", DEFAULT_RESULTS, MAX_RESULTS),
        "max_chunks_per_page": checked_number(
            values.get("max_chunks_per_page"), "max_chunks_per_page", DEFAULT_CHUNKS_PER_PAGE, MAX_CHUNKS_PER_PAGE
        ),
    }


def _json_body() -> dict[str, Any]:
    request.max_content_length = _MAX_BODY_BYTES
    if (request.content_length or 0) > _MAX_BODY_BYTES:
        raise ApiError(413, "too_large", f"the body has {request.content_length:,} bytes; allowed are {_MAX_BODY_BYTES:,}")
    try:
        body = request.get_json(force=True)
    except (BadRequest, RecursionError) as error:
        raise ApiError(400, "bad_request", 'the body is not JSON; send {"queries": ["…"]}') from error
    if not isinstance(body, dict):
        raise ApiError(400, "bad_request", 'the body is not a JSON object; send {"queries": ["…"]}')
    return body


def page_url(path: str, anchor: str) -> str:
    """Give the address of a page in the wiki, at a heading."""
    return url_for("view", path=path, _anchor=anchor or None)


def _hit_json(hit: Hit) -> dict[str, Any]:
    return asdict(hit) | {
        "distance": round(hit.distance, 6),
        "similarity": round(1 - hit.distance, 6),
        "url": page_url(hit.path, hit.anchor),
    }


def _answer_json(answer: Answer) -> dict[str, Any]:
    body = {
        "query": answer.query,
        "results": [_hit_json(hit) for hit in answer.hits],
        "total": len(answer.hits),
        "index": asdict(answer.index),
    }
    is_first_build = answer.index.commit is None and answer.index.head is not None
    return body | {"message": _UNDER_WAY} if is_first_build else body


def _status_json(status: IndexStatus) -> dict[str, Any]:
    body = asdict(status)
    index = body.pop("index")
    return {
        "status": body.pop("status"),
        "indexed_commit": index["commit"],
        "head_commit": index["head"],
        "pending_pages": index["pending_pages"],
        **body,
        "rebuild": rebuild_json(status.rebuild),
    }


def rebuild_json(status: RebuildStatus) -> dict[str, Any]:
    """Give a rebuild's state as the API and the command line show it."""
    progress = status.progress
    return {
        "state": status.state,
        "pages_done": progress.pages_done,
        "pages_total": progress.pages_total,
        "chunks_done": progress.chunks_done,
        "chunks_total": progress.chunks_total,
        "started": status.started,
        "finished": status.finished,
        "error": status.error,
        "seconds_left": progress.seconds_left if status.state is RebuildState.RUNNING else None,
    }
