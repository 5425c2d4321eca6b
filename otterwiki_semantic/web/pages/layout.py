"""What the plugin's pages have in common: the wiki's frame around them, who may see them, and what they answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import abort, current_app, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from werkzeug.wrappers import Response

from otterwiki_semantic.core.errors import NotFoundError, ParameterError, SemanticError
from otterwiki_semantic.web.auth import has_permission

View = Callable[..., ResponseReturnValue]


PageUrl = Callable[[str, str], str]
"""Returns the address of a page, from its path and an anchor, which may be empty."""


def guarded(permission: str, view: View) -> View:
    """Give a view for those who have a permission; others are answered as by the wiki's own pages."""

    @wraps(view)
    def seen(**values: str) -> ResponseReturnValue:
        return _refuse_unless(permission) or view(**values)

    return seen


def _refuse_unless(permission: str) -> Response | None:
    """Let those pass who have a permission (None); send who is not logged in to the login, and stop the others with a 403."""
    if not has_permission(permission):
        if current_user.is_authenticated:
            abort(403)
        return redirect(url_for("login", next=request.script_root + request.full_path.rstrip("?")))
    return None


def keep_private(response: Response) -> Response:
    """Tell caches that a page is for whoever asked; scripts are for all."""
    if not (request.endpoint or "").endswith(".static"):
        response.headers["Cache-Control"] = "no-store"
    return response


def render_page(template: str, **values: Any) -> str:
    """Render a page in the wiki's frame, with its menu; without its page index, as the wiki's own search page.

    The index would take the wiki seconds with ten thousand pages.
    """
    return render_template(template, custom_menu=_menu(), **values)


def _menu() -> Any:
    """Give the wiki's menu, made by the code that its own pages are made by: a process can hold several wikis."""
    from otterwiki.sidebar import SidebarMenu

    names = getattr(current_app.view_functions["view"], "__globals__", {})
    return names.get("SidebarMenu", SidebarMenu)().query()


def page_url(path: str, anchor: str) -> str:
    """Give the address of a page, and of one of its headings."""
    return url_for("view", path=path, _anchor=anchor or None)


def status_of(error: SemanticError) -> int:
    """Give the HTTP status of a page that tells of an error."""
    return 404 if isinstance(error, NotFoundError) else 422 if isinstance(error, ParameterError) else 503
