"""The parts that run in the wiki's worker: the REST API, pages, and additions to the wiki's own pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otterwiki_semantic.web import template_hooks
from otterwiki_semantic.web.api.routes import api
from otterwiki_semantic.web.extension import EXTENSION, Extension, follow_preferences, note_notation
from otterwiki_semantic.web.pages import admin, answer, connect, health, palette, search, suggestions, wiki_map
from otterwiki_semantic.web.pages.layout import pages, stylesheet

if TYPE_CHECKING:
    from flask import Flask

    from otterwiki_semantic.core.settings import Settings
    from otterwiki_semantic.daemon import IndexClient

_VIEWS = (answer, palette, search, suggestions, wiki_map)
"""The modules that add their views to `pages` when they are imported."""


def register(app: Flask, index: IndexClient, settings: Settings) -> None:
    """Register the REST API and the pages, and extend the wiki's templates."""
    app.extensions[EXTENSION] = Extension.of(index, settings)
    for blueprint in (api, connect.connections_api):
        app.register_blueprint(blueprint)
        app.extensions["csrf"].exempt(blueprint)
    for blueprint in (pages, health.pages, admin.pages, connect.pages):
        app.register_blueprint(blueprint)
    template_hooks.extend_templates(app)
    app.after_request(follow_preferences)


def index_of(app: Flask) -> IndexClient | None:
    """Return the index of an application; None without the plugin."""
    return app.extensions[EXTENSION].index if EXTENSION in app.extensions else None
