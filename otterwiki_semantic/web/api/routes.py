"""The routes below ``/api/v1``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NoReturn

from flask import Blueprint, Response, jsonify, request
from msgspec import Raw, structs
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import PathConverter

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import MetricsError, SemanticError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.parameters import page_path
from otterwiki_semantic.core.records import (
    Answer,
    AskRequest,
    BatchRequest,
    DismissalAnswer,
    DismissalRequest,
    DraftLinks,
    DraftRequest,
    EditRequest,
    GroundedAnswer,
    HealthReport,
    HealthRequest,
    HistoryRequest,
    IndexStatus,
    Insight,
    PageHistory,
    PageInspection,
    PageList,
    PageListRequest,
    PageRequest,
    PageView,
    QueryRequest,
    ReindexRequest,
    ReindexStarted,
    ReindexStatus,
    ReindexStatusRequest,
    RelatedPages,
    RelatedRequest,
    SearchContext,
    SearchOptions,
    SearchRequest,
    Suggestions,
    SuggestRequest,
    WikiMap,
    WriteRequest,
    WrittenPage,
)
from otterwiki_semantic.core.serialization import decode, encode
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import IndexClient, IndexService
from otterwiki_semantic.daemon.page_reader import PageReader
from otterwiki_semantic.web.api.compat import CompatAnswer, compatible
from otterwiki_semantic.web.api.events import answer_events
from otterwiki_semantic.web.api.examples import ANSWER, ANSWERS, BODIES
from otterwiki_semantic.web.api.openapi import METRICS_TYPE, openapi_document
from otterwiki_semantic.web.api.operations import Access, Operation, View, answer, check_size, json_response, operations_of
from otterwiki_semantic.web.api.schemas import Answers, ChromaStatus, OpenApi
from otterwiki_semantic.web.api.selection import SelectedAnswer, SelectedAnswers, with_fields
from otterwiki_semantic.web.auth import asker, may_see_queries
from otterwiki_semantic.web.errors import error_answer, handle_errors
from otterwiki_semantic.web.pages.layout import linked_pages, page_urls
from otterwiki_semantic.web.request_id import HEADER, request_id
from otterwiki_semantic.web.waiting import WaitingReader
from otterwiki_semantic.web.writing import PageWriter

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY")
"""All standard methods; others get the wiki's own error page."""
_ENDPOINT = str.maketrans("/-.", "___")
_SHARED = "/pages"
"""Another plugin may serve other methods at this path, so they are not rejected here."""
_UP = """\
# HELP otterwiki_semantic_up Whether the index answers.
# TYPE otterwiki_semantic_up gauge
otterwiki_semantic_up"""


class _PagePath(PathConverter):
    """The path of a page in a URL; it may contain anything, even a line break."""

    regex = "[^/](?s:.*?)"


def make_blueprint(index: IndexClient, settings: Settings) -> Blueprint:
    """Return the routes of the API. The caller exempts them from the wiki's CSRF protection, because `auth` checks it."""
    api = Api(index, PageReader(index, Repository(settings.repository, settings.exclude)), settings)
    blueprint = Blueprint("semantic_search", __name__, url_prefix="/api/v1")
    blueprint.record_once(lambda state: state.app.url_map.converters.update(page_path=_PagePath))
    by_rule: dict[str, dict[str, tuple[Operation, View]]] = {}
    for made, view in operations_of(Api):
        by_rule.setdefault(made.rule, {})[made.method] = made, partial(view, api)
    for rule, views in by_rule.items():
        _route(blueprint, rule, views, settings.api_key)
    for prefix in ("semantic-search", "related", "reindex", "chroma-status"):
        for rule in (f"/{prefix}/", f"/{prefix}/<page_path:rest>"):
            blueprint.add_url_rule(rule, f"no_{prefix}", _not_found, methods=_METHODS)
    blueprint.before_request(check_size)
    blueprint.after_request(_complete)
    handle_errors(blueprint)
    return blueprint


