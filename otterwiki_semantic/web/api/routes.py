"""The routes below ``/api/v1``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from flask import Blueprint, Response, jsonify, request
from msgspec import Raw, structs
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import PathConverter

from otterwiki_semantic.core import records
from otterwiki_semantic.core.errors import MetricsError, SemanticError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.parameter_parsing import page_path
from otterwiki_semantic.core.serialization import decode, encode
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.web import writing
from otterwiki_semantic.web.answer_stream import WaitingReader
from otterwiki_semantic.web.api import answers
from otterwiki_semantic.web.api.openapi import ANSWER, ANSWERS, BODIES, METRICS_TYPE, openapi_document
from otterwiki_semantic.web.api.operations import OPERATIONS, Access, Operation, View, answer, check_size
from otterwiki_semantic.web.auth import asker, may_see_queries
from otterwiki_semantic.web.errors import REQUEST_ID_HEADER, error_answer, handle_errors, json_response, request_id
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.layout import linked_pages, page_urls

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY")
"""All standard methods; others get the wiki's own error page."""
_ENDPOINT = str.maketrans("/-.", "___")
_UP = """\
# HELP otterwiki_semantic_up Whether the index answers.
# TYPE otterwiki_semantic_up gauge
otterwiki_semantic_up"""


class _PagePath(PathConverter):
    """The path of a page in a URL; it may contain anything, even a line break."""

    regex = "[^/](?s:.*?)"


api = Blueprint("semantic_search", __name__, url_prefix="/api/v1")
"""The routes; exempt from the wiki's CSRF protection, because `auth` checks it."""
api.record_once(lambda state: state.app.url_map.converters.update(page_path=_PagePath))
api.before_request(check_size)
handle_errors(api)


@api.after_request
def _complete(response: Response) -> Response:
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers[REQUEST_ID_HEADER] = request_id()
    return response


def _dispatch(views: dict[str, tuple[Operation, View]]) -> Callable[..., Response]:
    """Return the view of a path, which also answers undefined methods, as the wiki would answer them with a page."""

    def dispatch(**values: str) -> Response:
        if request.method == "OPTIONS":
            methods = {*views, "OPTIONS", *(["HEAD"] if "GET" in views else [])}
            return Response(status=204, headers={"Allow": ", ".join(sorted(methods))})
        found = views.get("GET" if request.method == "HEAD" else request.method)
        if found is None:
            raise MethodNotAllowed(list(views), f"{request.path} supports {', '.join(views)}, not {request.method}")
        return answer(*found, values)

    return dispatch


def _ask_version() -> None:
    """Request the index's version before git is read; if that fails, the view continues without it."""
    with suppress(SemanticError):
        extension().index.version()


def _not_found(rest: str = "") -> NoReturn:
    raise NotFound(f"the search API has nothing at {rest!r}")


@Operation(
    "GET",
    "/semantic-search",
    records.Answer,
    Access.READERS,
    variants=(answers.SelectedAnswer, answers.CompatAnswer),
    examples=ANSWER,
    adjust=answers.adjust_counts,
    is_cacheable=True,
)
def search(asked: records.SearchRequest) -> bytes:
    """Search."""
    if not asked.compat:
        return bytes(_answers([records.QueryRequest(asked.query, asked.options, asked.fields)])[0])
    context = records.SearchContext(request_id=request_id())
    found = answers.compatible(extension().index.search([asked.query], asked.options, page_urls(), context)[0])
    return bytes(answers.with_fields(Raw(encode(found)), asked.fields))


@Operation(
    "POST",
    "/semantic-search",
    answers.Answers,
    Access.READERS,
    variants=(records.Answer, answers.SelectedAnswers, answers.SelectedAnswer),
    examples=ANSWERS,
    body_examples=BODIES,
    body="required",
    example='{"query": "…"} or {"queries": ["…"]}',
)
def search_many(asked: records.BatchRequest) -> bytes:
    """Search for one query, or for several at once."""
    found = _answers(asked.searches())
    return bytes(found[0]) if asked.query is not None else encode({"answers": found})


def _answers(searches: Sequence[records.QueryRequest]) -> list[Raw]:
    """Return the JSON of the answer to each search; searches with the same options are run together."""
    alike: dict[records.SearchOptions, list[int]] = {}
    for position, each in enumerate(searches):
        alike.setdefault(each.options, []).append(position)
    found: dict[int, Raw] = {}
    context = records.SearchContext(request_id=request_id())
    for options, positions in alike.items():
        queries = [searches[position].query for position in positions]
        batch = extension().index.fetch_json(IndexService.search, queries, options, page_urls(), context)
        found.update(zip(positions, decode(batch, list[Raw]), strict=True))
    return [answers.with_fields(found[position], each.fields) for position, each in enumerate(searches)]


