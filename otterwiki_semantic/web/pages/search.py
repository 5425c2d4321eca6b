"""The search page at ``/-/semantic-search``, and the parts of it that its script loads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from flask import request, url_for
from flask.typing import ResponseReturnValue
from msgspec import structs

from otterwiki_semantic.core.errors import ParameterError, SemanticError
from otterwiki_semantic.core.parameter_parsing import page_path, parse_parameters
from otterwiki_semantic.core.records import (
    Answer,
    Mode,
    PageRequest,
    SearchContext,
    SearchOptions,
    Sort,
    SuggestRequest,
    query_text,
)
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.layout import guarded, message_of, page_url, pages, render_page, render_part, status_of
from otterwiki_semantic.web.pages.results import FILTERS, Choice, Menu, filter_menus, narrower_query, results_view

_Filter = tuple[str, str]
"""The name of a filter, and its value."""
MODES = (("", "words and meaning"), (Mode.SEMANTIC, "meaning only"), (Mode.KEYWORD, "exact words"))
SORTS = (("", "relevance"), (Sort.UPDATED, "date"))
_CHOICES = {"mode": MODES, "sort": SORTS}
_RESULTS, _MORE_RESULTS, _PASSAGES_PER_PAGE = 20, 50, 3
_EXAMPLES, _EXAMPLES_FROM = 3, 20
_ASKABLE = re.compile(r"[^!-~]")
"""Texts of several words or other letters, which can be answered; the palette's script has the same rule."""
_NAMES = {"mode": "Match", "sort": "Sort", **FILTERS}
"""Parameters in the words of the page."""
_SHOWN_VALUE = 40
_MOST_MENUS = 5
"""Filters in use whose menus offer other values, each of which takes a search."""
_MAX_RENDERED = 50_000
"""Characters of a passage that are shown."""


@pages.get("")
@guarded("READ")
def search() -> ResponseReturnValue:
    """Return the search page."""
    extension().renderer.prepare()
    return search_page()


def search_page(answer_part: str = "") -> ResponseReturnValue:
    """Return the search page, with an answer above the results."""
    values, status = _found()
    return render_page("search.html", title="Search", answer_part=answer_part, **values), status


@pages.get("/results")
@guarded("READ")
def results() -> ResponseReturnValue:
    """Return the results."""
    values, status = _found()
    return render_part("found.html", **values), status


@pages.get("/passage")
@guarded("READ")
def passage() -> ResponseReturnValue:
    """Return lines of a page as the wiki renders them; with `anchor`, only those in that section."""
    try:
        path = page_path(query_text(request.args.get("path"), "path"))
        anchors = [f"#{anchor}" for anchor in request.args.getlist("anchor")]
        asked = parse_parameters(PageRequest, {"lines": query_text(request.args.get("lines"), "lines"), "section": anchors})
        *sections, lines = extension().pages.page(path, asked).parts or ()
        first = max(part.start_line for part in (*sections, lines))
        last = min(part.end_line for part in (*sections, lines))
        source = "\n".join(lines.content.split("\n")[first - lines.start_line : last - lines.start_line + 1])
    except SemanticError as error:
        return render_part("passage.html", message=message_of(error)), status_of(error)
    return render_part("passage.html", content=extension().renderer.html(source[:_MAX_RENDERED]))


@pages.get("/preview")
@guarded("READ")
def preview() -> ResponseReturnValue:
    """Return a page as the wiki renders it, or a section of a long one, for the pane beside the results."""
    path, anchor = request.args.get("path", ""), request.args.get("anchor", "")
    reader = extension().pages
    try:
        path = page_path(query_text(path, "path"))
        page = reader.page(path, PageRequest())
        if anchor and len(page.content) > _MAX_RENDERED:
            page = reader.page(path, PageRequest(section=(f"#{anchor}",)))
    except SemanticError as error:
        return render_part("preview.html", title=path, message=message_of(error)), status_of(error)
    content = extension().renderer.html(page.content[:_MAX_RENDERED])
    return render_part("preview.html", title=page.title, url=page_url(page.path, anchor, page.kind), content=content)


