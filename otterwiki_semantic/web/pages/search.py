"""The plugin's pages below ``/-/semantic-search``: the search page, and parts of pages that scripts load."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import structs

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import PageNotFoundError, SemanticError
from otterwiki_semantic.core.parameters import page_path, parse_parameters
from otterwiki_semantic.core.records import Answer, Mode, PageRequest, SearchContext, SearchOptions, Sort, query_text
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.daemon.page_reader import PageReader
from otterwiki_semantic.web.pages import opensearch
from otterwiki_semantic.web.pages.answer import answer_part, asked_question, begun_answer, left_answer, written_answer
from otterwiki_semantic.web.pages.layout import guarded, keep_private, new_page, page_url, render_page, status_of
from otterwiki_semantic.web.pages.palette import palette_view
from otterwiki_semantic.web.pages.rendering import PageRenderer
from otterwiki_semantic.web.pages.results import FILTERS, Chip, results_view
from otterwiki_semantic.web.pages.suggestions import CircuitBreaker, likely_pages, near_pages
from otterwiki_semantic.web.pages.wiki_map import map_view

SEARCH = "/-/semantic-search"
MODES = ((Mode.HYBRID, "Both"), (Mode.SEMANTIC, "Meaning"), (Mode.KEYWORD, "Exact words"))
_RESULTS, _MORE_RESULTS, _PASSAGES_PER_PAGE = 20, 50, 3
_UNAVAILABLE = 503
_MAX_RENDERED = 50_000
"""Characters of a passage that are shown."""
_ASSET_SECONDS = 300
"""How long browsers may cache a script: as long as the wiki's joined stylesheet."""


class _Pages(Blueprint):
    def get_send_file_max_age(self, filename: str | None) -> int:  # noqa: ARG002 - Flask's signature
        return _ASSET_SECONDS


def make_pages(service: IndexService, settings: Settings) -> Blueprint:
    """Return the pages; the wiki's CSRF protection applies to them."""
    views = _Views(service, PageReader(service, Repository(settings.repository, settings.exclude)))
    has_answers = settings.answers is not None
    palette = partial(palette_view, service, has_answers=has_answers)
    pages = _Pages(
        "semantic_pages",
        "otterwiki_semantic.web",
        url_prefix=SEARCH,
        template_folder="templates",
        static_folder="static",
        static_url_path="/static",
    )
    for rule, name, view in (
        ("", "search", views.search),
        ("/results", "results", views.results),
        *((("/answer", "answer", views.answer),) if has_answers else ()),
        ("/passage", "passage", views.passage),
        ("/preview", "preview", views.preview),
        ("/likely", "likely", views.likely),
        *((("/palette", "palette", palette),) if "palette" in settings.pages else ()),
        *((("/related", "related", views.related),) if "related" in settings.pages else ()),
        ("/map", "map", partial(map_view, service)),
        ("/opensearch.xml", "opensearch", opensearch.description),
        ("/suggestions", "suggestions", partial(opensearch.suggestions, service)),
    ):
        pages.add_url_rule(rule, name, guarded("READ", view), methods=["POST" if name == "answer" else "GET"])
    pages.after_request(keep_private)
    shown = set(settings.pages) - (set() if find_spec("sklearn") else {"map"})  # without it, there can be no map
    pages.add_app_template_global(shown.__contains__, "semantic_has")
    pages.add_app_template_global(lambda: has_answers, "semantic_has_answers")
    pages.add_app_template_global(lambda: settings.has_chat_model, "semantic_has_chat_model")
    pages.add_app_template_global(lambda: settings.may_rewrite_questions, "semantic_rewrites_questions")
    return pages


