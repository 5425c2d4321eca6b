"""The routes under ``/api/v1``: search, related pages, reindex, and how the index is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NoReturn
from urllib.parse import quote

from flask import Blueprint, Response, jsonify, request
from flask.blueprints import BlueprintSetupState
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import PathConverter

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import MetricsError, SemanticError
from otterwiki_semantic.core.parameters import (
    DEFAULT_RELATED,
    MAX_RESULTS,
    checked_number,
    checked_queries,
    checked_query,
    checked_text,
    pages_to_read,
    reindex_is_full,
    search_options,
    without_ending,
)
from otterwiki_semantic.core.records import Answer
from otterwiki_semantic.core.remedies import problem
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import (
    METRICS_TYPE,
    IndexService,
    answer_json,
    insight_json,
    map_json,
    metrics_text,
    refreshed_json,
    reindex_status_json,
    related_json,
    seen_page_json,
    started_json,
    status_json,
)
from otterwiki_semantic.daemon.page_reader import PageReader
from otterwiki_semantic.web.api.openapi import openapi_document
from otterwiki_semantic.web.api.request_body import check_size, json_object
from otterwiki_semantic.web.auth import require_admin, require_monitor, require_read
from otterwiki_semantic.web.errors import ApiError, error_answer, handle_errors
from otterwiki_semantic.web.pages.layout import page_url

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY")
"""All that are defined: with others the wiki's own refusal is a page."""
_SAFE_IN_PATHS = "!$&'()*+,/:;=@"
"""What werkzeug leaves as it is in a path, beside letters, digits and `-._~`."""
_ENDPOINT = str.maketrans("/-.", "___")

View = Callable[..., tuple[Response, int] | Response]


class _PagePath(PathConverter):
    """A page's path in an address, whatever is in it: a file's name may hold a line break, too."""

    regex = "[^/](?s:.*?)"


def make_blueprint(service: IndexService, settings: Settings) -> Blueprint:
    """Give the routes, answered by `service`. The caller exempts it from the wiki's CSRF protection: `access` sees to it."""
    api = _Api(service, PageReader(service, Repository(settings.repository)), settings)
    blueprint = Blueprint("semantic_search", __name__, url_prefix="/api/v1")
    blueprint.record_once(_know_page_paths)
    _route(blueprint, "/semantic-search", GET=api.search, POST=api.search_many)
    _route(blueprint, "/semantic-search/status", GET=api.status)
    _route(blueprint, "/semantic-search/map", GET=api.map)
    _route(blueprint, "/semantic-search/metrics", GET=api.metrics)
    _route(blueprint, "/related", GET=api.related)
    _route(blueprint, "/reindex", POST=api.reindex)
    _route(blueprint, "/reindex/status", GET=api.reindex_status)
    _route(blueprint, "/chroma-status", GET=api.chroma_status)
    _route(blueprint, "/semantic-search/pages", GET=api.pages)
    _route(blueprint, "/semantic-search/pages/<page_path:path>", GET=api.page)
    _route(blueprint, "/semantic-search/insight", GET=api.insight)
    _route(blueprint, "/semantic-search/insight/<page_path:path>", GET=api.inspect_page)
    # Another plugin may sit here, and write pages: its methods are left alone.
    blueprint.add_url_rule("/pages", "pages", api.pages, methods=["GET"])
    blueprint.add_url_rule("/pages/<page_path:path>", "page", api.page, methods=["GET"])
    _route(blueprint, "/semantic-search/openapi.json", GET=api.openapi)
    for prefix in ("semantic-search", "related", "reindex", "chroma-status"):
        for rule in (f"/{prefix}/", f"/{prefix}/<page_path:rest>"):
            blueprint.add_url_rule(rule, f"no_{prefix}", _not_found, methods=_METHODS)
    blueprint.before_request(check_size)
    blueprint.after_request(_keep_private)
    handle_errors(blueprint)
    return blueprint


def _chroma_status(status: str, collection: str | None, count: int) -> dict[str, Any]:
    return {"status": status, "backend_type": "chroma", "collection": collection, "document_count": count}


def _know_page_paths(state: BlueprintSetupState) -> None:
    state.app.url_map.converters["page_path"] = _PagePath


def _route(blueprint: Blueprint, rule: str, **views: View) -> None:
    """Add a route that refuses the methods it has no view for; the wiki's own catch-all would answer them with a page."""

    def dispatch(**values: str) -> tuple[Response, int] | Response:
        if request.method == "OPTIONS":
            methods = {*views, "OPTIONS", *(["HEAD"] if "GET" in views else [])}
            return Response(status=204, headers={"Allow": ", ".join(sorted(methods))})
        view = views.get("GET" if request.method == "HEAD" else request.method)
        if view is None:
            allowed = ", ".join(views)
            raise MethodNotAllowed(list(views), f"{request.path} takes {allowed}, not {request.method}")
        return view(**values)

    blueprint.add_url_rule(rule, rule.strip("/").translate(_ENDPOINT), dispatch, methods=_METHODS)


