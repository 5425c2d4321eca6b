"""What the plugin's pages share: the wiki's layout, access control, URLs, status codes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import unquote

from flask import abort, current_app, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from werkzeug.wrappers import Response

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import PageUrls
from otterwiki_semantic.web.auth import has_permission
from otterwiki_semantic.web.errors import ERRORS

View = Callable[..., ResponseReturnValue]
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f/\\?#\[\]|<>:\"*]+")
_LONGEST_NAME = 80
_PAGE_FIRST = ("LINKTITLE", "PAGENAMETITLE")
"""Values of the wiki's WIKILINK_STYLE, without underscores, for ``[[page|text]]``."""


def guarded(permission: str, view: View) -> View:
    """Restrict a view to users with a permission; others get what the wiki's own pages answer."""

    @wraps(view)
    def restricted(**values: str) -> ResponseReturnValue:
        if has_permission(permission):
            return view(**values)
        if current_user.is_authenticated:
            abort(403)
        return redirect(url_for("login", next=request.script_root + request.full_path.rstrip("?")))

    return restricted


def keep_private(response: Response) -> Response:
    """Forbid caches to store pages; scripts are public."""
    if not (request.endpoint or "").endswith(".static"):
        response.headers["Cache-Control"] = "no-store"
    return response


def render_page(template: str, **values: Any) -> str:
    """Render a page in the wiki's layout, with its menu, but without its page index, which takes seconds for 10,000 pages."""
    return render_template(template, custom_menu=_menu(), **values)


def _menu() -> Any:
    """Return the wiki's menu, built by the module that serves its own pages: a process can have several wikis."""
    from otterwiki.sidebar import SidebarMenu

    names = getattr(current_app.view_functions["view"], "__globals__", {})
    return names.get("SidebarMenu", SidebarMenu)().query()


def page_urls() -> PageUrls:
    """Return the URLs of pages in the wiki of the current request."""
    retains_case = bool(current_app.config.get("RETAIN_PAGE_NAME_CASE"))
    style = str(current_app.config.get("WIKILINK_STYLE", "")).upper().replace("_", "").strip()
    return PageUrls(url_for("view", path="x").removesuffix("x"), retains_case, style in _PAGE_FIRST)


def linked_pages() -> tuple[str, ...]:
    """Return the paths of the pages that the wiki itself links to: its home page, and those of its menu."""
    prefix = url_for("view", path="x").removesuffix("x")
    links = (str(each.get("link", "")) for each in _menu())
    in_menu = (unquote(link.removeprefix(prefix).partition("#")[0]) for link in links if link.startswith(prefix))
    return tuple(dict.fromkeys(("Home", current_app.config.get("HOME_PAGE") or "Home", *in_menu)))


def page_url(path: str, anchor: str) -> str | None:
    """Return the URL of a page or, with an anchor, of one of its headings; None if the wiki cannot show it."""
    return page_urls().of(path, anchor)


def status_of(error: SemanticError) -> int:
    """Return the HTTP status of a page that shows an error."""
    return ERRORS[error.code].status


def new_page(name: str, *, is_path: bool) -> str:
    """Return the URL of the editor of a page that does not exist: one at a path, or one about a question."""
    if not is_path:
        name = " ".join(_NOT_IN_NAMES.sub(" ", name).split())[:_LONGEST_NAME].strip(" .") or "New page"
    return url_for("edit", path=name)
