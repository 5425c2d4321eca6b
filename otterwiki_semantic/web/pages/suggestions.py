"""Suggestions: related pages, pages that a name may refer to, and, with OpenSearch, those in the browser's address bar.

OpenSearch: https://github.com/dewitt/opensearch, with its suggestions extension.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urljoin

from flask import Response, current_app, jsonify, request
from flask.typing import ResponseReturnValue

from otterwiki_semantic.core.errors import DaemonUnavailableError, PageNotFoundError, SemanticError
from otterwiki_semantic.core.parameter_parsing import page_path
from otterwiki_semantic.core.records import Filters, PageRequest, SearchContext, SearchOptions, SuggestRequest, query_text
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.excerpts import Line, Span
from otterwiki_semantic.web.pages.layout import (
    guarded,
    message_of,
    page_url,
    page_urls,
    pages,
    render_page,
    render_part,
    status_of,
)
from otterwiki_semantic.web.pages.results import marked_name, passage_excerpt, section_trail, short_trail

_RELATED, _LIKELY, _SUGGESTIONS = 6, 3, 8
_MAX_NAME = 16
"""Characters of a short name that OpenSearch allows."""
_BETWEEN_WORDS = re.compile(r"[-_/\s]+")


class LikelyPage(NamedTuple):
    """A page that a name may refer to, and what it says about that below some headings."""

    path: str
    title: str
    headings: Sequence[Sequence[Span]] = ()
    excerpt: tuple[Line, ...] = ()


@contextmanager
def _circuit_breaker() -> Iterator[None]:
    """Fail at once while the index daemon does not answer: suggestions are not worth a wait, and each would occupy a thread."""
    pause = extension().suggestions_pause
    if pause.is_active:
        raise DaemonUnavailableError("the index daemon did not answer lately")
    try:
        yield
    except DaemonUnavailableError:
        pause.start()
        raise


@pages.get("/related")
@guarded("READ", feature="related")
def related() -> ResponseReturnValue:
    """Return related pages, as a part of the sidebar, or as a page for browsers without scripts."""
    values: dict[str, Any] = {"path": request.args.get("path", ""), "urls": page_urls()}
    status = 200
    try:
        values["path"] = page_path(query_text(request.args.get("path"), "path"))
        with _circuit_breaker():
            found = extension().index.related(values["path"], _RELATED, values["urls"]).results
        if "part" not in request.args:
            values["name"] = _title(values["path"])
        values["related"] = [page for page in found if page.relevant and page.url]
    except PageNotFoundError:
        pass  # not indexed yet: no related pages
    except SemanticError as error:
        values["message"], status = message_of(error), status_of(error)
    if "part" in request.args:
        return render_part("related.html", **values), status
    return render_page("related_page.html", title="Related pages", **values), status


@pages.get("/likely")
@guarded("READ")
def likely() -> ResponseReturnValue:
    """Return pages that the name of a missing or new page may refer to."""
    is_missing = "missing" in request.args
    try:
        name = query_text(request.args.get("name"), "name")
        with _circuit_breaker():
            found = _likely_pages(name, is_path=is_missing)
    except SemanticError as error:
        return render_part("likely.html"), status_of(error)
    last = _words(name.rpartition("/")[2] or name)
    if is_missing:
        return render_part("likely.html", wanted=last, groups={"Did you mean?": found})
    names = {name.casefold(), last.casefold()}
    namesakes = [page for page in found if names & {page.path.casefold(), _words(page.title).casefold()}]
    others = [page for page in found if page not in namesakes]
    groups = {"A page has this name already": namesakes, "Pages that may already cover this": others}
    return render_part("likely.html", wanted=name, groups=groups)


def _likely_pages(name: str, *, is_path: bool) -> list[LikelyPage]:
    """Return pages that a name may refer to; for a path, similarly spelled pages, or else pages about it."""
    spelled = [LikelyPage(path, _title(path)) for path in (_paths_like(name) if is_path else ())]
    urls = page_urls()
    missing = name if is_path else None  # the wiki may be unable to open the page of this very name
    shown = (page for page in spelled or _pages_about(name) if page.path != missing and urls.shows(page.path))
    return list(islice(shown, _LIKELY))


def _pages_about(name: str) -> Iterator[LikelyPage]:
    options = SearchOptions(n=_LIKELY, max_chunks_per_page=1, rerank=False, filters=Filters(type="page"), best_sentence=True)
    for hit in extension().index.search([_words(name)], options, context=SearchContext(is_logged=False))[0].results:
        if hit.relevant:
            told = passage_excerpt(hit) if hit.best_sentence else ()  # else it is markup
            headings = [list(marked_name(hit, heading)) for heading in short_trail(section_trail(hit))]
            yield LikelyPage(hit.path, hit.title, headings, told)


def _words(name: str) -> str:
    """Return the words of a name or a path."""
    return " ".join(_BETWEEN_WORDS.split(name)).strip() or name


def _title(path: str) -> str:
    try:
        return extension().pages.page(path, PageRequest()).title
    except SemanticError:
        return path


def _paths_like(name: str) -> tuple[str, ...]:
    try:
        return (extension().index.related(name, 1).path,)
    except PageNotFoundError as error:
        return close_paths(name, error)


def close_paths(name: str, error: PageNotFoundError) -> tuple[str, ...]:
    """Return the pages that are spelled similarly, also after their last slash: the folder alone says little."""
    return tuple(path for path in error.nearest if get_close_matches(_last(name), [_last(path)]))


def _last(path: str) -> str:
    return path.casefold().rpartition("/")[2]


@pages.get("/opensearch.xml")
@guarded("READ")
def opensearch() -> ResponseReturnValue:
    """Return the OpenSearch description."""
    name = str(current_app.config.get("SITE_NAME") or "Wiki")
    content = render_part("opensearch.xml", name=name, short_name=name[:_MAX_NAME])
    return Response(content, content_type="application/opensearchdescription+xml; charset=utf-8")


@pages.get("/suggestions")
@guarded("READ")
def suggestions() -> ResponseReturnValue:
    """Return the query, and titles, paths and addresses of suggested pages and headings."""
    query = request.args.get("q", "").strip()
    try:
        found = extension().index.suggest(SuggestRequest(query_text(query), _SUGGESTIONS)).suggestions if query else ()
    except SemanticError:
        found = ()
    shown = [(each, url) for each in found if (url := page_url(each.path, each.anchor, each.file))]
    labels = [each.title if each.kind == "page" else f"{each.title} › {each.section}" for each, _ in shown]
    addresses = [urljoin(request.host_url, url) for _, url in shown]
    reply = jsonify([query, labels, [each.path for each, _ in shown], addresses])
    reply.content_type = "application/x-suggestions+json"
    return reply