@Operation(
    "POST",
    "/semantic-search/ask",
    records.GroundedAnswer,
    Access.READERS,
    body="required",
    example='{"question": "…"}',
    errors=("answers_disabled", "rate_limited"),
    has_events=True,
)
def ask(asked: records.AskRequest) -> records.GroundedAnswer | Response:
    """Answer a question, with a source for every sentence."""
    reader, index = WaitingReader(), extension().index
    started = index.ask(structs.replace(asked, asker=asker()), page_urls())
    return reader.answer_events(index, started) if asked.stream else reader.whole_answer(index, started)


@Operation("GET", "/semantic-search/suggest", records.Suggestions, Access.READERS, is_cacheable=True)
def suggest(asked: records.SuggestRequest) -> bytes:
    """Pages and sections by the beginning of their names."""
    return extension().index.fetch_json(IndexService.suggest, asked, page_urls())


@Operation("GET", "/semantic-search/status", records.IndexStatus, Access.READERS)
def get_status() -> bytes | Response:
    """What the index holds and its state."""
    try:
        return extension().index.fetch_json(IndexService.status, page_urls())
    except SemanticError as error:
        return error_answer("index_unavailable", str(error), status="unavailable", problems=(problem(error),))


@Operation("GET", "/semantic-search/map", records.WikiMap, Access.READERS)
def get_map() -> bytes:
    """The position of every page on the map of the wiki."""
    return extension().index.fetch_json(IndexService.map, page_urls())


@Operation("GET", "/semantic-search/health", records.HealthReport, Access.READERS)
def get_health(asked: records.HealthRequest) -> bytes:
    """Findings about the wiki: what its readers stumble over."""
    asked = structs.replace(asked, linked=linked_pages(), shows_queries=may_see_queries())
    return extension().index.fetch_json(IndexService.health, asked, page_urls())


@Operation(
    "POST",
    "/semantic-search/health/dismissals",
    records.DismissalAnswer,
    Access.WRITERS,
    body="required",
    example='{"findings": ["…"]}',
    errors=("finding_unknown",),
)
def dismiss_findings(asked: records.DismissalRequest) -> records.DismissalAnswer:
    """Dismiss findings, or restore them."""
    return extension().index.dismiss(structs.replace(asked, shows_queries=may_see_queries()))


@Operation("GET", "/semantic-search/metrics", str, Access.MONITORS, errors=("not_found", "package_missing"))
def get_metrics() -> Response:
    """Metrics for Prometheus."""
    if "metrics" not in extension().settings.pages:
        raise NotFound("metrics are switched off; add metrics to SEMANTIC_PAGES")
    try:
        found = extension().index.metrics()
    except MetricsError:
        raise
    except SemanticError:
        found = None  # a failed scrape would not say why
    return Response(f"{_UP} {int(found is not None)}\n{found or ''}", content_type=METRICS_TYPE)


@Operation("GET", "/semantic-search/openapi.json", answers.OpenApi, Access.ANYONE)
def get_open_api() -> Response:
    """This document."""
    return jsonify(openapi_document(request.script_root))


@Operation("GET", "/related", records.RelatedPages, Access.READERS, errors=("page_unknown",), is_cacheable=True)
def get_related_pages(asked: records.RelatedRequest) -> bytes:
    """Pages near in meaning to one page."""
    return extension().index.fetch_json(IndexService.related, asked.path, asked.n, page_urls())


@Operation("POST", "/related", records.DraftLinks, Access.READERS, body="required", example='{"text": "…"}')
def suggest_links(asked: records.DraftRequest) -> bytes:
    """What a text that is being written could link to: pages that it names, and pages about the same."""
    return extension().index.fetch_json(IndexService.draft_links, asked, page_urls())


@Operation("GET", "/semantic-search/pages", records.PageList, Access.READERS, alias="/pages", is_cacheable=True)
def list_pages(asked: records.PageListRequest) -> bytes:
    """List pages."""
    return extension().index.fetch_json(IndexService.pages, asked, page_urls())


@Operation(
    "GET",
    "/semantic-search/pages/{path}",
    records.PageView,
    Access.READERS,
    alias="/pages/{path}",
    errors=("page_unknown", "page_unreadable", "revision_unknown", "section_unknown", "section_ambiguous"),
    is_cacheable=True,
)
def read_page(path: str, asked: records.PageRequest) -> records.PageView:
    """Read a page, or sections or lines of it."""
    _ask_version()
    return extension().pages.page(path, asked, page_urls())


