"""The wiki's hooks: routes when it starts, a wake-up call whenever the repository may have changed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy
from otterwiki import fatal_error

from otterwiki_semantic.config import read_settings
from otterwiki_semantic.errors import ConfigError, OwnerUnavailableError
from otterwiki_semantic.remote_index import RemoteIndex
from otterwiki_semantic.web.api import make_blueprint

if TYPE_CHECKING:
    from flask import Flask

NAME = "Semantic search"
_EXTENSION = "otterwiki_semantic"

hookimpl = pluggy.HookimplMarker("otterwiki")
log = logging.getLogger(__name__)


class SemanticSearchPlugin:
    """What An Otter Wiki loads through the entry point group ``otterwiki``.

    A hook runs inside the user's save: it sends one line to the process that owns the index, and neither waits nor raises.
    """

    def __init__(self) -> None:
        self._index: RemoteIndex | None = None

    @hookimpl
    def setup(self, app: Flask, storage: Any) -> None:
        """Register the routes and see that the index has an owner. A bad setting ends the start, as one of the wiki's does."""
        try:
            settings = read_settings(app.config, repository=Path(storage.path))
        except ConfigError as error:
            fatal_error(error)
            raise
        index = RemoteIndex(settings)
        blueprint = make_blueprint(index, settings)
        app.register_blueprint(blueprint)
        app.extensions["csrf"].exempt(blueprint)
        app.extensions[_EXTENSION] = self._index = index
        if settings.api_key is None:
            app.logger.warning(
                "semantic search: OTTERWIKI_API_KEY is not set; programs have no key, people may what the wiki lets them"
            )
        try:
            index.start()
        except OwnerUnavailableError as error:
            app.logger.error("semantic search: %s", error)

    @hookimpl
    def page_saved(self) -> None:
        """Wake the index."""
        self._wake()

    @hookimpl
    def page_deleted(self) -> None:
        """Wake the index."""
        self._wake()

    @hookimpl
    def page_renamed(self) -> None:
        """Wake the index."""
        self._wake()

    @hookimpl
    def repository_changed(self) -> None:
        """Wake the index: this one comes after a push, too."""
        self._wake()

    @hookimpl
    def info(self) -> tuple[str, str, str]:
        """Name, description and category, for the wiki's help."""
        return (NAME, "Finds passages by meaning, through /api/v1/semantic-search.", "search")

    def _wake(self) -> None:
        if self._index is not None:
            self._index.notify()


plugin = SemanticSearchPlugin()
