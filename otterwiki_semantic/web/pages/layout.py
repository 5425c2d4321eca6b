"""Shared by the plugin's pages: their blueprint, the wiki's layout, access control, URLs, status codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from flask import Blueprint, Response, abort, current_app, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from rcssmin import cssmin
from rjsmin import jsmin

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import PageUrls
from otterwiki_semantic.web.auth import has_permission
from otterwiki_semantic.web.errors import ERRORS
from otterwiki_semantic.web.extension import extension, wiki_notation

VIEWS = {"view", "index"}
"""The wiki's endpoints that show a page."""
_INSPECTION = "semantic_admin.page"
View = Callable[..., ResponseReturnValue]
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f/\\?#\[\]|<>:\"*]+")
_LONGEST_NAME = 80
_PAGE_URLS = "otterwiki_semantic.page_urls"
"""The key of the current request's `PageUrls` in its environment."""
_SCRIPT_SECONDS = 300
"""How long browsers may cache a script: as long as the wiki's merged stylesheet."""
_STATIC = Path(__file__).parents[1] / "static"


@cache
def scripts() -> dict[str, str]:
    """Return the minified scripts by name."""
    return {path.name: str(jsmin(path.read_text(encoding="utf-8"))) for path in _STATIC.glob("*.js")}


@cache
def stylesheet() -> str:
    """Return the minified stylesheet; the minifier leaves spaces around ~ and /."""
    return re.sub(" ([~/]) ", r"\1", str(cssmin((_STATIC / "style.css").read_text(encoding="utf-8"))))


def keep_private(response: Response) -> Response:
    """Forbid caches to store pages; scripts are public."""
    if not (request.endpoint or "").endswith(".static"):
        response.headers["Cache-Control"] = "no-store"
    return response


pages = Blueprint("semantic_pages", "otterwiki_semantic.web", url_prefix="/-/semantic-search", template_folder="templates")
"""The pages for readers, and the scripts and templates of all pages; the wiki's CSRF protection applies to them."""
pages.after_request(keep_private)


@pages.get("/static/<path:filename>", endpoint="static")
def send_script(filename: str) -> Response:
    """Return a minified script."""
    if filename not in scripts():
        abort(404)
    response = Response(scripts()[filename], mimetype="text/javascript")
    response.add_etag()
    response.cache_control.public = True
    response.cache_control.max_age = _SCRIPT_SECONDS
    response.make_conditional(request)
    return response


@pages.app_template_global("semantic_has")
def has(feature: str) -> bool:
    """Whether the wiki has a page of SEMANTIC_PAGES, or `answers`, a `chat-model`, or its `rewriting` of questions."""
    settings = extension().settings
    features = {
        "answers": settings.answers is not None,
        "chat-model": settings.has_chat_model,
        "rewriting": settings.may_rewrite_questions,
        "map": "map" in settings.pages and _is_installed("sklearn"),
    }
    return features.get(feature, feature in settings.pages)


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


@pages.app_template_global("semantic_tools")
def tools(path: str | None = None) -> Iterator[dict[str, str]]:
    """Yield name, tab, icon, endpoint and URL of the plugin's pages that the user may see, except the search page."""
    if has("health"):
        yield _tool("Wiki health", "Health", "fa-stethoscope", "semantic_health.health")
    if has_permission("ADMIN"):
        yield _tool("Search index", "Search index", "fa-database", "semantic_admin.index")
    if has("map"):
        yield _tool("Map of the wiki", "Map", "fa-map", "semantic_pages.map")
    inspected = request.args.get("path") if request.endpoint == _INSPECTION else path if request.endpoint in VIEWS else None
    if inspected and has_permission("ADMIN"):
        yield _tool("How search sees this page", "Inspect", "fa-microscope", _INSPECTION, path=inspected)


def _tool(name: str, tab: str, icon: str, endpoint: str, path: str | None = None) -> dict[str, str]:
    return {"name": name, "tab": tab, "icon": icon, "endpoint": endpoint, "url": url_for(endpoint, path=path)}


def guarded(permission: str, *, feature: str | None = None) -> Callable[[View], View]:
    """Restrict a view to users with a permission, and wikis with a `feature`; otherwise respond as the wiki's own pages do."""

    def decorate(view: View) -> View:
        @wraps(view)
        def restricted(**values: str) -> ResponseReturnValue:
            if feature and not has(feature):
                abort(404)
            if has_permission(permission):
                return view(**values)
            return abort(403) if current_user.is_authenticated else to_login()

        return restricted

    return decorate


def to_login() -> ResponseReturnValue:
    """Redirect to the login, and back afterwards."""
    return redirect(url_for("login", next=request.script_root + request.full_path.rstrip("?")))


def render_page(template: str, **values: Any) -> str:
    """Render a page in the wiki's layout, with its menu, but without its page index, which takes seconds for 10,000 pages."""
    return render_part(template, custom_menu=_menu(), **values)


def render_part(template: str, **values: Any) -> str:
    """Render a part of a page for its script."""
    return render_template(f"semantic_search/{template}", **values)


def _menu() -> Any:
    """Return the wiki's menu, built by the module that serves its own pages: a process can have several wikis."""
    from otterwiki.sidebar import SidebarMenu

    names = getattr(current_app.view_functions["view"], "__globals__", {})
    return names.get("SidebarMenu", SidebarMenu)().query()


def page_urls() -> PageUrls:
    """Return the URLs of pages in the wiki of the current request."""
    if _PAGE_URLS not in request.environ:
        retains_case = bool(current_app.config.get("RETAIN_PAGE_NAME_CASE"))
        prefix = url_for("view", path="x").removesuffix("x")
        request.environ[_PAGE_URLS] = PageUrls(prefix, retains_case, wiki_notation(current_app).is_page_first)
    urls: PageUrls = request.environ[_PAGE_URLS]
    return urls


def linked_pages() -> tuple[str, ...]:
    """Return the paths of pages linked by the wiki itself: its home page, and its menu."""
    prefix = page_urls().prefix or ""
    links = (str(each.get("link", "")) for each in _menu())
    in_menu = (unquote(link.removeprefix(prefix).partition("#")[0]) for link in links if link.startswith(prefix))
    return tuple(dict.fromkeys(("Home", current_app.config.get("HOME_PAGE") or "Home", *in_menu)))


@pages.app_template_global("semantic_page_url")
def page_url(path: str, anchor: str = "", kind: str | None = None) -> str | None:
    """Return the URL of a page or, with an anchor, of one of its headings; None if the wiki cannot show it."""
    return page_urls().of(path, anchor, kind)


@pages.app_template_filter("semantic_sentence")
def sentence(message: str | None) -> str:
    """Return a message with a capital, as the beginning of a text."""
    return f"{message[0].upper()}{message[1:]}" if message else ""


def message_of(error: SemanticError) -> str:
    """Return the message of an error for the current user: only administrators can do anything about a failure."""
    if error.code == SemanticError.code and not has_permission("ADMIN"):
        return "search is not available right now; try again in a moment"
    return str(error)


def status_of(error: SemanticError) -> int:
    """Return the HTTP status of a page that shows an error."""
    return ERRORS[error.code].status


@pages.app_template_global("semantic_new_page")
def new_page(name: str, *, is_path: bool) -> str:
    """Return the URL of the editor for a new page: at a path, or about a question."""
    if not is_path:
        name = " ".join(_NOT_IN_NAMES.sub(" ", name).split())[:_LONGEST_NAME].strip(" .") or "New page"
    return url_for("edit", path=name)
