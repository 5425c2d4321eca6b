"""What the wiki's worker serves: the REST API, the pages, and the parts added to the wiki's own pages."""

from otterwiki_semantic.web.api.routes import make_blueprint
from otterwiki_semantic.web.pages.admin import make_admin_pages
from otterwiki_semantic.web.pages.search import make_pages
from otterwiki_semantic.web.template_hooks import offers, read_help, related_place, sidebar_links, stylesheet, watch_templates

__all__ = [
    "make_admin_pages",
    "make_blueprint",
    "make_pages",
    "offers",
    "read_help",
    "related_place",
    "sidebar_links",
    "stylesheet",
    "watch_templates",
]