@Operation(
    "PUT",
    "/semantic-search/pages/{path}",
    records.WrittenPage,
    Access.WRITERS,
    body="required",
    example='{"text": "…"}',
    errors=(
        *("writing_disabled", "page_unknown", "page_exists", "page_changed", "page_unreadable", "revision_unknown"),
        "write_failed",
    ),
)
def write_page(path: str, asked: records.WriteRequest) -> records.WrittenPage:
    """Create a page, or replace one."""
    return writing.write(path, asked)


@Operation(
    "PATCH",
    "/semantic-search/pages/{path}",
    records.WrittenPage,
    Access.WRITERS,
    body="required",
    example='{"append": "…"}',
    errors=(
        *("writing_disabled", "page_unknown", "page_changed", "page_unreadable", "revision_unknown"),
        *("section_unknown", "section_ambiguous", "write_failed"),
    ),
)
def edit_page(path: str, asked: records.EditRequest) -> records.WrittenPage:
    """Replace a text of a page, or append one."""
    return writing.edit(path, asked)


@Operation(
    "DELETE",
    "/semantic-search/pages/{path}",
    records.DeletedPage,
    Access.WRITERS,
    errors=("writing_disabled", "page_unknown", "page_changed", "page_unreadable", "revision_unknown", "write_failed"),
)
def delete_page(path: str, asked: records.DeleteRequest) -> records.DeletedPage:
    """Delete a page. Its subpages and attached files stay."""
    return writing.delete(path, asked)


@Operation("GET", "/semantic-search/history", records.PageHistory, Access.READERS, errors=("page_unknown",), is_cacheable=True)
def get_history(asked: records.HistoryRequest) -> records.PageHistory:
    """The last commits that changed a page."""
    _ask_version()
    return extension().pages.history(asked.path, asked.limit)


@Operation("GET", "/semantic-search/insight", records.Insight, Access.ADMINISTRATORS)
def get_insight() -> bytes:
    """How the index works."""
    return extension().index.fetch_json(IndexService.insight)


@Operation("GET", "/semantic-search/insight/{path}", records.PageInspection, Access.ADMINISTRATORS, errors=("page_unknown",))
def inspect_page(path: str) -> bytes:
    """A page as search sees it."""
    return extension().index.fetch_json(IndexService.inspect_page, page_path(path), page_urls())


@Operation(
    "POST",
    "/reindex",
    records.ReindexStarted,
    Access.ADMINISTRATORS,
    body="optional",
    example='{"full": true}',
    in_query=("full",),
    errors=("page_unknown", "reindex_running", "no_rollback", "disk_full"),
    status=202,
)
def reindex(asked: records.ReindexRequest) -> records.ReindexStarted:
    """Build a new index next to the serving one."""
    if asked.rollback:
        return extension().index.roll_back()
    if asked.pages:
        return extension().index.refresh(asked.pages)
    return extension().index.reindex(full=asked.full, embed=asked.embed)


@Operation("GET", "/reindex/status", records.ReindexStatus, Access.READERS, errors=("job_unknown",))
def get_reindex_status(asked: records.ReindexStatusRequest) -> records.ReindexStatus:
    """The progress of the last rebuild, or of a job."""
    return records.ReindexStatus.of(extension().index.job(asked.job) if asked.job else extension().index.status().rebuild)


@Operation("GET", "/chroma-status", answers.ChromaStatus, Access.ANYONE)
def get_chroma_status() -> Response:
    """As the earlier plugin answers."""
    try:
        status: records.IndexStatus | None = extension().index.status()
    except SemanticError:
        status = None
    found = answers.ChromaStatus.of(status.chroma if status else None)
    return json_response(found, 200 if found.status == "ok" else 503)


def _add_routes() -> None:
    by_rule: dict[str, dict[str, tuple[Operation, View]]] = {}
    for made, view in OPERATIONS:
        by_rule.setdefault(made.rule, {})[made.method] = made, view
    for rule, views in by_rule.items():
        methods = ["GET"] if rule.startswith("/pages") else _METHODS  # another plugin may serve other methods there
        api.add_url_rule(rule, rule.strip("/").translate(_ENDPOINT), _dispatch(views), methods=methods)
    for prefix in ("semantic-search", "related", "reindex", "chroma-status"):
        for rule in (f"/{prefix}/", f"/{prefix}/<page_path:rest>"):
            api.add_url_rule(rule, f"no_{prefix}", _not_found, methods=_METHODS)


_add_routes()
