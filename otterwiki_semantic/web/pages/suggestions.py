"""Suggestions on the wiki's own pages: related pages, and pages that a name may refer to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from flask import request
from flask.typing import ResponseReturnValue

from otterwiki_semantic.core.errors import DaemonUnavailableError, PageNotFoundError, SemanticError
from otterwiki_semantic.core.parameter_parsing import page_path
from otterwiki_semantic.core.records import PageRequest, SearchContext, SearchOptions, query_text
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.layout import guarded, page_urls, pages, render_page, render_part, status_of

_RELATED, _LIKELY = 6, 5


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
        values["related"] = [page for page in found if page.relevant and page.url]
    except PageNotFoundError:
        pass  # not indexed yet: no related pages
    except SemanticError as error:
        values["message"], status = str(error), status_of(error)
    if "part" in request.args:
        return render_part("related.html", **values), status
    return render_page("related_page.html", title="Related pages", **values), status


@pages.get("/likely")
@guarded("READ")
def likely() -> ResponseReturnValue:
    """Return pages that the name of a missing page may refer to."""
    try:
        name = query_text(request.args.get("name"), "name")
        with _circuit_breaker():
            found = _likely_pages(name, is_path="missing" in request.args)
    except SemanticError as error:
        return render_part("likely.html"), status_of(error)
    return render_part("likely.html", likely=found, name=name, is_missing="missing" in request.args)


def _likely_pages(name: str, *, is_path: bool) -> dict[str, str]:
    """Return pages that a name may refer to, titles by path; for a path, similarly spelled pages first, then pages about it."""
    words = name.replace("/", " ").replace("-", " ").replace("_", " ").strip() or name
    options = SearchOptions(n=_LIKELY, max_chunks_per_page=1, rerank=False)
    answer = extension().index.search([words], options, context=SearchContext(is_logged=False))[0]
    about = {hit.path: hit.title for hit in answer.results if hit.relevant}
    spelled = {path: about.get(path) or _title(path) for path in (_spelled_like(name) if is_path else ())}
    found = {**spelled, **about}
    found.pop(name, None)  # the wiki may be unable to open this page
    urls = page_urls()
    return dict(islice(((path, title) for path, title in found.items() if urls.shows(path)), _LIKELY))


def _title(path: str) -> str:
    try:
        return extension().pages.page(path, PageRequest()).title
    except SemanticError:
        return path


def _spelled_like(name: str) -> tuple[str, ...]:
    """Return the paths of pages with this or a similar name."""
    try:
        return (extension().index.related(name, 1).path,)
    except PageNotFoundError as error:
        return tuple(error.nearest)