def _route(
    blueprint: Blueprint,
    rule: str,
    views: dict[str, tuple[Operation, View]],
    api_key: str | None,
) -> None:
    """Add a rule that rejects methods without a view; the wiki's catch-all would answer them with a page."""

    def dispatch(**values: str) -> Response:
        if request.method == "OPTIONS":
            methods = {*views, "OPTIONS", *(["HEAD"] if "GET" in views else [])}
            return Response(status=204, headers={"Allow": ", ".join(sorted(methods))})
        found = views.get("GET" if request.method == "HEAD" else request.method)
        if found is None:
            allowed = ", ".join(views)
            raise MethodNotAllowed(list(views), f"{request.path} supports {allowed}, not {request.method}")
        return answer(*found, api_key, values)

    methods = ["GET"] if rule.startswith(_SHARED) else _METHODS
    blueprint.add_url_rule(rule, rule.strip("/").translate(_ENDPOINT), dispatch, methods=methods)


def _context() -> SearchContext:
    return SearchContext(request_id=request_id())


def _not_found(rest: str = "") -> NoReturn:
    raise NotFound(f"the search API has nothing at {rest!r}")


def _complete(response: Response) -> Response:
    """Forbid caches to store an answer without a tag, and browsers to guess its type; name the request."""
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers[HEADER] = request_id()
    return response


