"""The parts that run in the wiki's worker: the REST API, pages, and additions to the wiki's own pages."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING

from flask import Response, current_app, request

from otterwiki_semantic.content import write_notation
from otterwiki_semantic.daemon import DisabledIndex
from otterwiki_semantic.web import template_hooks
from otterwiki_semantic.web.api.routes import api
from otterwiki_semantic.web.extension import EXTENSION, Extension, wiki_notation
from otterwiki_semantic.web.pages import admin, answer, connect, health, palette, search, suggestions, wiki_map
from otterwiki_semantic.web.pages.layout import pages, stylesheet

if TYPE_CHECKING:
    from flask import Flask

    from otterwiki_semantic.core.settings import Settings
    from otterwiki_semantic.daemon import IndexClient

_PREFERENCES = "admin_content_and_editing"
"""The endpoint where administrators change WIKILINK_STYLE."""

log = logging.getLogger(__name__)
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
    app.after_request(_follow_preferences)


def _follow_preferences(response: Response) -> Response:
    """Tell the index if an administrator has saved the preference for the order of the wiki's links.

    Other workers of the wiki keep their configuration, and must not.
    """
    if request.method == "POST" and request.endpoint == _PREFERENCES and response.status_code < HTTPStatus.BAD_REQUEST:
        note_notation(current_app)
    return response


def note_notation(app: Flask) -> None:
    """Write the syntax of an application's links where the index daemon reads it."""
    found = app.extensions[EXTENSION]
    if isinstance(found.index, DisabledIndex):
        return
    try:
        if write_notation(found.settings.data_dir, wiki_notation(app)):
            found.index.notify()
    except OSError as error:
        log.warning("the order of wikilinks could not be written: %s", error)


def index_of(app: Flask) -> IndexClient | None:
    """Return the index of an application; None without the plugin."""
    return app.extensions[EXTENSION].index if EXTENSION in app.extensions else None
