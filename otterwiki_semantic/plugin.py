"""The hooks of An Otter Wiki: register the routes at start, notify the index daemon of changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pluggy
from flask import current_app, has_app_context, url_for

from otterwiki_semantic.core.errors import ConfigError, DaemonUnavailableError
from otterwiki_semantic.core.legacy_names import EARLIER_DISTRIBUTION, EARLIER_PACKAGE
from otterwiki_semantic.core.settings import Settings, fallback_settings, legacy_notices, read_settings, unencrypted_keys
from otterwiki_semantic.daemon import DisabledIndex, IndexClient
from otterwiki_semantic.web import index_of, note_notation, register, stylesheet
from otterwiki_semantic.web import template_hooks as hooks

if TYPE_CHECKING:
    from flask import Flask

NAME = "Semantic search"

hookimpl = pluggy.HookimplMarker("otterwiki")


class SemanticSearchPlugin:
    """The object that An Otter Wiki loads through the entry point group ``otterwiki``; one for all wikis of a process.

    Hooks run inside the user's save: they send one line to the index daemon, and neither wait nor raise.
    """

    def __init__(self) -> None:
        self._apps: WeakSet[Flask] = WeakSet()

    @hookimpl(tryfirst=True)
    def setup(self, app: Flask, storage: Any) -> None:
        """Register the routes and start the index daemon; with an invalid setting, every route reports it instead.

        Runs first, because the first of two equal routes wins, and the earlier plugin may still be installed.
        """
        repository = Path(storage.path)
        try:
            settings = read_settings(app.config, repository=repository)
            index = IndexClient(settings)
        except ConfigError as error:
            settings = fallback_settings(app.config, repository)
            index = DisabledIndex(settings, error)
        register(app, index, settings)
        self._apps.add(app)
        if settings.api_key is None:
            app.logger.info("semantic search: OTTERWIKI_API_KEY is not set: programs may do what the wiki allows everybody")
        for notice in _notices(app, settings):
            app.logger.warning("semantic search: %s", notice)
        note_notation(app)
        try:
            index.start()
        except (ConfigError, DaemonUnavailableError) as error:
            app.logger.error("semantic search: %s", error)

    @hookimpl
    def page_saved(self) -> None:
        """Notify the index of the current request's wiki, or of every wiki outside a request."""
        for app in (current_app,) if has_app_context() else tuple(self._apps):
            if (index := index_of(app)) is not None:
                index.notify()

    page_deleted = page_renamed = page_saved
    repository_changed = page_saved
    """Also called after a push."""

    @hookimpl
    def info(self) -> tuple[str, str, str]:
        return (NAME, "Finds passages by meaning: /-/semantic-search.", "Search")

    @hookimpl
    def help(self, plugin: str) -> str | None:
        return hooks.read_help().replace("{search}", url_for("semantic_pages.search")) if plugin == NAME else None

    @hookimpl
    def static_css(self) -> str:
        return stylesheet()

    @hookimpl
    def template_html_head_inject(self) -> str | None:
        return hooks.optional(hooks.search_link)

    @hookimpl
    def template_html_body_inject(self) -> str | None:
        return hooks.optional(hooks.body_end)

    @hookimpl
    def template_html_sidebar_left_inject(self, page: str | None) -> str | None:
        return hooks.optional(lambda: hooks.related_placeholder(page, is_wide=False))

    @hookimpl
    def template_html_sidebar_right_inject(self, page: str | None) -> str | None:
        return hooks.optional(lambda: hooks.related_placeholder(page, is_wide=True))


def _notices(app: Flask, settings: Settings) -> Iterator[str]:
    """Yield notices for the administrator, logged at start."""
    for name in unencrypted_keys(settings):
        yield f"{name} is sent to another machine over http, readable by everyone on the way; use https"
    yield from legacy_notices(app.config)
    if EARLIER_PACKAGE in sys.modules:  # the wiki has imported all its plugins
        yield f"the earlier plugin is also installed and needlessly indexes the wiki: pip uninstall {EARLIER_DISTRIBUTION}"


plugin = SemanticSearchPlugin()