def _not_found(rest: str = "") -> NoReturn:
    raise NotFound(f"the search API has nothing at {rest!r}")


def _keep_private(response: Response) -> Response:
    """Tell caches that an answer is for whoever asked, and browsers that it is nothing but JSON."""
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


class _Api:
    """The views. Each first asks who is there, then what is wanted."""

    def __init__(self, service: IndexService, reading: PageReader, settings: Settings) -> None:
        self._service = service
        self._reading = reading
        self._api_key = settings.api_key
        self._has_metrics = settings.metrics

    def search(self) -> Response:
        require_read(self._api_key)
        query = checked_query(request.args.get("q"))
        options = search_options(_arguments("tag"))
        return jsonify(_answer_json(self._service.search([query], options)[0]))

    def search_many(self) -> Response:
        require_read(self._api_key)
        body = json_object('{"queries": ["…"]}')
        queries = checked_queries(body.get("queries"))
        answers = self._service.search(queries, search_options(body))
        return jsonify({"answers": [_answer_json(answer) for answer in answers]})

    def related(self) -> Response:
        require_read(self._api_key)
        path = without_ending(checked_text(request.args.get("path"), "path"))
        n = checked_number(request.args.get("n"), "n", DEFAULT_RELATED, MAX_RESULTS)
        return jsonify(related_json(self._service.related(path, n), page_url))

    def pages(self) -> Response:
        require_read(self._api_key)
        return jsonify(self._reading.pages(_arguments("tag"), page_url))

    def page(self, path: str) -> Response:
        require_read(self._api_key)
        return jsonify(self._reading.page(path, _arguments("section"), page_url))

    def map(self) -> Response:
        require_read(self._api_key)
        return jsonify(map_json(self._service.map(), _page_urls()))

    def status(self) -> Response:
        require_read(self._api_key)
        try:
            return jsonify(status_json(self._service.status()))
        except SemanticError as error:
            return error_answer("index_unavailable", str(error), status="unavailable", problems=[asdict(problem(error))])

    def insight(self) -> Response:
        require_admin(self._api_key)
        return jsonify(insight_json(self._service.insight()))

    def inspect_page(self, path: str) -> Response:
        require_admin(self._api_key)
        return jsonify(seen_page_json(self._service.inspect_page(without_ending(path)), page_url))

    def metrics(self) -> Response:
        """Figures for Prometheus. That the index does not answer is a figure, too: a scrape that failed would not tell why."""
        if not self._has_metrics:
            raise NotFound("metrics are switched off: SEMANTIC_METRICS is false")
        require_monitor(self._api_key)
        try:
            text = metrics_text(self._service.metrics())
        except MetricsError as error:
            raise ApiError("package_missing", str(error)) from error
        except SemanticError:
            text = metrics_text(None)
        return Response(text, content_type=METRICS_TYPE)

    def reindex(self) -> tuple[Response, int]:
        require_admin(self._api_key)
        has_object = request.get_data().lstrip().startswith(b"{")  # whatever a program says that it sends
        body = json_object('{"full": true}') if has_object or (request.is_json and request.get_data()) else {}
        given = {name: value for name, value in body.items() if value is not None}
        is_full = reindex_is_full(request.args.to_dict() | given)
        if pages := pages_to_read(given):
            return jsonify(refreshed_json(self._service.refresh(pages))), 202
        return jsonify(started_json(self._service.reindex(full=is_full))), 202

    def reindex_status(self) -> Response:
        require_read(self._api_key)
        return jsonify(reindex_status_json(self._service.status().rebuild))

    def chroma_status(self) -> tuple[Response, int]:
        """What users of the earlier plugin know: open to all, and nothing private in it."""
        try:
            status = self._service.status()
        except SemanticError:
            return jsonify(_chroma_status("error", None, 0)), 503
        return jsonify(_chroma_status("ok", status.collection, status.chunks)), 200

    def openapi(self) -> Response:
        """The description of all this: open to all, since it holds nothing of the wiki."""
        return jsonify(openapi_document(request.script_root))


def _arguments(repeatable: str) -> dict[str, Any]:
    """Give the parameters of the query string; the one that can be given again as a list."""
    return request.args.to_dict() | {repeatable: request.args.getlist(repeatable)}


def _page_urls() -> Callable[[str], str]:
    """Give what makes addresses of many paths: `url_for` would take half a second for ten thousand."""
    start = page_url("x", "").removesuffix("x")
    return lambda path: start + quote(path, safe=_SAFE_IN_PATHS)


def _answer_json(answer: Answer) -> dict[str, Any]:
    return answer_json(answer, page_url)
