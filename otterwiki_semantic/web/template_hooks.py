"""What the plugin adds to the wiki's own pages for users who may read: links, search by meaning, related pages."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from flask import Flask, before_render_template, g, has_request_context, render_template, request

from otterwiki_semantic.web.auth import has_permission

_VIEWS = {"view", "index"}
_TEMPLATE, _CONTEXT = "semantic_template", "semantic_context"


def track_templates(app: Flask) -> None:
    """Record which template of the wiki renders a request, which its hooks are not given."""
    before_render_template.connect(_record_template, app)


def _record_template(_app: Flask, template: Any, context: dict[str, Any], **_: Any) -> None:
    if has_request_context() and _TEMPLATE not in g:  # the first is the page, which may render others
        setattr(g, _TEMPLATE, template.name)
        setattr(g, _CONTEXT, context)


@cache
def stylesheet() -> str:
    """Return the stylesheet of the plugin."""
    return (Path(__file__).parent / "static" / "style.css").read_text(encoding="utf-8")


@cache
def read_help() -> str:
    """Return the section of the wiki's help in Markdown; ``{search}`` stands for the URL of the search page."""
    return (Path(__file__).parent / "help.md").read_text(encoding="utf-8")


def _is_extensible() -> bool:
    """Whether to add something to the page: not for users who may not read, and not to the editor."""
    return g.get(_TEMPLATE) not in {None, "editor.html"} and has_permission("READ")


def search_offer() -> str:
    """Return the end of a page: a script that offers search by meaning, and its data."""
    name = g.get(_TEMPLATE)
    if not _is_extensible():
        return ""
    context = g.get(_CONTEXT, {})
    return render_template(
        "semantic_search/search_offer.html",
        missing=str(context.get("pagepath") or "") if name == "page404.html" else "",
        asked=str(context.get("query") or "") if name == "search.html" else "",
        is_offering=name in {"search.html", "page404.html"},
    )


def sidebar_links(path: str | None) -> str:
    """Return links to the plugin's pages, and for administrators to the inspection of the page at `path`."""
    viewed = path if request.endpoint in _VIEWS else None
    return render_template("semantic_search/links.html", viewed=viewed) if _is_extensible() else ""


def related_placeholder(path: str | None, *, is_wide: bool) -> str:
    """Return the placeholder for related pages in the right sidebar, for wide windows, or in the left one."""
    is_old = "revision" in request.args or "revision" in (request.view_args or {})
    if not path or is_old or request.endpoint not in _VIEWS or not _is_extensible():
        return ""
    return render_template("semantic_search/related_placeholder.html", path=path, is_wide=is_wide)