class Api:
    """The views. JSON of the daemon is passed on without parsing."""

    def __init__(self, index: IndexClient, pages: PageReader, settings: Settings) -> None:
        self._index = index
        self._pages = pages
        self._has_metrics = "metrics" in settings.pages
        self._api_key = settings.api_key
        self._writer = PageWriter(index, pages, settings)

    @Operation(
        "GET",
        "/semantic-search",
        "search",
        Answer,
        Access.READERS,
        variants=(SelectedAnswer, CompatAnswer),
        examples=ANSWER,
        takes=SearchRequest,
        is_cacheable=True,
    )
    def search(self, asked: SearchRequest) -> bytes:
        """Search."""
        if not asked.compat:
            return bytes(self._answers([QueryRequest(asked.query, asked.options, asked.fields)])[0])
        found = compatible(self._index.search([asked.query], asked.options, page_urls(), _context())[0])
        return bytes(with_fields(Raw(encode(found)), asked.fields))

    @Operation(
        "POST",
        "/semantic-search",
        "searchMany",
        Answers,
        Access.READERS,
        variants=(Answer, SelectedAnswers, SelectedAnswer),
        examples=ANSWERS,
        body_examples=BODIES,
        takes=BatchRequest,
        body="required",
        example='{"query": "…"} or {"queries": ["…"]}',
    )
    def search_many(self, asked: BatchRequest) -> bytes:
        """Search for one query, or for several at once."""
        answers = self._answers(asked.searches())
        return bytes(answers[0]) if asked.query is not None else encode({"answers": answers})

    def _answers(self, searches: Sequence[QueryRequest]) -> list[Raw]:
        """Return the JSON of the answer to each search; those with the same options are made together."""
        alike: dict[SearchOptions, list[int]] = {}
        for position, each in enumerate(searches):
            alike.setdefault(each.options, []).append(position)
        found: dict[int, Raw] = {}
        for options, positions in alike.items():
            queries = [searches[position].query for position in positions]
            answers = self._index.fetch_json(IndexService.search, queries, options, page_urls(), _context())
            found.update(zip(positions, decode(answers, list[Raw]), strict=True))
        return [with_fields(found[position], each.fields) for position, each in enumerate(searches)]

    @Operation(
        "POST",
        "/semantic-search/ask",
        "ask",
        GroundedAnswer,
        Access.READERS,
        takes=AskRequest,
        body="required",
        example='{"question": "…"}',
        errors=("answers_disabled", "rate_limited"),
        has_events=True,
    )
    def ask(self, asked: AskRequest) -> GroundedAnswer | Response:
        """Answer a question, with a source for every sentence."""
        reader = WaitingReader()
        started = self._index.ask(structs.replace(asked, asker=asker(self._api_key)), page_urls())
        return answer_events(self._index, started, reader) if asked.stream else reader.whole_answer(self._index, started)

    @Operation(
        "GET",
        "/semantic-search/suggest",
        "suggest",
        Suggestions,
        Access.READERS,
        takes=SuggestRequest,
        is_cacheable=True,
    )
    def suggest(self, asked: SuggestRequest) -> bytes:
        """Pages and sections by the beginning of their names."""
        return self._index.fetch_json(IndexService.suggest, asked, page_urls())

    @Operation("GET", "/semantic-search/status", "getStatus", IndexStatus, Access.READERS)
    def status(self) -> bytes | Response:
        """What the index holds and its state."""
        try:
            return self._index.fetch_json(IndexService.status, page_urls())
        except SemanticError as error:
            return error_answer("index_unavailable", str(error), status="unavailable", problems=(problem(error),))

    @Operation("GET", "/semantic-search/map", "getMap", WikiMap, Access.READERS)
    def map(self) -> bytes:
        """The position of every page on the map of the wiki."""
        return self._index.fetch_json(IndexService.map, page_urls())

    @Operation("GET", "/semantic-search/health", "getHealth", HealthReport, Access.READERS, takes=HealthRequest)
    def health(self, asked: HealthRequest) -> bytes:
        """Findings about the wiki: what its readers stumble over."""
        asked = structs.replace(asked, linked=linked_pages(), shows_queries=may_see_queries(self._api_key))
        return self._index.fetch_json(IndexService.health, asked, page_urls())

    @Operation(
        "POST",
        "/semantic-search/health/dismissals",
        "dismissFindings",
        DismissalAnswer,
        Access.WRITERS,
        takes=DismissalRequest,
        body="required",
        example='{"findings": ["…"]}',
        errors=("finding_unknown",),
    )
    def dismiss(self, asked: DismissalRequest) -> DismissalAnswer:
        """Dismiss findings, or restore them."""
        return self._index.dismiss(structs.replace(asked, shows_queries=may_see_queries(self._api_key)))

    @Operation("GET", "/semantic-search/metrics", "getMetrics", str, Access.MONITORS, errors=("not_found", "package_missing"))
    def metrics(self) -> Response:
        """Metrics for Prometheus.

        They are returned even if the index does not answer: a failed scrape would not say why.
        """
        if not self._has_metrics:
            raise NotFound("metrics are switched off; add metrics to SEMANTIC_PAGES")
        try:
            found = self._index.metrics()
        except MetricsError:
            raise
        except SemanticError:
            found = None
        return Response(f"{_UP} {int(found is not None)}\n{found or ''}", content_type=METRICS_TYPE)

    @Operation("GET", "/semantic-search/openapi.json", "getOpenApi", OpenApi, Access.ANYONE)
    def openapi(self) -> Response:
        """This document."""
        return jsonify(openapi_document(Api, request.script_root))

    @Operation(
        "GET",
        "/related",
        "getRelatedPages",
        RelatedPages,
        Access.READERS,
        takes=RelatedRequest,
        errors=("page_unknown",),
        is_cacheable=True,
    )
    def related(self, asked: RelatedRequest) -> bytes:
        """Pages near in meaning to one page."""
        return self._index.fetch_json(IndexService.related, asked.path, asked.n, page_urls())

    @Operation(
        "POST",
        "/related",
        "suggestLinks",
        DraftLinks,
        Access.READERS,
        takes=DraftRequest,
        body="required",
        example='{"text": "…"}',
    )
    def draft_links(self, asked: DraftRequest) -> bytes:
        """What a text that is being written could link to: pages that it names, and pages about the same."""
        return self._index.fetch_json(IndexService.draft_links, asked, page_urls())

    @Operation(
        "GET",
        "/semantic-search/pages",
        "listPages",
        PageList,
        Access.READERS,
        alias="/pages",
        takes=PageListRequest,
        is_cacheable=True,
    )
    def pages(self, asked: PageListRequest) -> bytes:
        """List pages."""
        return self._index.fetch_json(IndexService.pages, asked, page_urls())

    @Operation(
        "GET",
        "/semantic-search/pages/{path}",
        "readPage",
        PageView,
        Access.READERS,
        alias="/pages/{path}",
        takes=PageRequest,
        errors=("page_unknown", "page_unreadable", "revision_unknown", "section_unknown", "section_ambiguous"),
        is_cacheable=True,
    )
    def page(self, path: str, asked: PageRequest) -> PageView:
        """Read a page, or sections or lines of it."""
        self._ask_version()
        return self._pages.page(path, asked, page_urls())

    @Operation(
        "PUT",
        "/semantic-search/pages/{path}",
        "writePage",
        WrittenPage,
        Access.WRITERS,
        takes=WriteRequest,
        body="required",
        example='{"text": "…"}',
        errors=(
            *("writing_disabled", "page_unknown", "page_exists", "page_changed", "page_unreadable", "revision_unknown"),
            "write_failed",
        ),
    )
    def write_page(self, path: str, asked: WriteRequest) -> WrittenPage:
        """Create a page, or replace one."""
        return self._writer.write(path, asked)

    @Operation(
        "PATCH",
        "/semantic-search/pages/{path}",
        "editPage",
        WrittenPage,
        Access.WRITERS,
        takes=EditRequest,
        body="required",
        example='{"append": "…"}',
        errors=(
            *("writing_disabled", "page_unknown", "page_changed", "page_unreadable", "revision_unknown"),
            *("section_unknown", "section_ambiguous", "write_failed"),
        ),
    )
    def edit_page(self, path: str, asked: EditRequest) -> WrittenPage:
        """Replace a text of a page, or append one."""
        return self._writer.edit(path, asked)

    @Operation(
        "GET",
        "/semantic-search/history",
        "getHistory",
        PageHistory,
        Access.READERS,
        takes=HistoryRequest,
        errors=("page_unknown",),
        is_cacheable=True,
    )
    def history(self, asked: HistoryRequest) -> PageHistory:
        """The last commits that changed a page."""
        self._ask_version()
        return self._pages.history(asked.path, asked.limit)

    def _ask_version(self) -> None:
        """Ask for the version of the index before git is read; without an answer the view does without."""
        with suppress(SemanticError):
            self._index.version()

    @Operation("GET", "/semantic-search/insight", "getInsight", Insight, Access.ADMINISTRATORS)
    def insight(self) -> bytes:
        """How the index works."""
        return self._index.fetch_json(IndexService.insight)

    @Operation(
        "GET", "/semantic-search/insight/{path}", "inspectPage", PageInspection, Access.ADMINISTRATORS, errors=("page_unknown",)
    )
    def inspect_page(self, path: str) -> bytes:
        """A page as search sees it."""
        return self._index.fetch_json(IndexService.inspect_page, page_path(path), page_urls())

    @Operation(
        "POST",
        "/reindex",
        "reindex",
        ReindexStarted,
        Access.ADMINISTRATORS,
        takes=ReindexRequest,
        body="optional",
        example='{"full": true}',
        in_query=("full",),
        errors=("page_unknown", "reindex_running", "no_rollback", "disk_full"),
        status=202,
    )
    def reindex(self, asked: ReindexRequest) -> ReindexStarted:
        """Build a new index next to the serving one."""
        if asked.rollback:
            return self._index.roll_back()
        if asked.pages:
            return self._index.refresh(asked.pages)
        rebuild = self._index.reindex(full=asked.full)
        return ReindexStarted("started", estimate=rebuild.estimate, job=rebuild.job)

    @Operation(
        "GET",
        "/reindex/status",
        "getReindexStatus",
        ReindexStatus,
        Access.READERS,
        takes=ReindexStatusRequest,
        errors=("job_unknown",),
    )
    def reindex_status(self, asked: ReindexStatusRequest) -> ReindexStatus:
        """The progress of the last rebuild, or of a job."""
        return ReindexStatus.of(self._index.job(asked.job) if asked.job else self._index.status().rebuild)

    @Operation("GET", "/chroma-status", "getChromaStatus", ChromaStatus, Access.ANYONE)
    def chroma_status(self) -> Response:
        """As the earlier plugin answers.

        It is public, and without private data.
        """
        try:
            status: IndexStatus | None = self._index.status()
        except SemanticError:
            status = None
        found = ChromaStatus.of(status.chroma if status else None)
        return json_response(found, 200 if found.status == "ok" else 503)
