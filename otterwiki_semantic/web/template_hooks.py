"""What the plugin puts into the wiki's own pages, for those who may read: offers to search by meaning, and related pages."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from flask import Flask, before_render_template, g, has_request_context, render_template, request

from otterwiki_semantic.web.auth import has_permission

_VIEWS = {"view", "index"}
_TEMPLATE, _CONTEXT = "semantic_template", "semantic_context"


def watch_templates(app: Flask) -> None:
    """Note which of the wiki's templates answers a request: its hooks are not told."""
    before_render_template.connect(_note, app)


def _note(_app: Flask, template: Any, context: dict[str, Any], **_: Any) -> None:
    if has_request_context() and _TEMPLATE not in g:  # the first one is the page; it may render others
        setattr(g, _TEMPLATE, template.name)
        setattr(g, _CONTEXT, context)


@cache
def stylesheet() -> str:
    """Give the rules for all the plugin's pages and parts."""
    return (Path(__file__).parent / "static" / "style.css").read_text(encoding="utf-8")


@cache
def read_help() -> str:
    """Give what the wiki's help pages tell of searching, in markdown; ``{search}`` stands for the search page's address."""
    return (Path(__file__).parent / "help.md").read_text(encoding="utf-8")


def _may_add() -> bool:
    """Tell whether a page may get something added: it is for somebody who may read, and who does not write just now."""
    return g.get(_TEMPLATE) not in {None, "editor.html"} and has_permission("READ")


def offers() -> str:
    """Give what stands at the end of a page: the script that offers search by meaning, and what it has to know."""
    name = g.get(_TEMPLATE)
    if not _may_add():
        return ""
    context = g.get(_CONTEXT, {})
    return render_template(
        "semantic_search/offers.html",
        missing=str(context.get("pagepath") or "") if name == "page404.html" else "",
        asked=str(context.get("query") or "") if name == "search.html" else "",
        is_offering=name in {"search.html", "page404.html"},
    )


def sidebar_links(path: str | None) -> str:
    """Give links to the plugin's pages, and to what administrators can see of the page at `path`."""
    viewed = path if request.endpoint in _VIEWS else None
    return render_template("semantic_search/links.html", viewed=viewed) if _may_add() else ""


def related_place(path: str | None, *, is_wide: bool) -> str:
    """Give the place in a sidebar for pages related to one; the right one is for wide windows, the left one for others."""
    is_old = "revision" in request.args or "revision" in (request.view_args or {})
    if not path or is_old or request.endpoint not in _VIEWS or not _may_add():
        return ""
    return render_template("semantic_search/related_place.html", path=path, is_wide=is_wide)