def _found() -> tuple[dict[str, Any], int]:
    query = request.args.get("q", "").strip()
    chosen = _chosen()
    values: dict[str, Any] = {
        "query": query,
        "address": _address,
        "is_askable": bool(_ASKABLE.search(query)),
        "menus": _menus(None, chosen),
    }
    if not query:
        return {**values, "examples": _examples()}, 200
    try:
        answer = _answer(query, chosen)
        narrower = None if _is_typed() else narrower_query(answer, query)
        narrowed = _answer(narrower, chosen, is_logged=False) if narrower else answer
        offering = [] if _is_typed() else chosen[:_MOST_MENUS]
        without = {each: _answer(query, [one for one in chosen if one != each], is_main=False) for each in offering}
    except SemanticError as error:
        status = status_of(error)
        return {**values, **_said(error), "is_passing": status == 503}, status
    has_more = "more" not in request.args and len(narrowed.results) >= _RESULTS
    values["menus"] = _menus(narrowed, chosen, without)
    shown = results_view(narrowed, answer, is_filtered=bool(chosen), narrower=narrower)
    return {**values, "answer": answer, "more": has_more, **shown}, 200


def _said(error: SemanticError) -> dict[str, Any]:
    """Return the message of the page: an invalid parameter is a part of a link, and the page offers to search `without_it`."""
    name = error.parameter if isinstance(error, ParameterError) else None
    if name not in _NAMES:
        return {"message": message_of(error)}
    value = request.args.get(name, "")[:_SHOWN_VALUE]
    *others, last = (f"“{text}”" for _, text in _CHOICES[name]) if name in _CHOICES else ("another one",)
    offered = f"{', '.join(others)} or {last}" if others else last
    return {"message": f"“{value}” is not a choice of “{_NAMES[name]}”. Choose {offered}.", "without_it": True}


def _menus(answer: Answer | None, chosen: list[_Filter], without: dict[_Filter, Answer] | None = None) -> list[Menu]:
    sort = request.args.get("sort", "")
    is_found = answer is not None and any(hit.relevant for hit in answer.results)
    matching = _choices("mode", MODES, request.args.get("mode", ""))
    sorting = [_choices("sort", SORTS, sort)] if is_found or sort else []
    return [matching, *sorting, *filter_menus(answer, chosen, without or {})]


def _choices(name: str, values: Sequence[tuple[str, str]], chosen: str) -> Menu:
    return Menu(name, _NAMES[name], [Choice(value, f"{_NAMES[name]}: {text}", value == chosen) for value, text in values])


def _examples() -> list[str]:
    """Return example queries: titles of recently changed pages, preferably of several words."""
    try:
        titles = [each.title for each in extension().index.suggest(SuggestRequest(n=_EXAMPLES_FROM)).suggestions]
    except SemanticError:
        return []
    return sorted(titles, key=lambda title: " " not in title)[:_EXAMPLES]


def _answer(query: str, chosen: list[_Filter], *, is_main: bool = True, is_logged: bool = True) -> Answer:
    options = parse_parameters(
        SearchOptions,
        {
            **dict(chosen),
            "tag": [value for name, value in chosen if name == "tag"],
            "n": _MORE_RESULTS if "more" in request.args else _RESULTS,
            "max_chunks_per_page": _PASSAGES_PER_PAGE,
            "mode": request.args.get("mode") or Mode.HYBRID,
            "corrections": request.args.get("corrections", "true"),
            "facets": True,
            "best_sentence": is_main,
            "explain": is_main and bool(request.args.get("why")),
            "sort": request.args.get("sort") or Sort.RELEVANCE,
        },
    )
    is_new_query = is_main and is_logged and "draft" not in request.args and "more" not in request.args
    is_new_query &= request.headers.get("Sec-Fetch-Site") != "cross-site"  # otherwise another site could fill the log
    options = structs.replace(options, draft=_is_typed())
    return extension().index.search([query_text(query)], options, context=SearchContext(is_logged=is_new_query))[0]


def _is_typed() -> bool:
    """Whether the query is still being typed; the page asks again when it is whole."""
    return request.args.get("draft") == "typing"


def _chosen() -> list[_Filter]:
    """Return the requested filters: any number of tags, and the last value of each other kind."""
    given = [(name, value) for name in FILTERS for value in request.args.getlist(name) if value.strip()]
    last = dict(given)
    return [(name, value) for name, value in dict.fromkeys(given) if name == "tag" or last[name] == value]


def _address(*, endpoint: str = "search", **changed: Any) -> str:
    """Return the URL of this search with parameters changed, or removed if None or empty."""
    names = ("q", "mode", "corrections", "sort", "why", *FILTERS)
    kept = {name: [value for value in request.args.getlist(name) if value.strip()] for name in names}
    return url_for(f"semantic_pages.{endpoint}", **{**kept, **changed})
