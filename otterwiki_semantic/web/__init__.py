"""What the wiki's worker serves: the REST API, pages, and additions to the wiki's own pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otterwiki_semantic.web.api.routes import make_blueprint
from otterwiki_semantic.web.auth import CONNECTIONS
from otterwiki_semantic.web.oauth_grants import ConnectionStore
from otterwiki_semantic.web.pages.admin import make_admin_pages
from otterwiki_semantic.web.pages.connect import make_connect_pages, make_connection_routes
from otterwiki_semantic.web.pages.health import make_health_pages
from otterwiki_semantic.web.pages.search import make_pages
from otterwiki_semantic.web.template_hooks import extend_templates
from otterwiki_semantic.web.template_hooks import optional as optional
from otterwiki_semantic.web.template_hooks import read_help as read_help
from otterwiki_semantic.web.template_hooks import related_placeholder as related_placeholder
from otterwiki_semantic.web.template_hooks import search_link as search_link
from otterwiki_semantic.web.template_hooks import search_offer as search_offer
from otterwiki_semantic.web.template_hooks import stylesheet as stylesheet
from otterwiki_semantic.web.template_hooks import writing_panel as writing_panel

if TYPE_CHECKING:
    from flask import Flask

    from otterwiki_semantic.core.settings import Settings
    from otterwiki_semantic.daemon import IndexClient


def register(app: Flask, index: IndexClient, settings: Settings) -> None:
    """Register the REST API and the pages, and extend the wiki's templates."""
    api = make_blueprint(index, settings)
    app.register_blueprint(api)
    app.extensions["csrf"].exempt(api)
    app.register_blueprint(make_pages(index, settings))
    if "health" in settings.pages:
        app.register_blueprint(make_health_pages(index))
    app.register_blueprint(make_admin_pages(index))
    app.extensions[CONNECTIONS] = ConnectionStore(settings.data_dir)
    app.register_blueprint(make_connect_pages(settings.api_key, allow_write=settings.allow_write))
    asked_by_mcp = make_connection_routes(settings.api_key)
    app.register_blueprint(asked_by_mcp)
    app.extensions["csrf"].exempt(asked_by_mcp)
    extend_templates(app)
