"""Additions to the wiki's own pages for users who may read: links, search by meaning, related pages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from flask import Flask, before_render_template, current_app, g, has_request_context, render_template, request
from jinja2 import ChoiceLoader, DictLoader, PrefixLoader
from markupsafe import Markup

from otterwiki_semantic.web.auth import has_permission
from otterwiki_semantic.web.extension import EXTENSION
from otterwiki_semantic.web.pages.layout import VIEWS, has, tools

_TEMPLATE, _CONTEXT, _LINKED = "semantic_template", "semantic_context", "semantic_linked"
_MENUS = ("wiki.html", "settings.html", "help.html", "about.html")
"""The wiki's templates with their own menu; only the page view calls the sidebar hook."""
_WITH_LINKS = """{% extends "otterwiki:NAME" %}
{% block menu %}{{ super() }}{{ semantic_links("links", pagepath | default(none)) }}{% endblock %}
{% block navbardropdown %}{{ semantic_links("menu_links", pagepath | default(none)) }}{{ super() }}{% endblock %}"""

log = logging.getLogger(__name__)


def extend_templates(app: Flask) -> None:
    """Add the plugin's links to the sidebar and the menu of every page, and record the template of each request."""
    before_render_template.connect(_record_template, app)
    app.add_template_global(lambda name, path=None: Markup(optional(lambda: _links(name, path)) or ""), "semantic_links")
    own = app.jinja_loader
    if own is not None:
        extended = DictLoader({name: _WITH_LINKS.replace("NAME", name) for name in _MENUS})
        app.jinja_loader = ChoiceLoader([extended, PrefixLoader({"otterwiki": own}, ":"), own])


def optional(part: Callable[[], str]) -> str | None:
    """Return a part of a page, or None if it fails or the plugin could not be set up."""
    try:
        return part() if EXTENSION in current_app.extensions else None
    except Exception:
        log.exception("a part of a page was left out")
        return None


def _record_template(_app: Flask, template: Any, context: dict[str, Any], **_: Any) -> None:
    if has_request_context() and _TEMPLATE not in g:  # the first is the page, which may render others
        setattr(g, _TEMPLATE, template.name)
        setattr(g, _CONTEXT, context)


@cache
def read_help() -> str:
    """Return the section of the wiki's help in Markdown; ``{search}`` is replaced by the URL of the search page."""
    return (Path(__file__).parent / "help.md").read_text(encoding="utf-8")


def _is_extensible() -> bool:
    """Whether to extend the page: not for users who may not read, and not in the editor."""
    return g.get(_TEMPLATE) not in {None, "editor.html"} and has_permission("READ")


def search_link() -> str:
    """Return the link in a page's head that makes the wiki a search engine of the browser."""
    return render_template("semantic_search/opensearch_link.html") if _is_extensible() else ""


def body_end() -> str:
    """Return the end of a page: a script that offers search by meaning, and its data; in the editor, suggested links."""
    name, context = g.get(_TEMPLATE), g.get(_CONTEXT, {})
    if name == "editor.html" and has("editor") and has_permission("READ"):
        path = context.get("pagepath") or (request.view_args or {}).get("path", "")
        return render_template("semantic_search/writing.html", path=path)
    if not _is_extensible():
        return ""
    path = str(context.get("pagepath") or "")
    return render_template(
        "semantic_search/search_offer.html",
        path=path,
        missing=path if name == "page404.html" else "",
        asked=str(context.get("query") or "") if name == "search.html" else "",
        is_offering=name in {"search.html", "page404.html"},
        viewed=str(context.get("title") or "") if request.endpoint in VIEWS and name == "page.html" else "",
        tools=list(tools(path)),
    )


def _links(name: str, path: str | None) -> str:
    """Return links to the plugin's pages: `links` of the sidebar, or `menu_links`.

    Several templates of a page may call this; only the first gets the links.
    """
    if (name in (linked := g.setdefault(_LINKED, set()))) or not _is_extensible():
        return ""
    linked.add(name)
    return render_template(f"semantic_search/{name}.html", tools=list(tools(path)))


def related_placeholder(path: str | None, *, is_wide: bool) -> str:
    """Return the placeholder for related pages in the right sidebar, for wide windows, or in the left one."""
    is_old = "revision" in request.args or "revision" in (request.view_args or {})
    if not has("related") or not path or is_old or request.endpoint not in VIEWS or not _is_extensible():
        return ""
    return render_template("semantic_search/related_placeholder.html", path=path, is_wide=is_wide)