class _Views:
    def __init__(self, service: IndexService, pages: PageReader) -> None:
        self._service = service
        self._pages = pages
        self._breaker = CircuitBreaker()
        self._renderer = PageRenderer()

    def search(self) -> ResponseReturnValue:
        self._renderer.prepare()
        values, status = self._found()
        return render_page("semantic_search/search.html", title="Search by meaning", **values), status

    def results(self) -> ResponseReturnValue:
        values, status = self._found()
        return render_template("semantic_search/results.html", **values), status

    def answer(self) -> ResponseReturnValue:
        """Return the search page with an answer; for its script the answer alone, as far as it is written."""
        for parameter, view in (("writing", written_answer), ("left", left_answer)):
            if parameter in request.args:
                return view(self._service, request.args[parameter])
        try:
            asked = asked_question()
        except SemanticError:
            return self.search()  # which says the same
        if "part" in request.args:
            return begun_answer(self._service, asked)
        part = answer_part(self._service, asked)
        values, status = self._found()
        return render_page("semantic_search/search.html", title="Search by meaning", answer_part=part, **values), status

    def passage(self) -> ResponseReturnValue:
        """Return some lines of a page as the wiki shows them, a part of the search page that its script loads."""
        try:
            path = page_path(query_text(request.args.get("path"), "path"))
            asked = parse_parameters(PageRequest, {"lines": request.args.get("lines")})
            source = "".join(part.content for part in self._pages.page(path, asked).parts or ())
        except SemanticError as error:
            return render_template("semantic_search/passage.html", content="", message=str(error)), status_of(error)
        return render_template(
            "semantic_search/passage.html", content=self._renderer.html(source[:_MAX_RENDERED]), message=None
        )

    def preview(self) -> ResponseReturnValue:
        """Return a page as the wiki shows it, of a long one only a section, for the pane beside the results."""
        path, anchor = request.args.get("path", ""), request.args.get("anchor", "")
        values: dict[str, Any] = {"title": path, "url": None, "content": "", "message": None}
        try:
            path = page_path(query_text(path, "path"))
            page = self._pages.page(path, PageRequest())
            if anchor and len(page.content) > _MAX_RENDERED:
                page = self._pages.page(path, PageRequest(section=(f"#{anchor}",)))
        except SemanticError as error:
            return render_template("semantic_search/preview.html", **{**values, "message": str(error)}), status_of(error)
        values |= {
            "title": page.title,
            "url": page_url(page.path, anchor),
            "content": self._renderer.html(page.content[:_MAX_RENDERED]),
        }
        return render_template("semantic_search/preview.html", **values)

    def related(self) -> ResponseReturnValue:
        """Return related pages, as a part of the sidebar, or as a page for browsers without scripts."""
        values: dict[str, Any] = {"path": request.args.get("path", ""), "related": (), "message": None}
        status = 200
        try:
            path = page_path(query_text(request.args.get("path"), "path"))
            values |= {"path": path, "related": self._breaker.call(lambda: near_pages(self._service, path))}
        except PageNotFoundError:
            pass  # it is not indexed yet: nothing is near
        except SemanticError as error:
            values["message"], status = str(error), status_of(error)
        if "part" in request.args:
            return render_template("semantic_search/related.html", **values), status
        return render_page("semantic_search/related_page.html", title="Related pages", **values), status

    def likely(self) -> ResponseReturnValue:
        """Return pages that may be meant by a name that does not exist."""
        try:
            name = query_text(request.args.get("name"), "name")
            is_path = "missing" in request.args
            pages = self._breaker.call(lambda: likely_pages(self._service, name, is_path=is_path))
        except SemanticError as error:
            return render_template("semantic_search/likely.html", pages={}, name=""), status_of(error)
        return render_template("semantic_search/likely.html", pages=pages, name=name, page_url=page_url)

    def _found(self) -> tuple[dict[str, Any], int]:
        query = request.args.get("q", "").strip()
        mode = request.args.get("mode", Mode.HYBRID)
        chosen = _chosen()
        values: dict[str, Any] = {
            "query": query,
            "mode": mode,
            "modes": MODES,
            "chosen": chosen,
            "address": _address,
            "new_page": new_page,
        }
        if not query:
            return values, 200
        try:
            answer = self._answer(query, mode, chosen)
        except SemanticError as error:
            chips = [Chip(name, value, None, is_on=True) for name, value in chosen]
            status = status_of(error)
            return {**values, "message": str(error), "chips": chips, "is_passing": status == _UNAVAILABLE}, status
        return {**values, "found": results_view(answer, chosen), "answer": answer, "more": _more(answer)}, 200

    def _answer(self, query: str, mode: str, chosen: list[tuple[str, str]]) -> Answer:
        filters = {name: value for name, value in chosen if name != "tag"}
        tags = [value for name, value in chosen if name == "tag"]
        wanted = {"n": _MORE_RESULTS if "more" in request.args else _RESULTS, "max_chunks_per_page": _PASSAGES_PER_PAGE}
        options = parse_parameters(
            SearchOptions,
            {
                **wanted,
                **filters,
                "tag": tags,
                "mode": mode,
                "corrections": request.args.get("corrections", "true"),
                "facets": True,
                "best_sentence": True,
                "explain": "true" if request.args.get("why") else "false",
                "sort": request.args.get("sort") or Sort.RELEVANCE,
            },
        )
        is_new_query = "draft" not in request.args and "more" not in request.args
        is_new_query &= request.headers.get("Sec-Fetch-Site") != "cross-site"  # else another site could fill the log
        options = structs.replace(options, draft=request.args.get("draft") == "typing")
        return self._service.search([query_text(query)], options, context=SearchContext(is_logged=is_new_query))[0]


def _chosen() -> list[tuple[str, str]]:
    """Return the requested filters: any number of tags, and the last one of each other kind."""
    given = [(name, value) for name in FILTERS for value in request.args.getlist(name) if value.strip()]
    last = dict(given)
    return [(name, value) for name, value in dict.fromkeys(given) if name == "tag" or last[name] == value]


def _more(answer: Answer) -> bool:
    return "more" not in request.args and len(answer.results) >= _RESULTS


def _address(
    *,
    without: tuple[str, str] | None = None,
    adding: tuple[str, str] | None = None,
    replacing: tuple[str, str] | None = None,
    more: bool = False,
    endpoint: str = "search",
) -> str:
    """Return the URL of this search, with a filter removed or added, a parameter replaced, or with more results."""
    kept = [
        (name, value)
        for name in ("q", "mode", "corrections", "sort", "why", *FILTERS)
        for value in request.args.getlist(name)
        if (name, value) != without and value.strip() and not (replacing and name == replacing[0])
    ]
    asked: dict[str, list[str]] = {}
    for name, value in [*kept, *(each for each in (adding, replacing) if each), *([("more", "1")] if more else [])]:
        if value:
            asked.setdefault(name, []).append(value)
    return url_for(f"semantic_pages.{endpoint}", **asked)  # type: ignore[arg-type]
